"""How answers are shown at the command line: tables for people, CSV, JSON and records for programs.

A terminal gets the columns that fit its width, in an order of importance, and the first rows of a long
result; a pipe gets every column and every row, as they arrive.
"""

import csv
import json
import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import chain, islice
from typing import Any

from rich.cells import cell_len, set_cell_size

from pipeline.cli.layout import GAP, laid_out
from pipeline.cli.terminal import bold, say, width, wrapped
from pipeline.export.cells import safe_text
from pipeline.offers.money import price_text
from pipeline.warehouse.query import Result, Stream

ROWS_SHOWN = 40
"""Rows of a long result that a terminal shows."""

ROWS_LAID_OUT = 200
"""A pipe's columns are as wide as these first rows need; a longer cell further down moves its own line."""

NAMED = 8
"""So many of the columns that are left out are named."""

COLUMNS_OF_CHEAPEST = (
    ("rank", "rank"),
    ("total_usd", "total USD"),
    ("hours", "hours"),
    ("gpu", "GPU"),
    ("gpu_count", "count"),
    ("size_evidence", "size"),
    ("provider", "provider"),
    ("country", "in"),
    ("price_kind", "kind"),
    ("tier", "tier"),
    ("usd_per_hour", "USD/hour"),
    ("tokens_per_second", "tokens/s"),
    ("memory_gib", "GiB/GPU"),
    ("fit_probability", "P(fits)"),
    ("evidence", "evidence"),
    ("price_day", "price of"),
    ("price_age_days", "days old"),
)
"""What a person is shown of ``cheapest_for``, by ``ranking_for_people``; csv and json give every column."""

FIRST_OF_CHEAPEST = (
    "rank", "total USD", "hours", "GPU", "count", "provider", "P(fits)", "USD/hour", "kind", "in", "tokens/s",
    "tier", "evidence", "days old",
)  # fmt: skip
"""Its headings by importance; a narrow terminal shows the first of them."""


def first_of_cheapest(ranking: Result) -> tuple[str, ...]:
    """The headings by importance for these answers: where not all are on demand, the kind decides, too."""
    if {row["price_kind"] for row in ranking.dicts()} <= {"on_demand"}:
        return FIRST_OF_CHEAPEST
    place = FIRST_OF_CHEAPEST.index("P(fits)")
    return (*FIRST_OF_CHEAPEST[:place], "kind", *FIRST_OF_CHEAPEST[place:])


COLUMNS_OF_SOURCES = (
    ("source", "source"),
    ("title", "title"),
    ("state", "state"),
    ("last_attempt_day", "asked"),
    ("last_accepted_day", "accepted"),
    ("age_days", "days old"),
    ("evidence", "evidence"),
    ("terms", "terms"),
)
"""What a person is shown of the sources, before a line per source that says why."""

FIRST_OF_SOURCES = ("source", "state", "accepted", "days old", "terms", "evidence", "asked", "title")


