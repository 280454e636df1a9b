"""Everything that the page shows, as JSON."""

from collections.abc import Iterator
from datetime import date, timedelta
from itertools import groupby
from typing import Any

import duckdb

from pipeline.page.answers import Index, answers
from pipeline.page.queries import dollars_per_hour, exact, plain, query, rows, table
from pipeline.warehouse.query import ask

HISTORY_DAYS = 366

TABLES = ("gpus", "errors", "error_summary", "sources", "rejects", "left_out", "claims")
"""Queries whose columns the page uses unchanged."""


def facts(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Return the facts that the page shows. Raises QueryError if the file is from an earlier version."""
    machines, offers = Index(), Index()
    tables = {name: table(connection, name) for name in TABLES}
    jobs = _workloads(connection)
    gpus = dict(zip(tables["gpus"]["gpu_id"], tables["gpus"]["is_rented"], strict=True))
    found = {
        "published": {name: plain(value) for name, value in next(rows(connection, "published")).items()},
        **tables,
        "workloads": jobs,
        "prices": _columns([_as_shown(row) for row in rows(connection, "prices")]),
        "answers": answers(connection, jobs["workload"], gpus, machines, offers),
        "history": _history(connection),
    }
    every = {row["offer"]: _as_shown(row) for row in rows(connection, "offers")}
    ranked = [every[offer] for offer in offers.things]
    return {
        **found,
        "offers": _columns(ranked),
        "machines": [list(machine) for machine in machines.things],
    }


def _as_shown(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its prices rounded as the page shows them."""
    prices = {name: dollars_per_hour(row[name]) for name in row if "usd_per_" in name}
    return {name: plain(value) for name, value in row.items()} | prices


def _columns(found: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return rows as columns."""
    return {name: [row[name] for row in found] for name in (found[0] if found else ())}


def _workloads(connection: duckdb.DuckDBPyConnection) -> dict[str, list[Any]]:
    """Return the columns of the workloads that the page shows, with the command for each workload."""
    columns = table(connection, "workloads", exact)
    asked = {name: columns.pop(name) for name in [*columns] if name.startswith("asked_")}
    amounts = {name: columns.pop(name) for name in ("examples", "tokens_per_example", "epochs")}
    commands = []
    for place, model in enumerate(columns["model"]):
        options: dict[str, Any] = {"model": model, "method": columns["method"][place]}
        counted = {name: values[place] for name, values in amounts.items() if values[place] is not None}
        options |= counted or {"tokens": tokens_text(columns["tokens"][place])}
        options |= {name.removeprefix("asked_"): values[place] for name, values in asked.items()}
        words = [
            f"--{name.replace('_', '-')} {value}" for name, value in options.items() if value is not None
        ]
        commands.append(" ".join(["gpufare cheapest", *words]))
    return {**columns, "command": commands}


def tokens_text(tokens: float) -> str:
    """Return an exact number of tokens as people write it, such as 100M or 1.5M."""
    for unit, size in (("B", 10**9), ("M", 10**6)):
        text = f"{tokens / size:.15g}"
        if tokens >= size and tokens % (size // 1000) == 0 and float(text) * size == tokens:
            return f"{text}{unit}"
    return f"{tokens:.15g}"


def _history(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Return the cheapest price of each day by GPU, price kind and provider, from ``first_day`` on: each
    series gives the day of its first price, and then a price or null for each day."""
    ((newest,),) = ask(connection, "SELECT as_of_day FROM main.publication").rows
    first: date = newest - timedelta(days=HISTORY_DAYS - 1)
    ask(connection, "SET VARIABLE report_first_day = ?::DATE", [first])
    series = [
        _series(key, found) for key, found in groupby(query(connection, "history").rows, lambda row: row[:3])
    ]
    return {"first_day": first.isoformat(), "days": HISTORY_DAYS, "series": series}


def _series(key: tuple[str, str, str], found: Iterator[tuple[Any, ...]]) -> list[Any]:
    prices = {row[3]: round(float(row[4]), 4) for row in found}
    first, last = min(prices), max(prices)
    return [*key, first, [prices.get(day) for day in range(first, last + 1)]]
