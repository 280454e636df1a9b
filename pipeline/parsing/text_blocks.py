"""Price pages without tables: cards, which are blocks of text, and running text cut at its labels."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Literal, cast

from bs4 import BeautifulSoup, Tag

from pipeline.contracts.listing import Answer, NativeUnit, Reject
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.html import hides, is_hidden, strings_in, text_of
from pipeline.parsing.prices import RowError, cell_price
from pipeline.parsing.text import AMOUNT, MONEY_IN_TEXT, STARTING_AT, clean_text
from pipeline.parsing.units import TIMES_PER_HOUR, TimeUnit

MAX_MARK_DEPTH = 4
"""Maximum number of nested elements searched for a whole mark."""

MAX_CARD_CHARACTERS = 2_000
"""Maximum length of a card, in characters; no pattern is tried on a longer block of text."""

MAX_LABEL_CHARACTERS = 60
MAX_ITEM_TEXTS = 24

HOURLY_ROUNDING_USD = Decimal("0.006")
"""Tolerance for an hourly price shown next to a finer price: the hourly price is rounded to the cent."""

TIME_UNITS: Mapping[str, TimeUnit] = {
    "s": "second",
    "sec": "second",
    "second": "second",
    "min": "minute",
    "minute": "minute",
    "h": "hour",
    "hr": "hour",
    "hour": "hour",
}

_NEVER_SHOWN = ("script", "style", "noscript", "template")
_NOT_ROWS = (*_NEVER_SHOWN, "title", "head", "svg")
# Letters glued to the sign stay with it ("A$2.00", "GB$2.00"), so that prices not in US$ are refused.
_BEFORE_PRICE = re.compile(
    rf"(?=\b(?i:{STARTING_AT})\s[^\W\d_]{{0,3}}[$€£])"
    r"|(?<!\b(?i:from)\s)(?<!\b(?i:starts at)\s)(?<!\b(?i:starting at)\s)(?<!\b(?i:as low as)\s)"
    r"(?:(?=[^\W\d_]{3}[$€£])|(?<![^\W\d_])(?=[^\W\d_]{0,2}[$€£]))"
)
_MEMORY_UNIT = re.compile("GB", re.IGNORECASE)
_LEADING_UNIT = re.compile(r"^(?:/ ?|per )(?:gpu ?[-/]? ?)?(?:hr|hour|h)\b[.,;|]? ?", re.IGNORECASE)
_LEADING_PRICE = re.compile(
    rf"[| ]*(?P<amount>{MONEY_IN_TEXT}|[^\s\d]? ?{AMOUNT}[\w.,]*(?<![.,]))"
    r"(?: ?(?:/|\bper\b) ?(?P<unit>[\w-]{1,20}(?: ?/ ?[\w-]{0,20})*))?[| ]*",
    re.IGNORECASE,
)


# --- cards --------------------------------------------------------------------------------------------------


def cards(soup: BeautifulSoup, mark: re.Pattern[str], end: re.Pattern[str]) -> Iterator[tuple[Tag, str]]:
    """Yield the element and the text of every card.

    A card is the smallest element with one ``mark`` (text with a memory size in GB that occurs once in every
    card, such as ``Hopper · 80 GB``) and at least one ``end`` (a price, or "Contact sales"). Staying inside
    the element keeps the next card's price out. If one element contains several cards as running text, that
    text is cut after each ``end``. A mark without an end is yielded as it is, for the reader to reject.
    """
    done: dict[int, Tag] = {}
    for string in soup.find_all(string=_MEMORY_UNIT):
        element = _innermost_with(string.parent, mark)
        if element is None or is_hidden(element):
            continue
        card = _grow(element, mark, end)
        if id(card) in done:
            continue
        done[id(card)] = card
        text = text_of(card)
        if len(mark.findall(text)) == 1:
            yield card, text
        else:
            yield from ((card, piece) for piece in _cut(text, mark, end))


def card_around(heading: Tag, is_whole: Callable[[str], bool]) -> Tag | None:
    """Return the nearest element, around a card's heading, whose text is a whole card.

    Return None if the page hides the heading, or if an element that is more than a card is reached first: an
    element with another heading of the same kind, or with more text than a card.
    """
    if is_hidden(heading):
        return None
    for element in heading.parents:
        if len(element.find_all(heading.name, limit=2)) > 1 or _is_long(element):
            return None
        if is_whole(text_of(element)):
            return element
    return None


def label_before(text: str, mark: re.Pattern[str], price: re.Pattern[str]) -> tuple[str, re.Match[str]]:
    """Return a card's label (all its text before the mark) and the mark. Raises RowError for other text."""
    found = mark.search(text)
    label = text[: found.start()].strip() if found else ""
    if found is None or not label or len(label) > MAX_LABEL_CHARACTERS or price.search(label):
        raise RowError(
            RejectReason.UNREADABLE_ROW, f"not a GPU's name, its memory and its price: {text[:80]!r}"
        )
    return label, found


