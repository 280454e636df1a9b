"""Hyperbolic: the current rental options, priced in cents per hour for the whole option."""

from pipeline.sources import kit

CENTS_PER_DOLLAR = 100
MACHINE_TYPES = ("virtual-machine", "bare-metal")
_PRICE_SUFFIX = "PerHourCents"
_KNOWN_PRICES = ("costPerHourCents", "providerCostPerHourCents")
_LEAST_HOURS = "minHours"


@kit.reader("no rental option")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """One listing per option with a single machine; an option with several machines becomes a reject."""
    return kit.read_rows(audit.items(answer, "options"), _read_option, "gpuType", "gpuCount", "region")


def _read_option(option: kit.JsonObject) -> kit.Listings:
    _check_terms(option)
    machine, free = _machine(option), kit.is_available(option.get("totalAvailable"))
    machine_and_network = option.text("machineType"), option.optional_text("connectionType")
    yield option.listing(
        option.text("gpuType"),
        machine.gpu_count("gpuCount"),
        option.price("costPerHourCents") / CENTS_PER_DOLLAR,
        context=kit.known(form_factor=option.optional_text("gpuFormFactor")),
        region=option.optional_text("region"),
        available=False if option.get("enabled") is False else free,
        tier="_".join(filter(None, machine_and_network)),  # bare-metal_infiniband
        vcpus=machine.optional_number("vcpuCount"),
        ram_gib=machine.optional_number("ramGb"),
        local_disk_gb=machine.optional_number("storageGb"),
    )


def _check_terms(option: kit.JsonObject) -> None:
    """Raise RowError for an option with an unknown price field or term: its known price may be incomplete."""
    terms = {name for name in option.raw if name.endswith(_PRICE_SUFFIX) or name == _LEAST_HOURS}
    if new := sorted(terms - set(_KNOWN_PRICES)):
        raise kit.RowError(kit.RejectReason.UNKNOWN_TERMS, f"the effect of {new} on the price is unknown")
    if (machine_type := option.get("machineType")) not in MACHINE_TYPES:
        raise kit.RowError(kit.RejectReason.OTHER_PRODUCT, f"a machine of type {machine_type!r}")


def _machine(option: kit.JsonObject) -> kit.JsonObject:
    """Return the only machine in an option. Raises RowError if there are several machines (their interconnect
    is not stated), or if the option and its machine state different numbers of GPUs."""
    machines = option.objects("nodes")
    if len(machines) != 1:
        detail = f"an option of {len(machines)} machines, which are rented together only"
        raise kit.RowError(kit.RejectReason.UNKNOWN_TERMS, detail)
    (machine,), gpu_count = machines, option.gpu_count("gpuCount")
    if machine.gpu_count("gpuCount") != gpu_count:
        detail = f"an option of {gpu_count} GPUs is a machine of {machine.gpu_count('gpuCount')}"
        raise kit.RowError(kit.RejectReason.UNKNOWN_GPU_COUNT, detail)
    return machine
