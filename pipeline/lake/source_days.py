"""Converts a source's day of the record to rows of the lake's tables, and back."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from pydantic import TypeAdapter

from pipeline.catalog.schema import read_table
from pipeline.catalog.source_config import configs
from pipeline.contracts.offer import Offer, RejectedRow
from pipeline.contracts.outcome import Outcome
from pipeline.record.damage import RecordError
from pipeline.record.months import SourceDay
from pipeline.record.records import Records

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""A day's rows, by table."""


def _columns(table: str) -> dict[str, str]:
    """Return the types of a published table's columns, by name and in order, without the ``day`` column."""
    return {column.name: column.type for column in read_table(table).described() if column.name != "day"}


TABLES: Mapping[str, Mapping[str, str]] = {
    "rejects": _columns("rejects"),
    "offers": _columns("offers"),
    "exchange_rates": dict.fromkeys(("currency", "usd_per_unit", "rate_date"), "VARCHAR"),
    "outcomes": dict.fromkeys(("attempt", "outcome"), "VARCHAR"),
}
"""The columns and types of each table. Rates are strings, to keep every digit; an outcome is JSON."""

_OUTCOME = TypeAdapter(Outcome)
_ATTEMPT = re.compile(r"\d{8}T\d{6}\.\d{6}Z")


def days_here(records: Records, since: date) -> dict[SourceDay, list[str]]:
    """Return the sources' days since a date, each with the tables that contain rows. For a damaged month, all
    days on which the source was asked are returned; reading such a day reports the damage."""
    found: dict[SourceDay, list[str]] = defaultdict(list)
    for source, config in configs().items():
        asked = records.outcome_days(source)
        days = {
            "rejects": _days(records.rejected_days, source, asked),
            "offers": _days(records.accepted_days, source, asked),
            "exchange_rates": records.rate_days() if config.kind == "exchange_rates" else [],
            "outcomes": asked,
        }
        for table, table_days in days.items():
            for day in table_days:
                if day >= since:
                    found[SourceDay(source, day)].append(table)
    return found


def _days(read: Callable[[str], list[date]], source: str, asked: list[date]) -> list[date]:
    try:
        return read(source)
    except RecordError:
        return asked


def read_day(records: Records, place: SourceDay, tables: Sequence[str]) -> Rows:
    """Return the rows of a source's day. Raises RecordError and FileNotFoundError."""
    readers: Mapping[str, Callable[[], list[dict[str, Any]]]] = {
        "rejects": lambda: [row | {"raw": json.dumps(row["raw"])} for row in records.rejects(*place)],
        "offers": lambda: [offer.model_dump() for offer in records.offers(*place)],
        "exchange_rates": lambda: [
            {name: f"{row[name]}" for name in TABLES["exchange_rates"]}
            for row in records.exchange_rates(place.day)
        ],
        "outcomes": lambda: [
            {"attempt": row["attempt"], "outcome": json.dumps(row, default=str, sort_keys=True)}
            for row in records.outcomes(*place)
        ],
    }
    return {table: readers[table]() for table in tables}


def write_day(records: Records, place: SourceDay, rows: Rows) -> None:
    """Write a day's rows to the record, outcomes last. Raises UnwritableError and, before anything is
    written, ValueError for rows that this version of gpufare cannot have pushed."""
    if place.source not in configs():
        raise ValueError("this version of gpufare does not know the source")
    rejects = [
        RejectedRow.model_validate({**row, "raw": json.loads(row["raw"])}) for row in rows.get("rejects", ())
    ]
    offers = [Offer.model_validate(row) for row in rows.get("offers", ())]
    outcomes = [_outcome(place, json.loads(row["outcome"])) for row in rows.get("outcomes", ())]
    if "rejects" in rows:
        records.write_rejects(place.day, place.source, rejects)
    if "offers" in rows:
        records.write_accepted(place.day, place.source, offers)
    if "exchange_rates" in rows:
        records.write_exchange_rates(place.day, [{"day": place.day, **row} for row in rows["exchange_rates"]])
    for outcome in outcomes:
        records.write_outcome(outcome)


def _outcome(place: SourceDay, row: Mapping[str, Any]) -> Outcome:
    warnings = row["warnings"].split("; ") if row["warnings"] else ()
    outcome = _OUTCOME.validate_python({**row, "warnings": warnings})
    if (outcome.source, outcome.day) != place or not _ATTEMPT.fullmatch(outcome.attempt):
        raise ValueError("it has an outcome of another source, day or attempt")
    return outcome
