"""Pages that show prices as cards: blocks of text without a table."""

import re
from collections.abc import Iterator

from bs4 import BeautifulSoup, Tag

from pipeline.parsing.html import is_hidden, text_of

MAX_MARK_DEPTH = 4
"""A mark may be spread over elements this deep."""

_MEMORY_UNIT = re.compile("GB", re.IGNORECASE)
_UNREAD = ("script", "style", "noscript", "template")
_LEADING_UNIT = re.compile(r"^(?:/ ?|per )(?:gpu ?[-/]? ?)?(?:hr|hour|h)\b[.,;|]? ?", re.IGNORECASE)
MAX_CARD_CHARACTERS = 2_000
"""A block of text longer than this is not a card, and no pattern is tried on it."""


def cards(soup: BeautifulSoup, mark: re.Pattern[str], end: re.Pattern[str]) -> Iterator[tuple[Tag, str]]:
    """The text of every card and the element that holds it.

    A card is the smallest element with one ``mark`` (what every card has once, with a memory in GB in it:
    ``Hopper · 80 GB``) and at least one ``end`` (a price, or "Contact sales"). Staying inside the element
    keeps the next card's price out. Where one element holds several cards as running text, that text is cut
    behind each ``end``. A mark that has no end of its own is yielded as it is, for the reader to reject.
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


def _innermost_with(element: Tag | None, mark: re.Pattern[str]) -> Tag | None:
    """The element close around a piece of text that holds a whole mark while none of its children does."""
    for _ in range(MAX_MARK_DEPTH):
        if element is None or element.name in _UNREAD:
            return None
        if _is_long(element):
            return None
        if mark.search(text_of(element)):
            children = element.find_all(True, recursive=False)
            return None if any(mark.search(text_of(child)) for child in children) else element
        element = element.parent
    return None


def _grow(element: Tag, mark: re.Pattern[str], end: re.Pattern[str]) -> Tag:
    """Outwards until the card has its end, but never so far that a second card comes in."""
    while not end.search(text_of(element)) and element.parent is not None and not _is_long(element.parent):
        if len(mark.findall(text_of(element.parent))) > 1:
            return element
        element = element.parent
    return element


def _is_long(element: Tag) -> bool:
    """Whether the element holds more text than a card; it stops counting there, however big the page is."""
    counted = 0
    for string in element.strings:
        counted += len(string)
        if counted > MAX_CARD_CHARACTERS:
            return True
    return False


def _cut(text: str, mark: re.Pattern[str], end: re.Pattern[str]) -> Iterator[str]:
    """Running text cut behind each end; pieces without a mark belong to the piece before them."""
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
