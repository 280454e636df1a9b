"""io.net: virtual machines of its network's hosts and of partners, priced whole and without fees."""

from collections.abc import Iterator, Sequence
from functools import partial

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, Row
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.parsing.answers import at_least_one
from pipeline.parsing.json_objects import FieldAudit, JsonObject, read_rows
from pipeline.parsing.prices import RowError


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Row]:
    """One flagged listing per machine and country. Machines without GPUs are skipped.

    Raises SourceChangedError when no machine has GPUs.
    """
    audit = FieldAudit(config)
    machines = (
        machine
        for answer in answers
        for machine in audit.envelope(answer, "hardware").object("data").items("hardware")
        if machine.peek("num_cards") != 0
    )
    rows = read_rows(machines, partial(_read_machine, config=config), "id")
    yield from at_least_one(rows, f"{config.name}: no machine with GPUs")
    yield from audit.warnings()


def _read_machine(machine: JsonObject, config: SourceConfig) -> Iterator[Listing]:
    sold_out, form_factor = machine.get("sold_out"), machine.optional_text("interconnect")
    vram_gb = machine.optional_number("vram_per_card")
    yield Listing(
        raw_label=machine.text("name"),
        gpu_count=machine.gpu_count("num_cards"),
        price_kind="on_demand",
        native_price=machine.price("price"),
        native_currency="USD",
        native_unit="instance_hour",
        answer=machine.answer,
        context=({"form_factor": form_factor} if form_factor else {})
        | ({"vram_gb": vram_gb} if vram_gb else {}),
        region=machine.optional_text("location"),
        available=not sold_out if isinstance(sold_out, bool) else None,
        tier=_tier(machine.get("supplier"), config),
        interconnect="nvlink" if machine.get("nvlink") is True else None,
        vcpus=machine.optional_number("vcpu"),
        ram_gib=machine.optional_number("memory"),
        local_disk_gb=machine.optional_number("storage"),
        # Fees are added to it when it is booked.
        flag_reason=FlagReason.PARTS_PRICED_APART,
    )


def _tier(supplier: object, config: SourceConfig) -> str:
    """Whose machine it is. Raises RowError for a supplier that is not known."""
    tiers = config.settings["suppliers"]
    if not isinstance(supplier, str) or supplier not in tiers:
        detail = f"the supplier {supplier!r} is none of {', '.join(tiers)}"
        raise RowError(RejectReason.UNKNOWN_TERMS, detail)
    return str(tiers[supplier])
