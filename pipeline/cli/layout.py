"""The layout of a table: which columns fit a terminal, how wide each is, and its lines."""

import re
import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len, set_cell_size

GAP = "  "
LEAST_TEXT = 18
"""A column of text gets room for its longest cell or so many letters before the next column gets any."""
MUCH_TEXT = 36
"""The same for the most important column, which says what a row is about."""
LEAST_CUT_TEXT = 5
"""Where columns must be shown, their text is cut to no less."""
HEADING_LINES = 3
SHORT_HEADING = 10

_NUMBERS = (
    "DECIMAL", "DOUBLE", "FLOAT", "INTEGER", "BIGINT", "SMALLINT", "TINYINT", "HUGEINT", "NUMBER",
    "UINTEGER", "UBIGINT", "USMALLINT", "UTINYINT", "UHUGEINT",
)  # fmt: skip
_MOMENTS = ("DATE", "TIME", "BOOLEAN", "UUID")


@dataclass(frozen=True, slots=True)
class _Column:
    """What a column would need, in cells of the terminal. Numbers, days and moments are never cut."""

    place: int
    heading: str
    cells: int
    is_number: bool
    is_text: bool
    least_text: int = LEAST_TEXT
    wraps: bool = False
    most: int = sys.maxsize

    @property
    def least(self) -> int:
        """With its heading in several lines, and its text cut."""
        cells = min(self.cells, self.least_text) if self.is_text else self.cells
        return min(max(cells, _least_heading(self.heading)), self.most)

    @property
    def whole(self) -> int:
        """With nothing cut, and its heading in as few lines as that allows."""
        return max(self.cells, self.least)


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns that are shown, in their order, and the headings of those that have no room."""

    columns: tuple[_Column, ...]
    widths: tuple[int, ...]
    left_out: tuple[str, ...]
    may_cut: bool

    def heading(self) -> list[str]:
        """The lines of the heading; the last of each column's stands on the cells."""
        broken = [
            _heading_lines(column.heading, size)
            for column, size in zip(self.columns, self.widths, strict=True)
        ]
        height = max(map(len, broken), default=0)
        return [
            self._joined([""] * (height - len(lines)) + lines for lines in broken)[index]
            for index in range(height)
        ]

    def line(self, cells: Sequence[str]) -> str:
        """One row; of several lines where text that wraps needs them."""
        blocks = [
            _in_lines(cells[column.place], size) if column.wraps and self.may_cut else [cells[column.place]]
            for column, size in zip(self.columns, self.widths, strict=True)
        ]
        height = max(map(len, blocks), default=1)
        return "\n".join(self._joined([*lines, *[""] * (height - len(lines))] for lines in blocks))

    def _joined(self, blocks: Iterable[list[str]]) -> list[str]:
        """Lines of blocks side by side."""
        rows = zip(*blocks, strict=True)
        return [GAP.join(map(self._fitted, row, self.columns, self.widths)).rstrip() for row in rows]

    def _fitted(self, text: str, column: _Column, size: int) -> str:
        if cell_len(text) > size and self.may_cut and column.is_text:
            text = f"{set_cell_size(text, size - 1).rstrip()}…"
        blanks = " " * (size - cell_len(text))
        return blanks + text if column.is_number else text + blanks


