"""Damaged files of the record are moved aside, never deleted, and made again from the archive."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, date, datetime

from pipeline.catalog.source_config import configs
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.contracts.outcome import Outcome
from pipeline.home.paths import Home
from pipeline.record.incidents import report_incident
from pipeline.record.months import Part, days_of_month
from pipeline.record.record_files import EVERYTHING, Damage, record_files, set_aside, stray_files
from pipeline.record.records import RecordError, Records
from pipeline.refresh.published_attempts import PublishedAttempts, published_attempts, put_back

ReadAgain = Callable[[str, date], Outcome | None]
"""Reads a source's day again from the archive; None when there is nothing to read."""


@dataclass(frozen=True, slots=True)
class _Month:
    """What a damaged month's file had: every day of the month where nobody can tell. Of outcomes also what is
    published of it, None where no file can tell, and which attempts were put back from there."""

    parts: Set[Part]
    published: PublishedAttempts | None = None
    put_back: Set[Part] = frozenset()

    @property
    def days(self) -> list[date]:
        return sorted({part.day for part in self.parts})


def mend(home: Home, damages: Sequence[Damage], read_again: ReadAgain) -> list[Incident]:
    """Move damaged files aside and read their days again, the oldest first. Returns what was done.

    A file that cannot be moved stays where it is, and is not in the answer.
    """
    # What is put back is there before the file is moved: a crash in between loses nothing.
    months = {damage.file.path: _month(home, damage) for damage in damages if damage.file.month}
    to_read = {damage.file.path: _to_read(damage, months.get(damage.file.path)) for damage in damages}
    moved = [(damage, place) for damage in damages if (place := move_aside(home, damage)) is not None]
    # All are moved before the first is read again: a reading compares with the days before it.
    days = sorted({each for damage, _ in moved for each in to_read[damage.file.path]})
    outcomes = {(source, day): read_again(source, day) for _, day, source in days}
    reported = [
        report(
            home,
            damage,
            place,
            [outcomes[source, day] for _, day, source in to_read[damage.file.path]],
            months.get(damage.file.path),
        )
        for damage, place in moved
    ]
    return [incident for incident in reported if incident is not None]


def move_aside(home: Home, damage: Damage) -> str | None:
    """Move a damaged file under ``damaged``. Returns what was done; None when it cannot be moved."""
    try:
        return f"moved to {set_aside(home, damage.file.path).relative_to(home.root)}"
    except FileNotFoundError:
        return "there was nothing to move"
    except OSError:
        return None


def report(
    home: Home,
    damage: Damage,
    place: str,
    outcomes: Sequence[Outcome | None],
    month: _Month | None = None,
) -> Incident | None:
    """Keep the incident of a damaged file that was moved aside, and whose days were then read again. None for
    a missing file that was reported before."""
    result = _result(damage, outcomes) if month is None else _result_of_month(home, damage, month)
    incident = Incident(
        at=datetime.now(UTC),
        kind=IncidentKind.MISSING_FILE if damage.missing else IncidentKind.DAMAGED_FILE,
        day=None if damage.file.month else damage.file.day,
        source=damage.file.source,
        path=str(damage.file.path.relative_to(home.root)),
        reason=damage.reason,
        remedy=f"{place}; {result}",
    )
    return incident if report_incident(home, incident) else None


def report_strays(home: Home) -> list[Incident]:
    """Keep an incident for each file that is not part of the record but lies in it. Returns the new ones."""
    found = [
        Incident(
            at=datetime.now(UTC),
            kind=IncidentKind.STRAY_FILE,
            path=str(path.relative_to(home.root)),
            reason="the folder cannot be listed"
            if path.name == EVERYTHING
            else "it is not a file of the record",
            remedy="left where it is and ignored: move it elsewhere or remove it",
        )
        for path in stray_files(home)
    ]
    return [incident for incident in found if report_incident(home, incident)]


def _month(home: Home, damage: Damage) -> _Month:
    """What a damaged month's file had, with the attempts put back that only the published file has."""
    file = damage.file
    every = record_files(home, file.folder, file.source)
    parts = {each.part for each in every if each.path == file.path}
    if file.folder != "outcomes":
        return _Month(parts)
    published = published_attempts(home, file.source or "", file.month)
    return _Month(parts, published, put_back(home, published) if published else frozenset())


