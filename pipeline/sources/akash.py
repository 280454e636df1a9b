"""Akash: the lowest of the providers' bids per card, a floor below which nothing can be rented."""

from collections.abc import Iterator, Sequence

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, Row
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.parsing.answers import at_least_one
from pipeline.parsing.json_objects import FieldAudit, JsonObject, read_rows
from pipeline.parsing.prices import RowError, is_available
from pipeline.parsing.units import gigabytes


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Row]:
    """One flagged listing per card, memory and interface.

    Raises SourceChangedError when there is no card.
    """
    audit = FieldAudit(config)
    models = (model for answer in answers for model in audit.items(answer, "models"))
    rows = read_rows(models, _read_model, "model", "ram", "interface")
    yield from at_least_one(rows, f"{config.name}: no GPU model")
    yield from audit.warnings()


def _read_model(model: JsonObject) -> Iterator[Listing]:
    if model.get("price") is None:
        raise RowError(RejectReason.NOT_OFFERED, "nobody bid for it in the last month")
    price = model.object("price")
    yield Listing.per_gpu_hour(
        _label(model),
        "on_demand",
        price.price("min"),
        price.text("currency"),
        model.answer,
        context=_context(model),
        available=is_available(model.object("availability").get("available")),
        flag_reason=FlagReason.STARTING_PRICE,
    )


def _label(model: JsonObject) -> str:
    """The card, with the vendor's name before it."""
    return " ".join(filter(None, (model.optional_text("vendor"), model.text("model"))))


def _context(model: JsonObject) -> dict[str, str | float]:
    """What the card is, beside its name: ``80Gi`` of memory, SXM5."""
    form_factor, memory = model.optional_text("interface"), model.optional_text("ram")
    vram_gb = gigabytes(f"{memory}B") if memory else None
    return ({"form_factor": form_factor} if form_factor else {}) | ({"vram_gb": vram_gb} if vram_gb else {})
