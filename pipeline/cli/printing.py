"""Answers at the command line: tables for people; CSV, JSON and records for programs.

A terminal gets as many of the first columns as fit its width, and the first rows of a long result; a pipe
gets every column, and every row as it arrives.
"""

import csv
import json
import math
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import accumulate, chain, islice, repeat
from typing import Any

from rich.cells import cell_len, set_cell_size

from pipeline.cli.columns import GAP, Column, broken
from pipeline.cli.terminal import bold, say, width, wrapped
from pipeline.export.cells import safe_text
from pipeline.parsing.printable import printable
from pipeline.questions.tables import cell_text
from pipeline.warehouse.query import Result, Stream

ROWS_SHOWN = 40
"""The number of rows of a long result that a terminal shows."""

RECORDS_SHOWN = 10
"""The number of rows that a terminal shows if each takes several lines."""

ROWS_LAID_OUT = 200
"""Number of rows in a batch that is laid out together. In a pipe, column widths fit the first batch, and a
longer cell further down shifts the rest of its line; a terminal gets a table with headings for each batch."""

NAMED = 8
"""The most hidden columns that a note lists by name."""

LEAST_TEXT = 15
"""Characters that a text column keeps when it is cut to make room for the next column."""

FIRST_TEXT = 36
"""Characters of the first column (the one that identifies the rows) that must fit before others are shown."""

SHORT_HEADING = 10
"""Longest heading, in characters, that stays on one line above narrower values."""

_NUMBERS = (
    "DECIMAL", "DOUBLE", "FLOAT", "INTEGER", "BIGINT", "SMALLINT", "TINYINT", "HUGEINT", "NUMBER",
    "UINTEGER", "UBIGINT", "USMALLINT", "UTINYINT", "UHUGEINT",
)  # fmt: skip
_MOMENTS = ("DATE", "TIME", "BOOLEAN", "UUID")


def show(
    answer: Result | Stream,
    form: str,
    *,
    in_lines: Collection[str] = (),
    always: int = 1,
    every: bool = True,
    every_column: bool = False,
) -> None:
    """Print an answer as a "table" for people, "csv", "json" (one array), "jsonl" (an object per line) or
    "record" (a line per value).

    In a table, text in the columns ``in_lines`` is wrapped, not cut, and the first ``always`` columns are
    never hidden. Unless ``every`` is true, a terminal gets only the first ROWS_SHOWN rows. With
    ``every_column``, an answer with more columns than a terminal has room for is printed as records.
    """
    if form == "json":
        _show_json(answer)
    elif form == "jsonl":
        for line in _json_objects(answer):
            print(line)
    elif form == "csv":
        _show_csv(answer)
    else:
        rows = iter(answer.rows)
        if every_column and form == "table" and (terminal_cells := width()):
            begin = list(islice(rows, ROWS_LAID_OUT))
            columns = _measured(answer, [[cell_text(value) for value in row] for row in begin], in_lines)
            rows = chain(begin, rows)
            if _fitting(columns, terminal_cells, always) < len(columns):
                form = "record"
        shown: Iterable[tuple[Any, ...]] = rows
        cut = sys.stdout.isatty() and not every
        most = ROWS_SHOWN if form == "table" else RECORDS_SHOWN
        if cut:
            shown = list(islice(rows, most))
        any_row = (
            _show_records(answer.columns, shown)
            if form == "record"
            else _show_table(answer, shown, in_lines, always)
        )
        sys.stdout.flush()
        if not any_row and answer.columns:
            say("no rows")
        if cut and next(rows, None) is not None:
            total = f" of {len(answer.rows):,}" if isinstance(answer.rows, list) else ""
            say(f"first {most}{total} rows (--all shows all of them)")
    sys.stdout.flush()


def texts(columns: Collection[str], rows: Iterable[Mapping[str, Any]]) -> Result:
    """Return the ``columns`` of rows as a result; all values are strings."""
    cells = [tuple(row[name] for name in columns) for row in rows]
    return Result(tuple(columns), ("VARCHAR",) * len(columns), cells)


def _json_objects(answer: Result | Stream) -> Iterator[str]:
    for row in answer.rows:
        finite = {name: _finite(value) for name, value in zip(answer.columns, row, strict=True)}
        yield json.dumps(finite, default=plain, ensure_ascii=False)


def show_object(value: dict[str, Any]) -> None:
    """Print one JSON object: on a terminal with one line per member, otherwise all on one line."""
    indent = 2 if sys.stdout.isatty() else None
    print(json.dumps(_finite(value), default=plain, ensure_ascii=False, indent=indent))


def _show_json(answer: Result | Stream) -> None:
    before = "["
    for line in _json_objects(answer):
        sys.stdout.write(f"{before}\n{line}")
        before = ","
    print("\n]" if before == "," else "[]")


