"""Sesterce: the machines on its console's public page, and the lowest prices on its home page.

The console's page contains offers as data: the whole machine's price, and the regions where it is free. The
home page has a table with one "from" price per card; the console does not confirm these prices, so they are
flagged. The page's ticker repeats the prices and its advertisement contradicts them, so neither is read.
"""

import re
from typing import Any

from bs4 import Tag

from pipeline.sources import kit

FLOOR_HEADER = r"^from / GPU / hr$"

_OFFERS = re.compile(r'(?<="filteredOffers":)\[')
_FORM_FACTOR = re.compile(r"(?:SXM\d?|PCIe)", re.IGNORECASE)


@kit.joint_reader("neither machines nor a table of prices")
def read(answers: kit.Answers, audit: kit.FieldAudit) -> kit.Reading:
    """One listing per machine and region on the console, and one per card on the home page."""
    pages, refused = kit.each_answer(answers, lambda answer: list(_read_page(answer, audit)))
    yield from refused
    for _, rows in pages:
        yield from rows


def _read_page(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    if '"filteredOffers' in (text := kit.flight_text(answer).replace('\\"', '"')):
        return _read_console(text, answer, audit)
    return _read_home(answer, audit)


# --- the console --------------------------------------------------------------------------------------------


def _read_console(text: str, answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    lists = list(kit.objects_after(text, _OFFERS, answer))
    if len(lists) != 1 or not lists[0]:
        raise answer.changed(f"{len(lists)} lists of offers, or an empty one")
    offers = [audit.item(raw, answer) for raw in lists[0] if isinstance(raw, dict)]
    gpus = [offer for offer in offers if offer.peek("gpuCount") != 0]
    yield from kit.read_rows(gpus, _read_offer, "instanceId")


def _read_offer(offer: kit.JsonObject) -> kit.Rows:
    name, places = offer.text("instanceId"), offer.objects("availability")
    if not places:
        raise kit.RowError(kit.RejectReason.NOT_OFFERED, "the machine is in no region")
    machine = _machine(offer)
    prices: list[tuple[kit.PriceKind, str]] = [("on_demand", "hourlyPrice")]
    if offer.get("spotOfferAvailable") is True:
        prices.append(("spot", "hourlySpotPrice"))
    for kind, field in prices:
        try:
            price = offer.price(field)
        except kit.RowError as error:
            yield offer.reject(error, f"{name}, {kind}")
            continue
        for place in places:
            free = place.get("available")
            yield offer.listing(
                price=price,
                **machine,
                price_kind=kind,
                region=place.optional_text("name"),
                country=place.optional_text("countryCode"),
                available=free if isinstance(free, bool) else None,
            )


def _machine(offer: kit.JsonObject) -> dict[str, Any]:
    """Return the columns of an offer that depend on neither price nor region. Raises RowError."""
    parts = offer.object("configuration")
    vram_gb, form = parts.optional_number("vRamGB"), parts.optional_text("interconnect")
    return {
        "label": offer.text("gpuName"),
        "instance_type": offer.text("instanceId"),
        "gpu_count": offer.gpu_count("gpuCount"),
        "context": kit.known(vram_total_gb=vram_gb, form_factor=form),
        "tier": offer.optional_text("deploymentType"),
        "vcpus": parts.optional_number("vCpu"),
        "ram_gib": parts.optional_number("ramGB"),
        "local_disk_gb": parts.optional_number("storageGB"),
    }


# --- the home page ------------------------------------------------------------------------------------------


def _read_home(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    tables = [(tag, kit.table(tag)) for tag in kit.named(kit.page(answer), "table")]
    found = [(tag, grid) for tag, grid in tables if kit.columns(grid.headers, FLOOR_HEADER)]
    if len(found) != 1:
        raise answer.changed(f"{len(found)} tables of prices per GPU-hour")
    ((tag, grid),) = found
    if not _says_dollars_on_demand(tag, audit.config):
        raise answer.changed("the table's footer does not state on-demand prices in USD")
    audit.columns(grid.headers)
    price_at, model_at = (kit.column(grid.headers, name, answer) for name in (FLOOR_HEADER, "^model$"))
    yield from grid.other_rows(answer)
    for cells, texts in grid.full_rows():
        labels = kit.texts_of(kit.with_class(cells[model_at], "bbg-model")) or [texts[model_at]]
        forms = set(_FORM_FACTOR.findall(texts[model_at]))
        yield kit.gpu_hour_row(
            labels[0],
            "on_demand",
            texts[price_at],
            texts,
            answer,
            context={"form_factor": forms.pop()} if len(forms) == 1 else {},
            tier=audit.config.settings["floor_tier"],
            flag_reason=kit.FlagReason.STARTING_PRICE,
        )


def _says_dollars_on_demand(tag: Tag, config: kit.SourceConfig) -> bool:
    """True if a table's surroundings mention dollars and on-demand, or if it was cut out of its page."""
    around = tag.parent
    words = kit.text_of(around).casefold() if around and around.name not in ("body", "html") else ""
    return not words or (config.currency.casefold() in words and "on-demand" in words)
