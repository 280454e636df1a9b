"""One policy for damage: a file that cannot be read is set aside, and its days are read again from the
archive, which is never changed. An incident names the file, and any days that are lost because the archive
contains no capture of them.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import date

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import configs
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.contracts.outcome import Outcome
from pipeline.home.disk import set_aside, stamp_of
from pipeline.home.paths import Home
from pipeline.record.damage import Damage
from pipeline.record.incidents import incident_of, report_incident
from pipeline.record.journal import Entry, Journal, read_each
from pipeline.record.months import (
    TABLES,
    Month,
    SourceDay,
    damage_of,
    days_of,
    lock,
    months,
    strays,
)
from pipeline.record.records import Records, outcome_row, rate_rows

ReadAgain = Callable[[str, date], Outcome | None]
"""Reads a source's day again from the archive; returns None if the archive has nothing for that day."""


def damages(home: Home) -> list[Damage]:
    """Read all files of the record and return the damaged ones."""
    found = (damage_of(home, month) for table in TABLES for month in months(home, table))
    return [damage for damage in (Journal(home).damage(), *found) if damage is not None]


def mend(home: Home, found: Sequence[Damage], read_again: ReadAgain) -> list[Incident]:
    """Set damaged files aside and read their days again, exchange rates before prices and older days first.

    Record the incidents and return them. A file that cannot be moved gets no incident, and neither does a day
    that has been reported missing before.
    """
    moved = [(damage, done) for damage in found if (done := _set_aside(home, damage)) is not None]
    to_read = {each for damage, _ in moved for each in _days_to_read(home, damage)}
    # All files are set aside before the first day is read again: readings are compared with earlier days.
    in_order = sorted(to_read, key=lambda each: (each.source not in _rate_sources(), each.day, each.source))
    read = [each for each in in_order if read_again(*each) is not None]
    if any(damage.table == "journal" for damage, _ in moved):
        Journal(home).finish_mending()
    incidents = [_incident(home, damage, done, read) for damage, done in moved]
    return [incident for incident in incidents if report_incident(home, incident)]


def report_strays(home: Home) -> list[Incident]:
    """Record an incident for each file in the record that does not belong there. Return the new incidents."""
    found = [
        Incident(
            kind=IncidentKind.STRAY_FILE,
            path=str(path.relative_to(home.root)),
            reason="it is not a file of the record",
            remedy="ignored: move it elsewhere or remove it",
        )
        for path in strays(home)
    ]
    return [incident for incident in found if report_incident(home, incident)]


def _rate_sources() -> list[str]:
    return [config.name for config in configs().values() if config.kind == "exchange_rates"]


def _set_aside(home: Home, damage: Damage) -> str | None:
    """Move a damaged file and return a description of what was done; None if the file cannot be moved or was
    replaced meanwhile."""
    if damage.day is not None:
        return "there was nothing to set aside"
    with lock(home):
        if stamp_of(damage.path) != damage.stamp:
            return None
        try:
            if damage.table == "journal":
                return _replace_journal(home)
            return f"moved to {set_aside(home, damage.path).relative_to(home.root)}"
        except FileNotFoundError:
            return "it was gone"
        except OSError:
            return None


def _replace_journal(home: Home) -> str:
    """Replace a damaged journal with one that contains the entries that can still be read, and keep a copy of
    the damaged journal. Raises OSError and UnwritableError."""
    journal = Journal(home)
    kept, done = list[Entry](), "it was gone"
    if journal.path.exists():
        place = set_aside(home, journal.path, copies=journal.path.is_file())
        kept = [entry for entry in read_each(place) if _is_whole(entry)]
        done = f"kept in {place.relative_to(home.root)}; {len(kept)} of its entries could still be read"
    # Otherwise SQLite would roll back the old file's unfinished write in the new file.
    journal.path.with_name(f"{journal.path.name}-journal").unlink(missing_ok=True)
    journal.replace(kept)
    return done


def _is_whole(entry: Entry) -> bool:
    check = {"outcome": outcome_row, "exchange_rates": rate_rows, "incident": incident_of}.get(entry.kind)
    try:
        return check is not None and bool(check(entry))
    except Exception:  # a damaged entry may make its reader raise anything
        return False


def _days_to_read(home: Home, damage: Damage) -> list[SourceDay]:
    """Return the (source, day) pairs that may be in the archive and belong in a damaged file."""
    if damage.table == "journal":
        return _days_without_entry(home)
    if damage.day is not None:
        sources = _rate_sources() if damage.table == "exchange_rates" else [damage.source]
        return [SourceDay(source, damage.day) for source in sources]
    days = Archive(home.archive).days(damage.source) if damage.source else []
    return [SourceDay(damage.source, day) for day in days if f"{day:%Y-%m}" == damage.path.stem]


def _days_without_entry(home: Home) -> list[SourceDay]:
    """Return the archived days that have a capture without an outcome, or whose exchange rates are gone."""
    archive, journal, rate_sources = Archive(home.archive), Journal(home), _rate_sources()
    rate_days = journal.days("exchange_rates")
    attempts: dict[SourceDay, set[str]] = defaultdict(set)
    for entry in journal.entries("outcome"):
        if entry.source not in rate_sources or entry.day in rate_days:
            attempts[SourceDay(entry.source, entry.day)].add(entry.name)
    days = (SourceDay(source, day) for source in archive.sources() for day in archive.days(source))
    return [
        each
        for each in days
        if any(capture.status is not None for capture in archive.captures(*each, without=attempts[each]))
    ]


def _incident(home: Home, damage: Damage, done: str, read: Sequence[SourceDay]) -> Incident:
    return Incident(
        kind=IncidentKind.MISSING_FILE if damage.day else IncidentKind.DAMAGED_FILE,
        day=damage.day,
        source=damage.source or None,
        path=str(damage.path.relative_to(home.root)),
        reason=damage.reason,
        remedy=f"{done}; {_result(home, damage, read)}",
    )


def _result(home: Home, damage: Damage, read: Sequence[SourceDay]) -> str:
    """Describe the days that were read again and the days that are lost."""
    if damage.table == "rankings":
        return f"lost: the rankings kept in {damage.path.stem}, as those of past days are not computed again"
    if damage.table == "journal":
        lost = "attempts that failed without an archived answer, and incidents, are lost where it is damaged"
        return f"{len(read)} days were read again from the archive; {lost}"
    expected = _expected_days(home, damage)
    lost_days = sorted(day for day in expected if not _is_recorded(home, damage, day))
    made = len(expected) - len(lost_days)
    parts = [f"{made} days were read again from the archive"] if made else []
    if lost_days:
        parts.append(f"lost, as the archive gives nothing for them: {', '.join(map(str, lost_days))}")
    return "; ".join(parts) or "it had no day with rows"


def _expected_days(home: Home, damage: Damage) -> set[date]:
    """Return the days that a damaged file should contain according to the outcomes, or the missing day."""
    if damage.day is not None:
        return {damage.day}
    return {
        date.fromisoformat(row["day"])
        for row in Records(home).outcomes(damage.source)
        if row["day"].startswith(damage.path.stem)
        and (row["rejects"] if damage.table == "rejects" else row["accepted"] and row["rows"])
    }


def _is_recorded(home: Home, damage: Damage, day: date) -> bool:
    if damage.table == "exchange_rates":
        return bool(Journal(home).entries("exchange_rates", day=day))
    return day in days_of(home, Month.of(damage.table, damage.source, day))
