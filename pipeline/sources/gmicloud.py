"""GMI Cloud: the GPU cards of the price page, each with the lowest price per GPU-hour ("from $2.00").

The page says itself that on-demand and committed prices differ and does not say which of them a card has: a
card's price is flagged, and so not ranked. A card without "from" is of no known kind, and a reject.
"""

import re
from collections.abc import Iterator, Sequence

from bs4 import Tag

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.html import named, page, text_of, texts_of
from pipeline.parsing.prices import RowError, cell_price
from pipeline.parsing.text_blocks import card_around

UNIT = "/GPU-hour"
PER_GPU_HOUR = frozenset({"gpu-hour"})

_VENDOR = re.compile(r"(?:NVIDIA|AMD) ", re.IGNORECASE)
_NOT_SOLD_YET = re.compile(r"\bpre-?\s?order\b|coming soon", re.IGNORECASE)


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """One listing per card. Raises SourceChangedError for a page without cards, and when a price per GPU-hour
    is outside of them."""
    for answer in answers:
        soup = page(answer)
        cards = [(text_of(title), card) for title in named(soup, "h3") if (card := _card(title))]
        if not cards:
            raise SourceChangedError(f"{answer.url}: no card with a GPU and {UNIT!r}")
        units = sum(text == UNIT for text in texts_of(named(soup, "span")))
        if units != len(cards):
            detail = f"{units} prices per GPU-hour in {len(cards)} cards"
            raise SourceChangedError(f"{answer.url}: {detail}")
        for label, card in cards:
            yield _read_card(label, card, answer, config)


def _card(title: Tag) -> Tag | None:
    """The element around a GPU's heading that has a price's unit."""
    return card_around(title, lambda text: UNIT in text) if _VENDOR.match(text_of(title)) else None


def _read_card(label: str, card: Tag, answer: Answer, config: SourceConfig) -> Listing | Reject:
    texts = texts_of(tag for tag in named(card, "span") if not named(tag, "span"))
    raw = {"card": label, "texts": texts}
    try:
        if len(texts) != 2 or texts[1] != UNIT:
            raise RowError(RejectReason.UNREADABLE_ROW, f"not a price and its unit: {texts}")
        if _NOT_SOLD_YET.search(texts[0]):
            raise RowError(RejectReason.NOT_OFFERED, f"not sold yet: {texts[0]!r}")
        price, currency, flag = cell_price(f"{texts[0]}{UNIT}", PER_GPU_HOUR, [config.currency])
        if flag is None:
            detail = f"{texts[0]!r} may be an on-demand or a committed price"
            raise RowError(RejectReason.UNKNOWN_PRICE_KIND, detail)
    except RowError as error:
        return Reject(error.reason, f"{label}: {error}", raw, answer)
    return Listing.per_gpu_hour(label, "on_demand", price, currency, answer, flag_reason=flag)
