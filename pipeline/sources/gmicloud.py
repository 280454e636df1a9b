"""GMI Cloud: the GPU cards on the price page, each with its lowest price per GPU-hour ("from $2.00").

The page says that on-demand and committed prices differ, but not which of the two a card shows, so a card's
price is flagged and not ranked. A price without "from" is of an unknown kind and becomes a reject.
"""

import re

from bs4 import Tag

from pipeline.sources import kit

UNIT = "/GPU-hour"
PER_GPU_HOUR = frozenset({"gpu-hour"})

_VENDOR = re.compile(r"(?:NVIDIA|AMD) ", re.IGNORECASE)
_NOT_SOLD_YET = re.compile(r"\bpre-?\s?order\b|coming soon", re.IGNORECASE)


@kit.reader()
def read(answer: kit.Answer, audit: kit.FieldAudit) -> kit.Rows:
    """One listing per card. Raises SourceChangedError for a page without cards, and for a price per GPU-hour
    outside the cards."""
    soup = kit.page(answer)
    cards = [(kit.text_of(title), card) for title in kit.named(soup, "h3") if (card := _card(title))]
    if not cards:
        raise answer.changed(f"no card with a GPU and {UNIT!r}")
    units = sum(text == UNIT for text in kit.texts_of(kit.named(soup, "span")))
    if units != len(cards):
        raise answer.changed(f"{units} prices per GPU-hour in {len(cards)} cards")
    for label, card in cards:
        yield _read_card(label, card, answer, audit.config)


def _card(title: Tag) -> Tag | None:
    """Return the element, around a GPU's heading, that contains the unit of a price."""
    return kit.card_around(title, lambda text: UNIT in text) if _VENDOR.match(kit.text_of(title)) else None


def _read_card(
    label: str, card: Tag, answer: kit.Answer, config: kit.SourceConfig
) -> kit.Listing | kit.Reject:
    texts = kit.texts_of(tag for tag in kit.named(card, "span") if not kit.named(tag, "span"))
    raw = {"card": label, "texts": texts}
    try:
        if len(texts) != 2 or texts[1] != UNIT:
            raise kit.RowError(kit.RejectReason.UNREADABLE_ROW, f"not a price and its unit: {texts}")
        if _NOT_SOLD_YET.search(texts[0]):
            raise kit.RowError(kit.RejectReason.NOT_OFFERED, f"not sold yet: {texts[0]!r}")
        price = kit.cell_price(f"{texts[0]}{UNIT}", PER_GPU_HOUR, [config.currency])
        if price.flag_reason is None:
            detail = f"{texts[0]!r} may be an on-demand or a committed price"
            raise kit.RowError(kit.RejectReason.UNKNOWN_PRICE_KIND, detail)
    except kit.RowError as error:
        return error.reject(label, raw, answer)
    return price.listing(label, 1, answer, native_unit="gpu_hour")
