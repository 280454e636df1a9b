"""Strict reading of price pages: exactly-one selectors and tables whose columns are found by header text."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.element import PreformattedString

from pipeline.contracts.listing import Answer, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.text import clean_text

HIDDEN_CLASSES = frozenset({"hide", "hidden", "w-condition-invisible"})
_DISPLAY_NONE = re.compile(r"display\s*:\s*none", re.IGNORECASE)

MAX_SPAN = 50
"""A page that says colspan="100000" gets no more columns than this."""


def page(answer: Answer) -> BeautifulSoup:
    """The answer as a parsed page.

    Raises SourceChangedError for one that breaks off inside a text or a tag: half a price is a price too.
    """
    text = answer.text().rstrip()
    if "<" in text and not text.endswith(">"):
        raise SourceChangedError(f"{answer.url}: the page breaks off: it ends in {text[-40:]!r}")
    return BeautifulSoup(text, "lxml")


def json_ld(soup: BeautifulSoup, answer: Answer) -> list[Any]:
    """What each JSON-LD script of a page holds, numbers with a point as Decimal.

    Raises SourceChangedError for one that is not JSON.
    """
    scripts = soup.find_all("script", type="application/ld+json")
    try:
        return [json.loads(script.get_text(), parse_float=Decimal) for script in scripts]
    except ValueError as error:
        raise SourceChangedError(f"{answer.url}: the page's JSON-LD cannot be read ({error})") from error


def text_of(tag: Tag) -> str:
    """The squeezed text of a tag, without superscript footnotes, scripts, styles and comments."""
    unread = {
        id(part) for note in tag.find_all(["sup", "script", "style"]) for part in note.find_all(string=True)
    }
    parts = (part for part in tag.find_all(string=True) if not isinstance(part, PreformattedString))
    return clean_text(" ".join(part for part in parts if id(part) not in unread))


def exactly_one(found: Iterable[Tag], what: str, answer: Answer) -> Tag:
    """The one tag there must be. Raises SourceChangedError for none and for several."""
    tags = list(found)
    if len(tags) != 1:
        raise SourceChangedError(f"{answer.url}: expected exactly one {what}, found {len(tags)}")
    return tags[0]


def is_hidden(tag: Tag) -> bool:
    """Is the tag, or something around it, not shown to a reader of the page?"""
    for part in (tag, *tag.parents):
        style = part.get("style")
        if (
            part.has_attr("hidden")
            or HIDDEN_CLASSES & set(part.get_attribute_list("class"))
            or (isinstance(style, str) and _DISPLAY_NONE.search(style))
        ):
            return True
    return False


def column(headers: Sequence[str], pattern: str, answer: Answer) -> int:
    """The one column whose header matches. Raises SourceChangedError for none and for several."""
    found = columns(headers, pattern)
    if len(found) != 1:
        raise SourceChangedError(
            f"{answer.url}: expected one column like {pattern!r}, found {len(found)} in {list(headers)}"
        )
    return found[0]


def columns(headers: Sequence[str], pattern: str) -> list[int]:
    """Every column whose header matches, ignoring case."""
    return [at for at, header in enumerate(headers) if re.search(pattern, header, re.IGNORECASE)]


@dataclass(frozen=True, slots=True)
class Table:
    """A ``<table>`` laid out as a grid. A cell that spans columns stands in each of them."""

    headers: list[str]
    rows: list[list[Tag]]

    def texts(self) -> list[list[str]]:
        """The text of every cell, row by row."""
        return [[text_of(cell) for cell in row] for row in self.rows]

    def rows_under_headers(self, answer: Answer) -> Iterator[list[str] | Reject]:
        """The texts of the rows; a row with more or fewer cells than headers is a reject."""
        for texts in self.texts():
            if len(texts) == len(self.headers):
                yield texts
            else:
                detail = f"{len(texts)} cells under {self.headers}"
                yield Reject(RejectReason.UNREADABLE_ROW, detail, texts, answer)

    def cell(self, texts: list[str], pattern: str) -> str | None:
        """A row's text in the one column whose header matches; None where none or several do."""
        found = columns(self.headers, pattern)
        return texts[found[0]] if len(found) == 1 else None


def table(tag: Tag) -> Table:
    """Lay out a table; headers of several header rows are joined top to bottom ("Reserved 7-30 days").

    Header rows are those in ``<thead>``, or else the leading rows made of ``<th>`` only. Works on the
    invalid tables that site builders write (``<div>`` between ``<tbody>`` and ``<tr>``).
    """
    trs = [tr for tr in tag.find_all("tr") if tr.find_parent("table") is tag]
    grid = _grid(trs)
    count = _header_rows(trs)
    # Header rows of different widths are not above the columns that they name: then nothing is named.
    aligned = len({len(row) for row in grid[:count]}) <= 1
    headers = [
        " ".join(dict.fromkeys(text for cell in cells if aligned and (text := text_of(cell))))
        for cells in _columns(grid[:count])
    ]
    return Table(headers, [row for row in grid[count:] if row])


def _header_rows(trs: list[Tag]) -> int:
    for at, tr in enumerate(trs):
        if tr.find_parent("thead") is None and tr.find("td") is not None:
            return at
    return len(trs)


def _grid(trs: list[Tag]) -> list[list[Tag]]:
    rows: list[list[Tag]] = []
    spanning: dict[int, tuple[int, Tag]] = {}
    for tr in trs:
        row: list[Tag] = []
        for cell in (c for c in tr.find_all(["td", "th"]) if c.find_parent("tr") is tr):
            _fill_spanning(row, spanning)
            for _ in range(_span(cell, "colspan")):
                if (height := _span(cell, "rowspan")) > 1:
                    spanning[len(row)] = (height - 1, cell)
                row.append(cell)
        _fill_spanning(row, spanning)
        rows.append(row)
    return rows


def _fill_spanning(row: list[Tag], spanning: dict[int, tuple[int, Tag]]) -> None:
    while len(row) in spanning:
        left, cell = spanning.pop(len(row))
        if left > 1:
            spanning[len(row)] = (left - 1, cell)
        row.append(cell)


def _columns(rows: list[list[Tag]]) -> list[list[Tag]]:
    width = max((len(row) for row in rows), default=0)
    return [[row[at] for row in rows if at < len(row)] for at in range(width)]


def _span(cell: Tag, name: str) -> int:
    said = str(cell.get(name, "1")).strip()
    return min(int(said), MAX_SPAN) if said.isascii() and said.isdigit() and int(said) > 0 else 1