def _to_read(damage: Damage, month: _Month | None) -> list[tuple[bool, date, str]]:
    """Exchange rates come before the prices that are converted with them. Of a month's file, all days that it
    has."""
    file = damage.file
    days = [file.day] if month is None else month.days
    if file.folder == "exchange_rates":
        return [(False, day, name) for name in _rate_sources() for day in days]
    if file.source is None:
        return []
    return [(file.source not in _rate_sources(), day, file.source) for day in days]


def _rate_sources() -> list[str]:
    return [config.name for config in configs().values() if config.kind == "exchange_rates"]


def _result(damage: Damage, outcomes: Sequence[Outcome | None]) -> str:
    file = damage.file
    if file.folder == "rankings":
        return "lost: the ranking of a past day is not computed again"
    read = [outcome for outcome in outcomes if outcome is not None]
    of_earlier_version = file.folder == "outcomes" and not file.attempt
    if file.path.exists() or (of_earlier_version and read):
        return "made again from the archive"
    if file.folder in ("offers", "exchange_rates") and read and not read[-1].accepted:
        return f"lost: read again from the archive, it is not accepted ({read[-1].reason})"
    return "lost: the archive has no complete capture for it"


def _result_of_month(home: Home, damage: Damage, month: _Month) -> str:
    """Names the days that are lost: those that the month's file had, or where nobody can tell which it had,
    those that the rest of the record says it had."""
    if damage.file.folder == "outcomes":
        return _result_of_attempts(home, damage, month)
    made = {file.day for file in record_files(home, damage.file.folder, damage.file.source)}
    missing = _missing_days(home, damage, month, made)
    remade = sum(day in made for day in month.days)
    parts = [f"{remade} days made again from the archive"] if remade else []
    if missing:
        parts.append(f"lost, as the archive gives nothing of them: {', '.join(map(str, missing))}")
    return "; ".join(parts) or "the archive gives nothing of it, and nobody can tell which days it had"


def _missing_days(home: Home, damage: Damage, month: _Month, made: Set[date]) -> list[date]:
    missing = [day for day in month.days if day not in made]
    if damage.file.merged is not None:
        return missing
    return [day for day in missing if _was_recorded(home, damage.file.folder, damage.file.source or "", day)]


def _result_of_attempts(home: Home, damage: Damage, month: _Month) -> str:
    """Counts attempts, as a day may have several, of which the archive has those that got an answer."""
    found = {file.part for file in record_files(home, "outcomes", damage.file.source)}
    there = {part for part in found if f"{part.day:%Y-%m}" == damage.file.month}
    made = {part.day for part in there}
    had = set(month.parts) if damage.file.merged else set()
    had |= month.published.parts if month.published else set()
    # An attempt that earlier versions kept without its name has one, once it is read again.
    lost = {part for part in had - there if part.attempt or part.day not in made}
    lost |= {Part(day) for day in _missing_days(home, damage, month, made)}
    put_back = there & month.put_back
    parts = []
    if remade := len(there - put_back):
        parts.append(f"attempts made again from the archive: {remade}")
    if put_back:
        parts.append(f"put back as they were published, as the archive has none: {len(put_back)}")
    if lost:
        days = ", ".join(map(str, sorted({part.day for part in lost})))
        parts.append(f"lost, as neither has them: {len(lost)}, of {days}")
    if unknown := _unknown_attempts(damage, month):
        parts.append(unknown)
    return "; ".join(parts) or "neither the archive nor the published file has an attempt of it"


def _unknown_attempts(damage: Damage, month: _Month) -> str | None:
    """Of which attempts nobody can tell whether there were any."""
    lost = "that failed without an archived answer, if there were any, are lost"
    if damage.file.merged:
        return None
    if month.published is None:
        return f"attempts {lost}: no published file can tell"
    if month.published.through < days_of_month(damage.file.month)[-1]:
        return f"attempts after {month.published.through} {lost}: they may not be published"
    return None


def _was_recorded(home: Home, folder: str, source: str, day: date) -> bool:
    """Whether what else there is of a day says that a folder had something of it."""
    if folder == "outcomes":
        return any(record_files(home, other, source, day) for other in ("offers", "rejects"))
    sources = _rate_sources() if folder == "exchange_rates" else [source]
    return any(_was_accepted(home, each, day) for each in sources)


def _was_accepted(home: Home, source: str, day: date) -> bool:
    try:
        return any(row["accepted"] for row in Records(home).outcomes(source, day))
    except RecordError:
        return False