def _finite(value: Any) -> Any:
    """Return a value with infinity and NaN as strings, since JSON has no such numbers."""
    if isinstance(value, list):
        return [_finite(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _finite(each) for name, each in value.items()}
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def plain(value: Any) -> Any:
    """Convert a value whose type JSON lacks to a number or a string."""
    return float(value) if isinstance(value, Decimal) else str(value)


def _show_csv(answer: Result | Stream) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(answer.columns)
    for row in answer.rows:
        writer.writerow([_csv_cell(value) for value in row])


def _csv_cell(value: Any) -> Any:
    """Return a cell with decimals written without an exponent: Python writes 0.00000000 as 0E-8."""
    return f"{value:f}" if isinstance(value, Decimal) else safe_text(value)


def _show_records(names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> bool:
    """Print a line per value and a heading per row. Return True if there was a row."""
    widest = max(map(cell_len, names), default=0)
    number, columns, hanging = 0, width(), " " * (widest + len(GAP))
    for number, row in enumerate(rows, start=1):
        print(bold(f"row {number}"))
        for name, value in zip(names, row, strict=True):
            begin = f"{set_cell_size(printable(name), widest)}{GAP}"
            for text in value.split("\n") if isinstance(value, str) else [cell_text(value)]:
                line = f"{begin}{printable(text)}".rstrip()
                print(wrapped(line, columns, "" if begin == hanging else hanging))
                begin = hanging
        print()
    return number > 0


def _widest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)


def _column(heading: str, kind: str, values: Iterable[str], kept: int, wraps: bool) -> Column:
    """Measure a column. Text may be narrowed to ``kept`` cells; numbers, days and times are never cut."""
    cells, is_list = _widest(values), kind.endswith("]")
    is_number = kind.startswith(_NUMBERS) and not is_list
    is_text = is_list or not kind.startswith((*_NUMBERS, *_MOMENTS))
    least = min(cells, kept) if is_text else cells
    of_heading = _widest(broken(heading, max(least, SHORT_HEADING)).split("\n"))
    whole = max(cells, cell_len(heading))
    yields = wraps or (is_text and cells > kept)
    return Column(heading, max(least, of_heading), whole, is_number, wraps, yields)


def _show_table(
    answer: Result | Stream, shown: Iterable[tuple[Any, ...]], in_lines: Collection[str], always: int
) -> bool:
    """Print rows as they arrive, each laid out with its batch. Return True if there was a row."""
    rows = ([cell_text(value) for value in row] for row in shown)
    begin = list(islice(rows, ROWS_LAID_OUT))
    terminal_cells = width()
    if terminal_cells is None:
        columns = _measured(answer, begin, in_lines)
        for row in chain([[column.heading for column in columns]], begin, rows):
            print(GAP.join(map(_padded, row, columns)).rstrip())
        return bool(begin)
    from pipeline.cli.terminal_table import lines_of

    hidden: dict[str, None] = {}
    for batch in chain([begin], iter(lambda: list(islice(rows, ROWS_LAID_OUT)), [])):
        columns = _measured(answer, batch, in_lines)
        fitting = _fitting(columns, terminal_cells, always)
        for line in lines_of(columns[:fitting], batch, terminal_cells):
            print(line)
        hidden |= dict.fromkeys(column.heading for column in columns[fitting:])
    if hidden:
        more = f" and {len(hidden) - NAMED} more" if len(hidden) > NAMED else ""
        named = ", ".join(islice(hidden, NAMED))
        say(f"columns that do not fit here: {named}{more} (--format record shows all)")
    return bool(begin)


def table_lines(answer: Result, *, in_lines: Collection[str] = (), always: int = 1) -> list[str]:
    """Return the lines of a table, headings first: as many columns as fit the terminal, all in a pipe.
    ``in_lines`` and ``always``: as for ``show``."""
    rows = [[cell_text(value) for value in row] for row in answer.rows]
    columns, terminal_cells = _measured(answer, rows, in_lines), width()
    if terminal_cells is None:
        lines = [[column.heading for column in columns], *rows]
        return [GAP.join(map(_padded, row, columns)).rstrip() for row in lines]
    from pipeline.cli.terminal_table import lines_of

    return lines_of(columns[: _fitting(columns, terminal_cells, always)], rows, terminal_cells)


def _measured(answer: Result | Stream, rows: list[list[str]], in_lines: Collection[str]) -> list[Column]:
    """Measure the columns of an answer for the cells in ``rows``."""
    headings = [printable(heading) for heading in answer.columns]
    values = zip(*rows, strict=True) if rows else repeat(())
    columns = zip(headings, answer.types, values, chain([FIRST_TEXT], repeat(LEAST_TEXT)), strict=False)
    return [_column(*column, wraps=column[0] in in_lines) for column in columns]


def _padded(text: str, column: Column) -> str:
    """Return a cell padded to the width of its column."""
    blanks = " " * (column.whole - cell_len(text))
    return blanks + text if column.is_number else text + blanks


def _fitting(columns: list[Column], terminal_cells: int, always: int) -> int:
    """Return the number of columns that fit, but at least ``always``."""
    ends = accumulate(column.least + len(GAP) for column in columns)
    return max(always, sum(end <= terminal_cells + len(GAP) for end in ends))
