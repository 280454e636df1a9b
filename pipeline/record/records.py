"""The record of each source and day, as the other rooms read and write it."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import date
from decimal import Decimal
from typing import Any

import polars as pl
from pydantic import TypeAdapter

from pipeline.contracts.offer import Offer, RejectedRow
from pipeline.contracts.outcome import Outcome
from pipeline.contracts.rates import Rate
from pipeline.home.paths import Home
from pipeline.record.damage import RecordError, readable
from pipeline.record.journal import Entry, Journal
from pipeline.record.months import (
    SCHEMAS,
    Month,
    days_of,
    file_of,
    months,
    remove_source,
    rows_of,
    write_days,
)

MAX_RATE_AGE_DAYS = 7
"""Exchange rates older than this are not used: prices in other currencies then stay unconverted."""

_OUTCOME = TypeAdapter(Outcome)


class Records:
    """Reads and writes the record of one home.

    Reading raises RecordError for a damaged file, writing raises UnwritableError, and both raise
    HomeLayoutError for a home written by another version.
    """

    def __init__(self, home: Home) -> None:
        self._home = home
        self._journal = Journal(home)

    def write_accepted(self, day: date, source: str, offers: Sequence[Offer]) -> None:
        """Store a source's accepted offers for a day, replacing those of an earlier reading of that day."""
        rows = [offer.model_dump() for offer in offers]
        self._write_rows("offers", source, day, pl.DataFrame(rows, SCHEMAS["offers"], orient="row"))

    def write_rejects(self, day: date, source: str, rejects: Sequence[RejectedRow]) -> None:
        """Store a source's rejects for a day, replacing those of an earlier reading of that day."""
        rows = [
            reject.model_dump() | {"raw": json.dumps(reject.raw, default=str, ensure_ascii=False)}
            for reject in rejects
        ]
        self._write_rows("rejects", source, day, pl.DataFrame(rows, SCHEMAS["rejects"], orient="row"))

    def write_ranking(self, day: date, rows: Sequence[tuple[Any, ...]]) -> None:
        """Store the best rows of a day's ranking, with the columns listed in SCHEMAS."""
        self._write_rows("rankings", "", day, pl.DataFrame(rows, SCHEMAS["rankings"], orient="row"))

    def write_outcome(self, outcome: Outcome) -> None:
        """Store the outcome of one attempt to read a source."""
        row = asdict(outcome) | {"warnings": "; ".join(outcome.warnings) or None}
        content = json.dumps(row, default=str)
        self._journal.write("outcome", outcome.source, outcome.day, outcome.attempt, content)

    def write_exchange_rates(self, day: date, rows: Sequence[dict[str, Any]]) -> None:
        """Store the exchange rates used to convert a day's prices, with one row per currency."""
        self._journal.write("exchange_rates", "", day, "", json.dumps(list(rows), default=str))

    def remove(self, source: str) -> None:
        """Remove a source's record. Raises UnwritableError and OSError."""
        remove_source(self._home, source)
        self._journal.remove(source)

    def outcomes(self, source: str, day: date | None = None) -> list[dict[str, Any]]:
        """Return the outcome rows of the attempts to read a source (optionally on one day), oldest first."""
        entries = self._journal.entries("outcome", source, day)
        with readable(self._journal.path, "journal", ""):
            return [outcome_row(entry) for entry in entries]

    def outcome(self, source: str, day: date) -> dict[str, Any] | None:
        """Return the outcome row of the day's newest attempt; None if the source was not asked that day."""
        return next(reversed(self.outcomes(source, day)), None)

    def outcome_days(self, source: str | None = None) -> list[date]:
        """Return the days on which a source, or any source, was asked, oldest first."""
        return self._journal.days("outcome", source)

    def recorded_days(self) -> set[date]:
        """Return the days on which anything other than incidents was recorded."""
        return {*self.outcome_days(), *self.rate_days(), *self.days_with_offers()}

    def exchange_rates(self, day: date) -> list[dict[str, Any]]:
        """Return the rows of a day's exchange rates: day, currency, usd_per_unit, rate_date; an empty list if
        no rates are kept."""
        entries = self._journal.entries("exchange_rates", day=day)
        with readable(self._journal.path, "journal", ""):
            return [row for entry in entries for row in rate_rows(entry)]

    def usd_rates(self, day: date) -> dict[str, Rate]:
        """Return the dollars per unit of each currency, from the newest rates up to ``day``; empty if these
        rates are older than MAX_RATE_AGE_DAYS."""
        newest = max((each for each in self.rate_days() if each <= day), default=None)
        if newest is None or (day - newest).days > MAX_RATE_AGE_DAYS:
            return {}
        return {
            row["currency"]: Rate(Decimal(row["usd_per_unit"]), date.fromisoformat(row["rate_date"]))
            for row in self.exchange_rates(newest)
        }

    def accepted_days(self, source: str) -> list[date]:
        """Return the days with accepted offers from a source, oldest first."""
        return self._days("offers", source)

    def days_with_offers(self, source: str | None = None) -> set[date]:
        """Return the days with accepted offers from a source, or any source; damaged months are skipped."""
        found: set[date] = set()
        for month in months(self._home, "offers", source):
            with suppress(RecordError):
                found |= days_of(self._home, month).keys()
        return found

    def is_accepted(self, source: str, day: date) -> bool:
        """True if a source has accepted offers on a day."""
        return day in days_of(self._home, Month.of("offers", source, day))

    def rejected_days(self, source: str) -> list[date]:
        """Return the days for which a source's rejects are stored, even if there were none, oldest first."""
        return self._days("rejects", source)

    def rate_days(self) -> list[date]:
        """Return the days for which exchange rates are kept, oldest first."""
        return self._journal.days("exchange_rates")

    def offers(self, source: str, day: date) -> list[Offer]:
        """Return a source's accepted offers for a day. Raises FileNotFoundError if none exist."""
        month = Month.of("offers", source, day)
        rows = rows_of(self._home, month).get(day)
        if rows is None:
            raise FileNotFoundError(f"{file_of(self._home, month)} has no {day}")
        with readable(file_of(self._home, month), "offers", source):
            return [Offer.model_validate(row) for row in rows.iter_rows(named=True)]

    def rejects(self, source: str, day: date) -> list[dict[str, Any]]:
        """Return a source's rejects for a day, with ``raw`` decoded."""
        month = Month.of("rejects", source, day)
        rows = rows_of(self._home, month).get(day)
        if rows is None:
            return []
        with readable(file_of(self._home, month), "rejects", source):
            found = rows.select(list(RejectedRow.model_fields)).iter_rows(named=True)
            return [row | {"raw": json.loads(row["raw"])} for row in found]

    def _days(self, table: str, source: str) -> list[date]:
        return [day for month in months(self._home, table, source) for day in days_of(self._home, month)]

    def _write_rows(self, table: str, source: str, day: date, rows: pl.DataFrame) -> None:
        self._journal.begin()
        write_days(self._home, Month.of(table, source, day), {day: rows})


def outcome_row(entry: Entry) -> dict[str, Any]:
    """Return the row of an outcome. Raises ValueError if the row is invalid or belongs to another attempt."""
    row = dict(json.loads(entry.content))
    place = {"source": entry.source, "day": f"{entry.day}", "attempt": entry.name}
    if any(row.get(name) != value for name, value in place.items()):
        raise ValueError(f"the outcome of {entry.source}, {entry.name} is another attempt's")
    _OUTCOME.validate_python(row | {"warnings": (row["warnings"],) if row["warnings"] else ()})
    return row


def rate_rows(entry: Entry) -> list[dict[str, Any]]:
    """Return the rows of a day's exchange rates. Raises ValueError, KeyError or TypeError if the rows are
    invalid."""
    rows = list(json.loads(entry.content))
    for row in rows:
        Rate(Decimal(row["usd_per_unit"]), date.fromisoformat(row["rate_date"]))
        if row["day"] != f"{entry.day}":
            raise ValueError(f"the exchange rates of {entry.day} are of {row['day']}")
    if len({row["currency"] for row in rows}) != len(rows):
        raise ValueError(f"the exchange rates of {entry.day} give a currency two rates")
    return rows
