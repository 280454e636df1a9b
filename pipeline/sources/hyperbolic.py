"""Hyperbolic: the options that can be rented at present, in cents per hour of the whole option."""

from pipeline.sources import kit

CENTS_PER_DOLLAR = 100
MACHINE_TYPES = ("virtual-machine", "bare-metal")
_PRICE_SUFFIX = "PerHourCents"
_KNOWN_PRICES = ("costPerHourCents", "providerCostPerHourCents")
_LEAST_HOURS = "minHours"


@kit.reader("no rental option")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """One listing per option of a single machine; an option of several is a reject."""
    return kit.read_rows(audit.items(answer, "options"), _read_option, "gpuType", "gpuCount", "region")


def _read_option(option: kit.JsonObject) -> kit.Listings:
    _check_terms(option)
    gpu_count, machine = option.gpu_count("gpuCount"), _machine(option)
    if machine.gpu_count("gpuCount") != gpu_count:
        detail = f"an option of {gpu_count} GPUs is a machine of {machine.gpu_count('gpuCount')}"
        raise kit.RowError(kit.RejectReason.UNKNOWN_GPU_COUNT, detail)
    yield option.machine_hour(
        option.text("gpuType"),
        gpu_count,
        option.price("costPerHourCents") / CENTS_PER_DOLLAR,
        context=kit.known(form_factor=option.optional_text("gpuFormFactor")),
        region=option.optional_text("region"),
        available=_available(option),
        tier=_tier(option),
        vcpus=machine.optional_number("vcpuCount"),
        ram_gib=machine.optional_number("ramGb"),
        local_disk_gb=machine.optional_number("storageGb"),
    )


def _check_terms(option: kit.JsonObject) -> None:
    """Raises RowError for an option with a price or a term that is new: the known price may be for less."""
    prices = {name for name in option.raw if name.endswith(_PRICE_SUFFIX)} - set(_KNOWN_PRICES)
    if prices or _LEAST_HOURS in option.raw:
        new = sorted(prices | ({_LEAST_HOURS} & option.raw.keys()))
        raise kit.RowError(kit.RejectReason.UNKNOWN_TERMS, f"what {new} means for the price is not known")
    if (machine_type := option.get("machineType")) not in MACHINE_TYPES:
        raise kit.RowError(kit.RejectReason.OTHER_PRODUCT, f"a machine of type {machine_type!r}")


def _machine(option: kit.JsonObject) -> kit.JsonObject:
    """The one machine of an option. Raises RowError for several: how they are joined is not stated."""
    machines = option.objects("nodes")
    if len(machines) != 1:
        detail = f"an option of {len(machines)} machines, which are only rented together"
        raise kit.RowError(kit.RejectReason.UNKNOWN_TERMS, detail)
    return machines[0]


def _available(option: kit.JsonObject) -> bool | None:
    """Not when it is switched off; otherwise what the count says, which not every option has."""
    enabled, free = option.get("enabled"), kit.is_available(option.get("totalAvailable"))
    return False if enabled is False else free


def _tier(option: kit.JsonObject) -> str | None:
    """The kind of machine and its network, such as ``bare-metal_infiniband``."""
    parts = (option.optional_text("machineType"), option.optional_text("connectionType"))
    return "_".join(filter(None, parts)) or None
