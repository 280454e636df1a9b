"""Hot Aisle: the plan cards on the price page, with prices per GPU-hour.

A card is the element around one plan's heading. Prices outside the cards are not read: there the page repeats
the cards' prices, and states prices for existing customers.
"""

import re

from bs4 import Tag

from pipeline.sources import kit

GPU = re.compile(r"(?:AMD )?(?:Instinct )?MI\d{3}[A-Z]?", re.IGNORECASE)
PER_GPU_HOUR = frozenset({"gpu/hr", "gpu/hour", "gpu-hour", "gpu/h"})
ONE_MONTH_DAYS = 30

_COUNTS = re.compile(r"\d{1,2} ?[x×](?: ?(?:&|,|,? ?or|and) ?\d{1,2} ?[x×])*", re.IGNORECASE)
_COUNT = re.compile(r"\d{1,2}")
_PRICE = re.compile(rf"{kit.MONEY_IN_TEXT}(?:/\S+)?")
_FORMER = re.compile(r"grandfathered|existing customers?|legacy", re.IGNORECASE)
_TERM = re.compile(r"one[- ]month minimum|1[- ]month minimum", re.IGNORECASE)
_VM, _BARE_METAL = "vm", "bare metal"


@kit.reader()
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """One listing per card and number of GPUs. Raises SourceChangedError if there is no card."""
    soup = kit.page(answer)
    plans = [(heading, card) for heading in kit.named(soup, "h2") if (card := _card(heading)) is not None]
    if not plans:
        raise answer.changed("no card of a plan with GPUs")
    for heading, card in plans:
        yield from _read_card(kit.text_of(heading), card, answer, audit.config)
    for tag in kit.named(soup, "p"):
        if _FORMER.search(text := kit.text_of(tag)) and _PRICE.search(text):
            detail = f"a price that only existing customers keep: {text[:120]!r}"
            yield kit.Reject(kit.RejectReason.DISCONTINUED, detail, text, answer)


def _card(heading: Tag) -> Tag | None:
    """Return the element, around a plan's heading, that contains a GPU and a price, or else only a GPU."""
    return kit.card_around(heading, lambda text: bool(GPU.search(text)) and "$" in text) or kit.card_around(
        heading, lambda text: bool(GPU.search(text))
    )


def _read_card(plan: str, card: Tag, answer: kit.Answer, config: kit.SourceConfig) -> kit.Rows:
    text = kit.text_of(card)
    try:
        kind, tier, term_days = _terms(card, text)
        label, counts = _machines(card)
        prices = _PRICE.findall(text) or [""]
        price = kit.agreed(kit.cell_price(found, PER_GPU_HOUR, [config.currency]) for found in prices)
    except kit.RowError as error:
        yield error.reject(plan, text, answer)
        return
    for count in counts:
        yield price.listing(
            label,
            count,
            answer,
            instance_type=plan,
            min_gpu_count=count,
            price_kind=kind,
            term_days=term_days,
            native_unit="gpu_hour",
            tier=tier,
            billing_increment_seconds=config.settings["increment_seconds"].get(tier),
        )


def _terms(card: Tag, text: str) -> tuple[kit.PriceKind, str, int | None]:
    """Return a card's terms: virtual machines on demand, or bare metal for at least a month. Raises
    RowError."""
    if _FORMER.search(text):
        raise kit.RowError(kit.RejectReason.DISCONTINUED, "only existing customers pay this")
    words = {line.casefold() for line in kit.texts_of(kit.named(card, "p", "span"))} & {_VM, _BARE_METAL}
    has_term = _TERM.search(text) is not None
    if words == {_VM} and not has_term:
        return "on_demand", "vm", None
    if words == {_BARE_METAL} and has_term:
        return "reserved", "bare_metal", ONE_MONTH_DAYS
    detail = f"neither a virtual machine nor bare metal for a month: {sorted(words)}"
    raise kit.RowError(kit.RejectReason.UNKNOWN_TERMS, detail)


def _machines(card: Tag) -> tuple[str, list[int]]:
    """Return the card's GPU and the possible GPU counts per machine ("2x & 4x"). Raises RowError."""
    texts = list(dict.fromkeys(kit.texts_of(kit.named(card, "span", "p"))))
    labels = [text for text in texts if GPU.fullmatch(text)]
    counts = [text for text in texts if _COUNTS.fullmatch(text)]
    if len(labels) != 1 or len(counts) != 1:
        detail = f"{len(labels)} GPU models and {len(counts)} numbers of GPUs in one card"
        raise kit.RowError(kit.RejectReason.UNKNOWN_GPU_COUNT, detail)
    found = [int(count) for count in _COUNT.findall(counts[0])]
    if 0 in found or len(set(found)) != len(found):
        raise kit.RowError(kit.RejectReason.UNKNOWN_GPU_COUNT, f"{counts[0]!r} are not numbers of GPUs")
    return labels[0], found
