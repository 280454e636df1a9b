"""Price tables: grids whose columns are found by the text of their headers."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import count, takewhile

from bs4 import BeautifulSoup, Tag

from pipeline.contracts.listing import Answer, PriceKind, Reject
from pipeline.contracts.reject_reasons import FlagReason, RejectReason
from pipeline.parsing.dates import is_superseded, validity
from pipeline.parsing.html import is_hidden, named, texts_of
from pipeline.parsing.prices import RowError, cell_price
from pipeline.parsing.terms import price_kind, term_days
from pipeline.parsing.text import UnreadableError

MAX_SPAN = 50
"""Maximum number of rows or columns that a cell may span."""


def column(headers: Sequence[str], pattern: str, answer: Answer) -> int:
    """Return the only column whose header matches. Raises SourceChangedError if none or several match."""
    found = columns(headers, pattern)
    if len(found) != 1:
        raise answer.changed(f"expected one column like {pattern!r}, found {len(found)} in {list(headers)}")
    return found[0]


def columns(headers: Sequence[str], pattern: str) -> list[int]:
    """Return every column whose header matches, ignoring case."""
    return [at for at, header in enumerate(headers) if re.search(pattern, header, re.IGNORECASE)]


@dataclass(frozen=True, slots=True)
class PriceColumn:
    """A column of prices, with its terms, flagged if the prices are no longer valid on the answer's day."""

    at: int
    header: str
    kind: PriceKind
    term_days: int | None = None
    tier: str | None = None
    effective_from: date | None = None
    flag_reason: FlagReason | None = None

    @property
    def terms(self) -> tuple[PriceKind, int | None, str | None]:
        """Kind, term and tier: if two columns agree in all three, the later column supersedes the earlier."""
        return self.kind, self.term_days, self.tier


def price_columns(headers: Sequence[str], answer: Answer) -> list[PriceColumn]:
    """Return the columns whose header names a kind of price or the term of a reservation, with their
    validity.

    Raises SourceChangedError for a header with a date that cannot be read.
    """
    found = []
    for at, header in enumerate(headers):
        kind, term = price_kind(header), term_days(header)
        if kind or term:
            reserved = kind is None or kind == "reserved"
            found.append(PriceColumn(at, header, kind or "reserved", term if reserved else None))
    return with_validity(found, answer)


def with_validity(prices: Sequence[PriceColumn], answer: Answer) -> list[PriceColumn]:
    """Return the columns with the validity that their headers state. Raises SourceChangedError for a date
    that cannot be read."""
    try:
        stated = [(price, validity(price.header, answer)) for price in prices]
    except UnreadableError as error:
        raise answer.changed(str(error)) from error
    found = []
    for price, valid in stated:
        alike = [other for each, other in stated if each.terms == price.terms]
        flag = FlagReason.SUPERSEDED if is_superseded(valid, alike, answer) else None
        found.append(replace(price, effective_from=valid.first_day, flag_reason=flag))
    return found


def require_on_demand(prices: Sequence[PriceColumn], headers: Sequence[str], answer: Answer) -> None:
    """Raise SourceChangedError unless there are on-demand columns and no two of them take effect on the same
    day."""
    days = [price.effective_from for price in prices if price.kind == "on_demand"]
    if not days or len(set(days)) < len(days):
        raise answer.changed(f"not one on-demand column in {list(headers)}")


def prices_in_unknown_columns(
    headers: Sequence[str], texts: Sequence[str], known: Collection[int], answer: Answer
) -> Iterator[Reject]:
    """Yield a reject for each price in a column that the reader does not know."""
    for at, text in enumerate(texts):
        if at in known:
            continue
        try:
            cell_price(text)
        except RowError:
            continue
        detail = f"{text!r} is a price in the unknown column {headers[at]!r}"
        yield Reject(RejectReason.UNKNOWN_PRICE_KIND, detail, list(texts), answer)


@dataclass(frozen=True, slots=True)
class Table:
    """A grid of cells under headers. A cell that spans several columns or rows is repeated in each."""

    headers: list[str]
    rows: list[list[Tag]]

    def full_rows(self) -> list[tuple[list[Tag], list[str]]]:
        """Return the rows with one cell under each header, and the text of each cell."""
        return [(row, texts_of(row)) for row in self.rows if len(row) == len(self.headers)]

    def other_rows(self, answer: Answer) -> Iterator[Reject]:
        """Yield a reject for each row with more or fewer cells than headers."""
        for row in self.rows:
            if len(row) != len(self.headers):
                detail = f"the row has {len(row)} cells under {len(self.headers)} headers"
                yield Reject(RejectReason.UNREADABLE_ROW, detail, texts_of(row), answer)

    def text(self, texts: Sequence[str], pattern: str) -> str | None:
        """Return a row's text in the one column whose header matches; None if none or several match."""
        found = columns(self.headers, pattern)
        return texts[found[0]] if len(found) == 1 else None


def visible_tables(soup: BeautifulSoup) -> list[Table]:
    """Return the tables that a page does not hide."""
    return [table(tag) for tag in soup.find_all("table") if not is_hidden(tag)]


def table(tag: Tag) -> Table:
    """Return a ``<table>`` as a grid; the rows of a header are joined from top to bottom ("Reserved 7-30
    days").

    Header rows are those in ``<thead>``, or else the leading rows that consist only of ``<th>`` cells. Works
    even on the invalid tables that site builders produce (``<div>`` between ``<tbody>`` and ``<tr>``).
    """
    trs = [tr for tr in tag.find_all("tr") if tr.find_parent("table") is tag]
    grid = _grid(trs)
    height = _header_rows(trs)
    above, rows = grid[:height], [row for row in grid[height:] if row]
    widths = {len(row) for row in above}
    if len(widths) > 1:
        # Header rows of different widths are not aligned with the columns, so no column gets a name.
        return Table([""] * max(widths), rows)
    headers = [" ".join(dict.fromkeys(filter(None, texts_of(cells)))) for cells in zip(*above, strict=True)]
    return Table(headers, rows)


def _header_rows(trs: list[Tag]) -> int:
    for at, tr in enumerate(trs):
        if tr.find_parent("thead") is None and named(tr, "td"):
            return at
    return len(trs)


def _grid(trs: list[Tag]) -> list[list[Tag]]:
    """Return the cells of each row; a cell that spans several columns or rows is repeated in each."""
    rows: list[dict[int, Tag]] = [{} for _ in trs]
    for at, tr in enumerate(trs):
        start = 0
        for cell in (c for c in named(tr, "td", "th") if c.find_parent("tr") is tr):
            while start in rows[at]:
                start += 1
            for column in range(start, start + _span(cell, "colspan")):
                for row in rows[at : at + _span(cell, "rowspan")]:
                    row[column] = cell
    return [[row[column] for column in takewhile(row.__contains__, count())] for row in rows]


def _span(cell: Tag, name: str) -> int:
    stated = str(cell.get(name, "1")).strip()
    return min(int(stated), MAX_SPAN) if stated.isascii() and stated.isdigit() and int(stated) > 0 else 1
