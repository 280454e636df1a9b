"""Attempts that the published file has: what is left of a damaged month of outcomes beside the archive, which
has no capture of most attempts that failed."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date, timedelta

from pydantic import TypeAdapter

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import configs
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.outcome import Outcome
from pipeline.home.disk import UnwritableError
from pipeline.home.paths import Home
from pipeline.record.months import Part
from pipeline.record.record_files import own_and_months
from pipeline.record.records import Records
from pipeline.warehouse.query import ask, reader

_COLUMNS = ", ".join(field.name for field in fields(Outcome))
_ATTEMPTS = f"SELECT {_COLUMNS} FROM main.capture_outcomes WHERE source = ? AND strftime(day, '%Y-%m') = ?"  # noqa: S608 (names of fields)
_OUTCOMES = TypeAdapter(list[Outcome])


@dataclass(frozen=True, slots=True)
class PublishedAttempts:
    """A source's attempts of a month in the published file, which has all up to the day ``through``."""

    attempts: Sequence[Outcome]
    through: date

    @property
    def parts(self) -> set[Part]:
        """What they are of the month's file."""
        return {Part(each.day, each.attempt) for each in self.attempts}


def published_attempts(home: Home, source: str, month: str) -> PublishedAttempts | None:
    """The published attempts at a source in a month (YYYY-MM); None where no published file can tell."""
    try:
        with reader(home.published) as connection:
            rows = ask(connection, _ATTEMPTS, [source, month]).dicts()
            ((as_of_day, built_at),) = ask(
                connection, "SELECT as_of_day, as_of_time FROM main.publication"
            ).rows
        outcomes = _OUTCOMES.validate_python(
            [row | {"warnings": (row["warnings"],) if row["warnings"] else ()} for row in rows]
        )
    except (GpufareError, ValueError):  # none, a damaged one, or one of another version
        return None
    return PublishedAttempts(outcomes, min(as_of_day, built_at.date() - timedelta(days=1)))


def put_back(home: Home, published: PublishedAttempts) -> set[Part]:
    """Write the attempts that have no file of their own and no complete capture to read again. Returns those
    that were written."""
    written = set()
    for outcome in published.attempts:
        part = Part(outcome.day, outcome.attempt)
        own, _ = own_and_months(home, "outcomes", outcome.source, outcome.day)
        if part in {file.part for file in own} or _can_be_read_again(home, outcome):
            continue
        try:
            Records(home).write_outcome(outcome)
        except UnwritableError:
            continue  # it is then lost, which the incident of the month says
        written.add(part)
    return written


def _can_be_read_again(home: Home, outcome: Outcome) -> bool:
    captures = Archive(home.archive).captures(outcome.source, outcome.day)
    return outcome.source in configs() and any(
        capture.capture_id == outcome.attempt and capture.status is not None for capture in captures
    )