def laid_out(
    headings: Sequence[str],
    kinds: Sequence[str],
    rows: Sequence[Sequence[str]],
    columns: int | None,
    first: Sequence[str] = (),
    in_lines: Collection[str] = (),
    always: int = 1,
) -> Layout:
    """The layout of these rows in so many columns of a terminal; None is as wide as it needs to be.

    ``kinds`` are DuckDB's types; the columns ``in_lines`` are text that is broken into lines and not cut.
    ``first`` are the headings by importance, else their own order counts: columns are shown up to the one
    that has no room; the first ``always`` have some, whatever that cuts.
    """
    found = [
        _Column(
            place,
            heading,
            max((cell_len(row[place]) for row in rows), default=0),
            kinds[place].startswith(_NUMBERS) and not kinds[place].endswith("]"),
            not kinds[place].startswith((*_NUMBERS, *_MOMENTS)) or kinds[place].endswith("]"),
            wraps=heading in in_lines,
        )
        for place, heading in enumerate(headings)
    ]
    if columns is None:
        widths = tuple(max(each.cells, cell_len(each.heading)) for each in found)
        return Layout(tuple(found), widths, (), may_cut=False)
    by_importance = sorted(found, key=lambda each: _importance(each, first))
    if by_importance:
        by_importance[0] = replace(by_importance[0], least_text=MUCH_TEXT)
    by_importance[:always] = _narrowed(by_importance[:always], columns)
    chosen = _that_fit(by_importance, columns)
    widths_of = _widths(chosen, columns)
    shown = tuple(sorted(chosen, key=lambda each: each.place))
    left_out = tuple(each.heading for each in by_importance if each.place not in widths_of)
    return Layout(shown, tuple(widths_of[each.place] for each in shown), left_out, may_cut=True)


def _importance(column: _Column, first: Sequence[str]) -> tuple[int, int]:
    return (first.index(column.heading) if column.heading in first else len(first), column.place)


def _narrowed(wanted: Sequence[_Column], columns: int) -> list[_Column]:
    """These columns, the widest text narrowed until all of them fit."""
    narrowed = list(wanted)
    while sum(each.least + len(GAP) for each in narrowed) > columns + len(GAP):
        widest = max(
            (each for each in narrowed if each.is_text and each.least > LEAST_CUT_TEXT),
            key=lambda each: each.least,
            default=None,
        )
        if len(narrowed) == 1 or widest is None:
            break
        narrowed[narrowed.index(widest)] = replace(widest, most=widest.least - 1)
    return narrowed


def _that_fit(by_importance: Sequence[_Column], columns: int) -> list[_Column]:
    """The most important columns; at least one."""
    chosen: list[_Column] = []
    room = columns + len(GAP)
    for column in by_importance:
        room -= column.least + len(GAP)
        if room < 0 and chosen:
            break
        chosen.append(column)
    return chosen


def _widths(chosen: Sequence[_Column], columns: int) -> dict[int, int]:
    """The width of each column by its place: what is left goes to text that is cut, up to a length, then to
    headings in several lines, then to longer text, a cell at a time and evenly."""
    widths = {each.place: each.least for each in chosen}
    room = columns + len(GAP) - sum(size + len(GAP) for size in widths.values())
    if room < 0:  # the only column: no narrower than the terminal, unless it cannot be cut
        (only,) = chosen
        return {only.place: columns if only.is_text else only.least}
    for targets in (
        {each.place: max(each.least, min(each.whole, MUCH_TEXT)) for each in chosen},
        {each.place: cell_len(each.heading) for each in chosen},
        {each.place: each.whole for each in chosen},
    ):
        while room and (growing := [place for place in widths if widths[place] < targets[place]]):
            for place in growing[:room]:
                widths[place] += 1
            room -= len(growing[:room])
    return widths


def _in_lines(text: str, size: int) -> list[str]:
    """Text broken between words; a name in one word after its underscores."""
    if " " not in text:
        return _heading_lines(text, size)
    return textwrap.wrap(text, size, break_on_hyphens=False) or [""]


def _heading_lines(heading: str, size: int) -> list[str]:
    """A heading broken at spaces and after underscores, never within a word."""
    lines: list[str] = []
    for word in re.findall(r"[^\s_]*(?:_+|\s+|$)", heading):
        if lines and cell_len((lines[-1] + word).rstrip()) <= size:
            lines[-1] += word
        elif word:
            lines.append(word)
    return [line.rstrip() for line in lines] or [""]


def _least_heading(heading: str) -> int:
    """The least width at which a heading has at most HEADING_LINES lines; a short one has one."""
    words = _heading_lines(heading, 0)
    size = max(*map(cell_len, words), min(cell_len(heading), SHORT_HEADING))
    while len(_heading_lines(heading, size)) > HEADING_LINES:
        size += 1
    return size