def _innermost_with(element: Tag | None, mark: re.Pattern[str]) -> Tag | None:
    """Return the smallest element, around a piece of text, that contains a whole mark."""
    for _ in range(MAX_MARK_DEPTH):
        if element is None or element.name in _NEVER_SHOWN or _is_long(element):
            return None
        if mark.search(text_of(element)):
            children = element.find_all(True, recursive=False)
            return None if any(mark.search(text_of(child)) for child in children) else element
        element = element.parent
    return None


def _grow(element: Tag, mark: re.Pattern[str], end: re.Pattern[str]) -> Tag:
    """Return the nearest element, around a mark, that contains an end; stop before one with a second card."""
    while not end.search(text_of(element)) and element.parent is not None and not _is_long(element.parent):
        if len(mark.findall(text_of(element.parent))) > 1:
            return element
        element = element.parent
    return element


def _is_long(element: Tag) -> bool:
    """True if the element has more text than a card. Counting stops at that length: a page can be long."""
    counted = 0
    for string in element.strings:
        counted += len(string)
        if counted > MAX_CARD_CHARACTERS:
            return True
    return False


def _cut(text: str, mark: re.Pattern[str], end: re.Pattern[str]) -> Iterator[str]:
    """Yield pieces of running text, cut after each end; a piece without a mark joins the piece before it."""
    pieces: list[str] = []
    start = 0
    for found in end.finditer(text):
        piece, start = text[start : found.end()], found.end()
        if pieces and not mark.search(piece):
            pieces[-1] += piece
        else:
            pieces.append(piece)
    if mark.search(text[start:]):
        pieces.append(text[start:])
    for piece in pieces:
        yield _LEADING_UNIT.sub("", piece.strip()).strip()


# --- running text -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Item:
    """A label, and all text up to the next label as one line."""

    label: str
    rest: str

    def reject(self, reason: RejectReason, detail: str, answer: Answer) -> Reject:
        """Return the item as a reject, with its label before the detail."""
        return Reject(reason, f"{self.label}: {detail}", f"{self.label} {self.rest[:200]}", answer)


@dataclass(frozen=True, slots=True)
class LeadingPrice:
    """A price at the start of a string: the amount and unit as written, and the text after them."""

    amount: str
    unit: str
    rest: str

    @property
    def time_unit(self) -> TimeUnit | None:
        """The price's unit of time; None if the price has none."""
        return TIME_UNITS.get(self.unit.lower())


def visible_texts(page: BeautifulSoup) -> list[str]:
    """Return the pieces of text that a visitor to the page sees, cleaned; each price starts a new piece."""
    strings = strings_in(page, lambda part: part.name in _NOT_ROWS or hides(part))
    return [
        piece.strip()
        for string in strings
        for piece in _BEFORE_PRICE.split(clean_text(string))
        if piece.strip()
    ]


def items(texts: list[str], starts: list[int], max_texts: int = MAX_ITEM_TEXTS) -> Iterator[Item]:
    """Yield the items whose labels are at ``starts``, each with at most ``max_texts`` pieces of text up to
    the next label."""
    for start, following in pairwise([*starts, len(texts)]):
        rest = texts[start + 1 : min(following, start + 1 + max_texts)]
        yield Item(texts[start], " ".join(rest))


def leading_price(text: str) -> LeadingPrice | None:
    """Return the price that the text begins with, in any currency and unit; None if there is none."""
    found = _LEADING_PRICE.match(text)
    return found and LeadingPrice(found["amount"], found["unit"] or "", text[found.end() :])


def native_unit(unit: TimeUnit, per: Literal["gpu", "instance"]) -> NativeUnit:
    """Return the native unit of a price per ``unit`` of time, for one GPU or for the whole instance."""
    return cast(NativeUnit, f"{per}_{unit}")


def agrees_with_hourly(price_usd: Decimal, unit: TimeUnit, hourly: str) -> bool:
    """True if a price per ``unit`` agrees with the hourly price (USD) shown with it. Raises RowError."""
    hourly_usd = cell_price(hourly, currencies=["USD"]).amount
    return abs(price_usd * TIMES_PER_HOUR[unit] - hourly_usd) <= HOURLY_ROUNDING_USD
