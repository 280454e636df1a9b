"""io.net: virtual machines from hosts in its network and from partners, priced per machine, before fees."""

from pipeline.sources import kit


@kit.reader("no machine with GPUs")
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """One flagged listing per machine and country. Machines without GPUs are skipped."""
    machines = audit.envelope(answer, "hardware").object("data").items("hardware")
    with_gpus = [machine for machine in machines if machine.peek("num_cards") != 0]
    return kit.read_rows(with_gpus, _read_machine, "id")


def _read_machine(machine: kit.JsonObject) -> kit.Listings:
    sold_out, form_factor = machine.get("sold_out"), machine.optional_text("interconnect")
    vram_gb = machine.optional_number("vram_per_card")
    yield machine.listing(
        machine.text("name"),
        machine.gpu_count("num_cards"),
        machine.price("price"),
        context=kit.known(form_factor=form_factor, vram_gb=vram_gb),
        region=machine.optional_text("location"),
        available=not sold_out if isinstance(sold_out, bool) else None,
        tier=_tier(machine.get("supplier"), machine.config),
        interconnect="nvlink" if machine.get("nvlink") is True else None,
        vcpus=machine.optional_number("vcpu"),
        ram_gib=machine.optional_number("memory"),
        local_disk_gb=machine.optional_number("storage"),
        # Fees are added to the price at booking.
        flag_reason=kit.FlagReason.PARTS_PRICED_APART,
    )


def _tier(supplier: object, config: kit.SourceConfig) -> str:
    """Return the tier of a machine's supplier. Raises RowError for an unknown supplier."""
    tiers = config.settings["suppliers"]
    if not isinstance(supplier, str) or supplier not in tiers:
        detail = f"the supplier {supplier!r} is none of {', '.join(tiers)}"
        raise kit.RowError(kit.RejectReason.UNKNOWN_TERMS, detail)
    return str(tiers[supplier])
