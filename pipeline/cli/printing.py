"""How answers are shown at the command line: tables for people, CSV and JSON lines for programs."""

import csv
import json
import math
import sys
from collections.abc import Collection
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.offers.money import price_text
from pipeline.questions.explanation import percent_text
from pipeline.warehouse.export import safe_text
from pipeline.warehouse.query import Result

WIDTH_OF_A_PIPE = 400
"""A pipe has no width: rows are then as long as they need to be, up to this."""

NUMERIC = ("DECIMAL", "DOUBLE", "FLOAT", "INTEGER", "BIGINT", "SMALLINT", "TINYINT", "HUGEINT", "NUMBER")

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


WRAPPED_OF_SOURCES = frozenset({"title", "evidence"})


def show(
    result: Result, form: Literal["table", "csv", "json"], wrapped: Collection[str] | None = None
) -> None:
    """Print a query's result as a table for people, as CSV, or as JSON lines.

    In a narrow terminal the columns ``wrapped`` of a table are broken into lines; by default, all.
    """
    if form == "json":
        for row in result.dicts():
            finite = {name: _finite(value) for name, value in row.items()}
            print(json.dumps(finite, default=_plain, ensure_ascii=False))
    elif form == "csv":
        _show_csv(result)
    else:
        _show_table(result, result.columns if wrapped is None else wrapped)


def ranking_for_people(ranking: Result) -> Result:
    """Some columns of ``cheapest_for``: GPUs as "8 of 16" where more are paid than used, P(fits) in words."""
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


def _gpus(used: int, paid: int) -> str:
    return f"{used} of {paid}" if paid > used else str(used)


def _finite(value: Any) -> Any:
    """JSON has no infinity and no NaN."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else str(value)


def _show_csv(result: Result) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(result.columns)
    writer.writerows([_csv_cell(value) for value in row] for row in result.rows)


def _csv_cell(value: Any) -> Any:
    """Decimals without an exponent: Python writes a zero of eight digits as 0E-8."""
    return f"{value:f}" if isinstance(value, Decimal) else safe_text(value)


def _show_table(result: Result, wrapped: Collection[str]) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name, kind in zip(result.columns, result.types, strict=True):
        justify: Literal["left", "right"] = "right" if kind.startswith(NUMERIC) else "left"
        table.add_column(name, justify=justify, overflow="fold", no_wrap=name not in wrapped)
    for row in result.rows:
        # Text objects: a label from a price page must not be read as markup.
        table.add_row(*(Text(_cell(value)) for value in row))
    Console(width=None if sys.stdout.isatty() else WIDTH_OF_A_PIPE, highlight=False).print(table)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return price_text(value)
    if isinstance(value, float):
        return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.3g}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    # A label from a price page must not steer the terminal.
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in str(value))
