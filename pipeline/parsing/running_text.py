"""Price pages without tables or stable classes: the visible texts in order, cut at the labels."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from re import Pattern

from bs4 import BeautifulSoup, Comment, Tag
from bs4.element import PreformattedString

from pipeline.parsing.html import is_hidden
from pipeline.parsing.text import clean_text

_SILENT = {"script", "style", "noscript", "template", "title", "head", "svg", "sup"}

_BEFORE_PRICE = re.compile(r"(?=[$€£])")


@dataclass(frozen=True, slots=True)
class Item:
    """A label and everything written between it and the next one, as one line."""

    label: str
    rest: str


def visible_texts(page: BeautifulSoup) -> list[str]:
    """The texts that a reader of the page sees, squeezed, in order; a price in a text starts a new one."""
    found: list[str] = []
    for text in page.find_all(string=True):
        if isinstance(text, Comment | PreformattedString) or not isinstance(text.parent, Tag):
            continue
        line = clean_text(text)
        silent = text.parent.name in _SILENT or text.find_parent(list(_SILENT)) is not None
        if line and not silent and not is_hidden(text.parent):
            found.extend(part for text_part in _BEFORE_PRICE.split(line) if (part := text_part.strip()))
    return found


def items(texts: list[str], label: Pattern[str], max_texts: int = 24) -> Iterator[Item]:
    """Every text that is wholly a label, with at most ``max_texts`` texts up to the next label."""
    yield from items_at(texts, [at for at, text in enumerate(texts) if label.fullmatch(text)], max_texts)


def items_at(texts: list[str], starts: list[int], max_texts: int = 24) -> Iterator[Item]:
    """The items whose labels stand at ``starts``, for labels that their neighbours tell."""
    for start, following in pairwise([*starts, len(texts)]):
        rest = texts[start + 1 : min(following, start + 1 + max_texts)]
        yield Item(texts[start], " ".join(rest))
