"""Hot Aisle: the plan cards of the price page, per GPU-hour.

A card is the element around one plan's heading. Prices outside of the cards are not read: the page repeats
the cards' prices above them and in its description, and says there what existing customers keep paying.
"""

import re
from collections.abc import Iterator, Sequence

from bs4 import Tag

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, Listing, PriceKind, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.html import named, page, text_of, texts_of
from pipeline.parsing.prices import RowError, agreed, cell_price
from pipeline.parsing.text import MONEY_IN_TEXT
from pipeline.parsing.text_blocks import card_around

GPU = re.compile(r"(?:AMD )?(?:Instinct )?MI\d{3}[A-Z]?", re.IGNORECASE)
PER_GPU_HOUR = frozenset({"gpu/hr", "gpu/hour", "gpu-hour", "gpu/h"})
ONE_MONTH_DAYS = 30

_COUNTS = re.compile(r"\d{1,2} ?[x×](?: ?(?:&|,|,? ?or|and) ?\d{1,2} ?[x×])*", re.IGNORECASE)
_COUNT = re.compile(r"\d{1,2}")
_PRICE = re.compile(rf"{MONEY_IN_TEXT}(?:/\S+)?")
_FORMER = re.compile(r"grandfathered|existing customers?|legacy", re.IGNORECASE)
_TERM = re.compile(r"one[- ]month minimum|1[- ]month minimum", re.IGNORECASE)
_VM, _BARE_METAL = "vm", "bare metal"


def read(answers: Sequence[Answer], config: SourceConfig) -> Iterator[Listing | Reject]:
    """One listing per card and number of GPUs. Raises SourceChangedError when there is no card."""
    for answer in answers:
        soup = page(answer)
        plans = [(heading, card) for heading in named(soup, "h2") if (card := _card(heading)) is not None]
        if not plans:
            raise SourceChangedError(f"{answer.url}: no card of a plan with GPUs")
        for heading, card in plans:
            yield from _read_card(text_of(heading), card, answer, config)
        for tag in named(soup, "p"):
            if _FORMER.search(text := text_of(tag)) and _PRICE.search(text):
                detail = f"a price that only existing customers keep: {text[:120]!r}"
                yield Reject(RejectReason.DISCONTINUED, detail, text, answer)


def _card(heading: Tag) -> Tag | None:
    """The element around a plan's heading with a GPU and a price; where there is no price, with a GPU."""
    return card_around(heading, lambda text: bool(GPU.search(text)) and "$" in text) or card_around(
        heading, lambda text: bool(GPU.search(text))
    )


def _read_card(plan: str, card: Tag, answer: Answer, config: SourceConfig) -> Iterator[Listing | Reject]:
    text = text_of(card)
    try:
        kind, tier, term_days = _terms(card, text)
        label, counts = _machines(card)
        prices = _PRICE.findall(text) or [""]
        price, currency, flag = agreed(cell_price(found, PER_GPU_HOUR, [config.currency]) for found in prices)
    except RowError as error:
        yield Reject(error.reason, f"{plan}: {error}", text, answer)
        return
    for count in counts:
        yield Listing(
            raw_label=label,
            instance_type=plan,
            gpu_count=count,
            min_gpu_count=count,
            price_kind=kind,
            term_days=term_days,
            native_price=price,
            native_currency=currency,
            native_unit="gpu_hour",
            answer=answer,
            tier=tier,
            flag_reason=flag,
            billing_increment_seconds=config.settings["increment_seconds"].get(tier),
        )


def _terms(card: Tag, text: str) -> tuple[PriceKind, str, int | None]:
    """What a card sells: virtual machines on demand, or bare metal for at least a month. Raises RowError."""
    if _FORMER.search(text):
        raise RowError(RejectReason.DISCONTINUED, "only existing customers pay this")
    words = {line.casefold() for line in texts_of(named(card, "p", "span"))} & {_VM, _BARE_METAL}
    has_term = _TERM.search(text) is not None
    if words == {_VM} and not has_term:
        return "on_demand", "vm", None
    if words == {_BARE_METAL} and has_term:
        return "reserved", "bare_metal", ONE_MONTH_DAYS
    detail = f"neither a virtual machine nor bare metal for a month: {sorted(words)}"
    raise RowError(RejectReason.UNKNOWN_TERMS, detail)


def _machines(card: Tag) -> tuple[str, list[int]]:
    """The card's GPU and the numbers of it that are one machine ("2x & 4x"). Raises RowError."""
    texts = list(dict.fromkeys(texts_of(named(card, "span", "p"))))
    labels = [text for text in texts if GPU.fullmatch(text)]
    counts = [text for text in texts if _COUNTS.fullmatch(text)]
    if len(labels) != 1 or len(counts) != 1:
        detail = f"{len(labels)} GPU models and {len(counts)} numbers of GPUs in one card"
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, detail)
    found = [int(count) for count in _COUNT.findall(counts[0])]
    if 0 in found or len(set(found)) != len(found):
        raise RowError(RejectReason.UNKNOWN_GPU_COUNT, f"{counts[0]!r} are no numbers of GPUs")
    return labels[0], found
