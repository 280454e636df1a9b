"""Answers as tables for people: some columns under short headings, with cells as people read them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from pipeline.parsing.printable import printable
from pipeline.questions.numbers import number_text, price_text
from pipeline.questions.reasons import kind_text, percent_text
from pipeline.questions.summary import pick_text
from pipeline.questions.words import owner_text
from pipeline.warehouse.query import Result

NOT_STATED = "?"
"""Shown for a country that a source does not state."""

HEADINGS = {
    "age_days": "days old",
    "country": "in",
    "fit_probability": "P(fits)",
    "gib": "GiB/GPU",
    "gpu": "GPU",
    "gpu_count": "count",
    "last_accepted_day": "accepted",
    "last_attempt_day": "asked",
    "memory_gib": "GiB/GPU",
    "memory_gib_high": "high",
    "memory_gib_low": "low",
    "micro_batch": "largest micro-batch",
    "params_billion": "B params",
    "price_age_days": "days old",
    "price_day": "price of",
    "price_kind": "kind",
    "size_evidence": "size",
    "tokens_per_second": "tokens/s",
    "tokens_per_second_per_gpu": "tokens/s per GPU",
    "tokens_per_second_per_gpu_high": "high",
    "tokens_per_second_per_gpu_low": "low",
    "total_usd": "USD",
    "active_billion": "active",
    "available": "stock",
    "bandwidth_gb_s": "GB/s",
    "bf16_dense_tflops": "bf16 TFLOPS",
    "hf_id": "id on the hub",
    "max_context": "context",
    "memory_gb": "GB",
    "on_demand_usd_per_gpu_hour": "on demand",
    "spot_usd_per_gpu_hour": "spot",
    "term_days": "term",
    "usd": "USD",
    "usd_per_gpu_hour": "USD/GPU hour",
    "usd_per_hour": "USD/hour",
}
"""The headings of columns that tables for people do not head with the column's own name."""

LEVELS = "▁▂▃▄▅▆▇█"
"""The heights of a line of prices, lowest first."""

LONGEST_LINE = 30
"""The most days in a line of prices; of a longer history, the newest."""

CHEAPEST = (
    "rank", "total_usd", "hours", "gpu", "provider", "country", "fit_probability", "usd_per_hour",
    "price_kind", "tokens_per_second", "tier", "evidence", "price_age_days", "price_day", "size_evidence",
    "memory_gib",
)  # fmt: skip
"""Columns of ``cheapest_for`` in a table for people, most important first; csv and json give all columns."""


OF_OFFERS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "provider": lambda row: f"{row['provider']}{owner_text(row).removesuffix(' owner')}",
    "country": lambda row: row["country"] or NOT_STATED,
    "price_kind": lambda row: kind_text(row["price_kind"]),
}
"""The texts of cells that describe an offer, keyed by column."""


def columns_of_ranking(rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return CHEAPEST, with the price kind moved before P(fits) unless all prices are on demand."""
    if all(row["price_kind"] == "on_demand" for row in rows):
        return CHEAPEST
    others = [name for name in CHEAPEST if name != "price_kind"]
    place = others.index("fit_probability")
    return (*others[:place], "price_kind", *others[place:])


def ranking_for_people(ranking: Result, rows: Sequence[Mapping[str, Any]]) -> Result:
    """Return ``rows`` of a ranking in the columns that people read, picks by name."""
    names = columns_of_ranking(rows)
    some = Result(ranking.columns, ranking.types, [tuple(row.values()) for row in rows])
    shown = for_people(
        some,
        names,
        rank=pick_text,
        gpu=lambda row: f"{gpus_paid(row)} x {row['gpu']}",
        **OF_OFFERS,
    )
    return replace(shown, types=("VARCHAR", *shown.types[1:]))


PRICES = (
    "usd_per_gpu_hour", "gpu", "gpu_count", "provider", "price_kind", "country", "available", "usd_per_hour",
    "term_days", "price_age_days", "region", "source", "instance_type",
)  # fmt: skip
"""Columns of prices in a table for people, most important first."""


def prices_for_people(prices: Result) -> Result:
    """Return prices (rows of ``gpu_prices``) in the columns PRICES; a kind of price that is the same in all
    rows is no column, nor is a term that no row has."""
    kinds = {row["price_kind"] for row in prices.dicts()}
    unneeded = {"price_kind"} if len(kinds) == 1 else set()
    if "reserved" not in kinds:
        unneeded.add("term_days")
    return for_people(
        prices, [name for name in PRICES if name not in unneeded], **OF_OFFERS, available=_stock
    )


def _stock(row: Mapping[str, Any]) -> str:
    return {True: "in stock", False: "sold out", None: ""}[row["available"]]


def for_people(answer: Result, names: Sequence[str], **texts: Callable[[dict[str, Any]], Any]) -> Result:
    """Return some columns of an answer under their headings. A function in ``texts`` computes the cells of
    its column from the row; alignment stays the same. P(fits) is shown as a percentage."""
    texts.setdefault("fit_probability", lambda row: percent_text(row["fit_probability"]))
    rows = [
        tuple(texts[name](row) if name in texts else row[name] for name in names) for row in answer.dicts()
    ]
    types = dict(zip(answer.columns, answer.types, strict=True))
    headings = tuple(HEADINGS.get(name, name) for name in names)
    return Result(headings, tuple(types[name] for name in names), rows)


def prices_line(usd: Sequence[float]) -> str:
    """Return prices as a line of blocks, from the lowest to the highest of the newest LONGEST_LINE."""
    newest = usd[-LONGEST_LINE:]
    lowest, highest = min(newest), max(newest)
    step = (highest - lowest) / (len(LEVELS) - 1)
    return "".join(LEVELS[round((each - lowest) / step) if step else 0] for each in newest)


def gpus_paid(row: Mapping[str, Any]) -> str:
    """Return the number of GPUs that an answer uses, such as "8 of 16" if more GPUs are paid for."""
    used, paid = row["gpu_count"], row["gpus_billed"]
    return f"{used} of {paid}" if paid > used else str(used)


def table_for_people(answer: Result) -> Result:
    """Return an answer in the columns that people read, if it is a ranking or a list of prices; any other
    answer as it is."""
    rows = list(answer.dicts())
    if {"rank", "pick"} <= set(answer.columns):
        return ranking_for_people(answer, rows)
    if {"tier_class", "usd_per_gpu_hour", "provider"} <= set(answer.columns):
        return prices_for_people(answer)
    return answer


def cell_text(value: Any) -> str:
    """Return a value as the text of a cell: prices with the digits that count, numbers as in sentences."""
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return price_text(value)
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return printable(str(value))