def show(
    answer: Result | Stream,
    form: str,
    *,
    first: Sequence[str] = (),
    in_lines: Collection[str] = (),
    always: int = 1,
    every: bool = True,
    count: Callable[[], int | None] = lambda: None,
) -> None:
    """Print an answer as a "table" for people, "csv", "json" (one array), "jsonl" (an object per line) or
    "record" (a line per value).

    ``first``: the columns of a table by importance, by default their own order; the columns ``in_lines`` are
    text that is broken into lines and not cut; the first ``always`` are never left out. Unless ``every``, a
    terminal gets the first ROWS_SHOWN rows; ``count`` then says how many there are, after they are shown.
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
        shown: Iterable[tuple[Any, ...]] = rows
        cut = sys.stdout.isatty() and not every
        if cut:
            shown = list(islice(rows, ROWS_SHOWN))
        any_row = (
            _show_records(answer.columns, shown)
            if form == "record"
            else _show_table(answer, shown, first, in_lines, always)
        )
        sys.stdout.flush()
        if not any_row and answer.columns:
            say("no rows")
        if cut and next(rows, None) is not None:
            total = len(answer.rows) if isinstance(answer.rows, list) else count()
            said = f"{total:,}" if total else f"more than {ROWS_SHOWN}"
            say(f"{said} rows, {ROWS_SHOWN} shown (--all shows all of them)")
    sys.stdout.flush()


def ranking_for_people(ranking: Result) -> Result:
    """Some columns of ``cheapest_for``: GPUs as "8 of 16" where more are paid than used, P(fits) in words."""
    from pipeline.questions.explanation import percent_text

    shown = [
        {
            **row,
            "gpu_count": _gpus(row["gpu_count"], row["gpus_billed"]),
            "fit_probability": percent_text(row["fit_probability"]),
        }
        for row in ranking.dicts()
    ]
    types = ranking.only(COLUMNS_OF_CHEAPEST).types
    rows = [tuple(row[name] for name, _ in COLUMNS_OF_CHEAPEST) for row in shown]
    return Result(tuple(heading for _, heading in COLUMNS_OF_CHEAPEST), types, rows)


def with_percent(answer: Result, heading: str = "P(fits)") -> Result:
    """The same with a column of probabilities in words, as ``cheapest`` shows them."""
    from pipeline.questions.explanation import percent_text

    place = answer.columns.index(heading)
    rows = [(*row[:place], percent_text(row[place]), *row[place + 1 :]) for row in answer.rows]
    # Right-aligned, as the numbers that they are.
    return Result(answer.columns, answer.types, rows)


def _gpus(used: int, paid: int) -> str:
    return f"{used} of {paid}" if paid > used else str(used)


def _json_objects(answer: Result | Stream) -> Iterator[str]:
    for row in answer.rows:
        finite = {name: _finite(value) for name, value in zip(answer.columns, row, strict=True)}
        yield json.dumps(finite, default=plain, ensure_ascii=False)


def show_object(value: dict[str, Any]) -> None:
    """Print one JSON object: in one line, but on a terminal a line per member."""
    indent = 2 if sys.stdout.isatty() else None
    print(json.dumps(_finite(value), default=plain, ensure_ascii=False, indent=indent))


def _show_json(answer: Result | Stream) -> None:
    before = "["
    for line in _json_objects(answer):
        sys.stdout.write(f"{before}\n{line}")
        before = ","
    print("\n]" if before == "," else "[]")


def _finite(value: Any) -> Any:
    """JSON has no infinity and no NaN."""
    if isinstance(value, list):
        return [_finite(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _finite(each) for name, each in value.items()}
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def plain(value: Any) -> Any:
    """What JSON has for a value that it does not know."""
    return float(value) if isinstance(value, Decimal) else str(value)


def _show_csv(answer: Result | Stream) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(answer.columns)
    for row in answer.rows:
        writer.writerow([_csv_cell(value) for value in row])


def _csv_cell(value: Any) -> Any:
    """Decimals without an exponent: Python writes a zero of eight digits as 0E-8."""
    return f"{value:f}" if isinstance(value, Decimal) else safe_text(value)


def _show_records(names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> int:
    """A line per value, a heading per row. Returns the number of rows."""
    widest = max(map(cell_len, names), default=0)
    number, columns, hanging = 0, width(), " " * (widest + len(GAP))
    for number, row in enumerate(rows, start=1):
        print(bold(f"row {number}"))
        for name, value in zip(names, row, strict=True):
            begin = f"{set_cell_size(_printable(name), widest)}{GAP}"
            for text in str(value).split("\n") if isinstance(value, str) else [_cell(value)]:
                print(
                    wrapped(
                        f"{begin}{_printable(text)}".rstrip(), columns, "" if begin == hanging else hanging
                    )
                )
                begin = hanging
        print()
    return number


def _show_table(
    answer: Result | Stream,
    shown: Iterable[tuple[Any, ...]],
    first: Sequence[str],
    in_lines: Collection[str],
    always: int,
) -> bool:
    """Lay the first rows out, and print every row as it comes. Returns whether there was one."""
    rows = iter(shown)
    begin = [[_cell(value) for value in row] for row in islice(rows, ROWS_LAID_OUT)]
    layout = laid_out(answer.columns, answer.types, begin, width(), first, in_lines, always)
    for line in layout.heading():
        print(bold(line))
    for cells in chain(begin, ([_cell(value) for value in row] for row in rows)):
        print(layout.line(cells))
    if layout.left_out:
        more = len(layout.left_out) - NAMED
        others = f" and {more} more" if more > 0 else ""
        sys.stdout.flush()
        say(
            f"columns that do not fit here: {', '.join(layout.left_out[:NAMED])}{others} "
            "(--format record shows all)"
        )
    return bool(begin)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return price_text(value)
    if isinstance(value, float):
        size = abs(value)
        return f"{value:,.0f}" if size >= 1000 else f"{value:,.1f}" if size >= 10 else f"{value:.3g}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return _printable(str(value))


def _printable(text: str) -> str:
    """A label from a price page must not steer the terminal."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
