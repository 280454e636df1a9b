"""Sesterce: the machines of its console's public page, and the lowest prices of its home page.

The console's page carries its offers as data: the price of the whole machine, and in which regions it is
free. The home page has a table of one price "from" per card, which the console does not confirm: these prices
are flagged. The home page repeats them in a ticker and contradicts them in an advertisement: neither is read.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from bs4 import Tag

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, PriceKind, Reject, Row, SourceChangedError
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.parsing.answers import at_least_one, each_answer
from pipeline.parsing.flight import flight_text, objects_after
from pipeline.parsing.html import named, page, text_of, texts_of, with_class
from pipeline.parsing.json_objects import FieldAudit, JsonObject, read_rows
from pipeline.parsing.prices import RowError, gpu_hour_row
from pipeline.parsing.tables import Table, column, table

FLOOR_HEADER = r"^from / GPU / hr$"

_OFFERS = re.compile(r'(?<="filteredOffers":)\[')
_FORM_FACTOR = re.compile(r"(?:SXM\d?|PCIe)", re.IGNORECASE)


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Row]:
    """One listing per machine and region of the console, and one per card of the home page.

    Raises SourceChangedError when neither is read.
    """
    audit = FieldAudit(config)
    pages, refused = each_answer(answers, lambda answer: list(_read_page(answer, audit, config)))
    yield from refused
    rows = (row for _, found in pages for row in found)
    yield from at_least_one(rows, f"{config.name}: neither machines nor a table of prices")
    yield from audit.warnings()


def _read_page(answer: Answer, audit: FieldAudit, config: SourceConfig) -> Iterator[Listing | Reject]:
    if '"filteredOffers' in (text := flight_text(answer).replace('\\"', '"')):
        return _read_console(text, answer, audit, config)
    return _read_home(answer, audit, config)


# --- the console --------------------------------------------------------------------------------------------


def _read_console(
    text: str, answer: Answer, audit: FieldAudit, config: SourceConfig
) -> Iterator[Listing | Reject]:
    lists = list(objects_after(text, _OFFERS, answer))
    if len(lists) != 1 or not lists[0]:
        raise SourceChangedError(f"{answer.url}: {len(lists)} lists of offers, or an empty one")
    offers = [audit.item(raw, answer) for raw in lists[0] if isinstance(raw, dict)]
    gpus = [offer for offer in offers if offer.peek("gpuCount") != 0]
    yield from read_rows(gpus, lambda offer: _read_offer(offer, config), "instanceId")


def _read_offer(offer: JsonObject, config: SourceConfig) -> Iterator[Listing | Reject]:
    name, places = offer.text("instanceId"), offer.objects("availability")
    if not places:
        raise RowError(RejectReason.NOT_OFFERED, "the machine is in no region")
    machine = _machine(offer, config)
    prices: list[tuple[PriceKind, str]] = [("on_demand", "hourlyPrice")]
    if offer.get("spotOfferAvailable") is True:
        prices.append(("spot", "hourlySpotPrice"))
    for kind, field in prices:
        try:
            price = offer.price(field)
        except RowError as error:
            yield offer.reject(error, f"{name}, {kind}")
            continue
        for place in places:
            free = place.get("available")
            yield Listing(
                **machine,
                price_kind=kind,
                native_price=price,
                region=place.optional_text("name"),
                country=place.optional_text("countryCode"),
                available=free if isinstance(free, bool) else None,
            )


def _machine(offer: JsonObject, config: SourceConfig) -> dict[str, Any]:
    """What an offer is, whatever its price and region. Raises RowError."""
    parts = offer.object("configuration")
    vram_gb, form = parts.optional_number("vRamGB"), parts.optional_text("interconnect")
    context = {"vram_total_gb": vram_gb, "form_factor": form}
    return {
        "raw_label": offer.text("gpuName"),
        "instance_type": offer.text("instanceId"),
        "gpu_count": offer.gpu_count("gpuCount"),
        "native_currency": config.currency,
        "native_unit": "instance_hour",
        "answer": offer.answer,
        "context": {name: value for name, value in context.items() if value},
        "tier": offer.optional_text("deploymentType"),
        "vcpus": parts.optional_number("vCpu"),
        "ram_gib": parts.optional_number("ramGB"),
        "local_disk_gb": parts.optional_number("storageGB"),
    }


# --- the home page ------------------------------------------------------------------------------------------


def _read_home(answer: Answer, audit: FieldAudit, config: SourceConfig) -> Iterator[Listing | Reject]:
    found = [(tag, grid) for tag in named(page(answer), "table") if _has_floors(grid := table(tag))]
    if len(found) != 1:
        raise SourceChangedError(f"{answer.url}: {len(found)} tables of prices per GPU-hour")
    ((tag, grid),) = found
    if not _says_dollars_on_demand(tag, config):
        raise SourceChangedError(
            f"{answer.url}: the table's footer does not say that it is on demand, in USD"
        )
    audit.columns(grid.headers)
    price_at, model_at = column(grid.headers, FLOOR_HEADER, answer), column(grid.headers, "^model$", answer)
    yield from grid.other_rows(answer)
    for cells in grid.full_rows():
        texts = texts_of(cells)
        labels = texts_of(with_class(cells[model_at], "bbg-model")) or [texts[model_at]]
        forms = set(_FORM_FACTOR.findall(texts[model_at]))
        yield gpu_hour_row(
            labels[0],
            "on_demand",
            texts[price_at],
            texts,
            answer,
            context={"form_factor": forms.pop()} if len(forms) == 1 else {},
            tier=config.settings["floor_tier"],
            flag_reason=FlagReason.STARTING_PRICE,
        )


def _has_floors(grid: Table) -> bool:
    return any(re.search(FLOOR_HEADER, header, re.IGNORECASE) for header in grid.headers)


def _says_dollars_on_demand(tag: Tag, config: SourceConfig) -> bool:
    """What the line below the table says; a table that was cut out of its page has none around it."""
    around = tag.parent
    words = text_of(around).casefold() if around is not None and around.name not in ("body", "html") else ""
    return not words or (config.currency.casefold() in words and "on-demand" in words)
