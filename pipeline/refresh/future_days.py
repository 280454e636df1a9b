"""Days after today in the archive and the record: left by a clock that was ahead, and ignored.

They never come before a real day: the database is built of a day that is not after today, and no reading
looks at later days. They are named, once as an incident and in each report, so that someone removes them.
"""

from collections import defaultdict
from datetime import date, datetime
from itertools import chain

from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.home.paths import Home
from pipeline.record.incidents import report_incident


def report_future_days(home: Home, now: datetime) -> dict[date, list[str]]:
    """The days after that of ``now`` (UTC) with the folders that have them; each is reported once."""
    found = _future_days(home, now.date())
    for day, folders in found.items():
        incident = Incident(
            at=now,
            kind=IncidentKind.FUTURE_DAY,
            day=day,
            reason=f"there are files of {day}, a day to come, in {', '.join(folders)}",
            remedy="they are ignored until then; if the clock was wrong, delete what is named by that day",
        )
        report_incident(home, incident)
    return found


def _future_days(home: Home, today: date) -> dict[date, list[str]]:
    found: dict[date, set[str]] = defaultdict(set)
    for folder in (
        home.archive,
        home.offers,
        home.rejects,
        home.outcomes,
        home.exchange_rates,
        home.rankings,
    ):
        for path in chain(folder.glob("*"), folder.glob("*/*")):
            name = path.name.partition(".")[0]
            if name > today.isoformat() and (day := _day(name)):
                found[day].add(folder.name)
    return {day: sorted(folders) for day, folders in sorted(found.items())}


def _day(name: str) -> date | None:
    try:
        return date.fromisoformat(name)
    except ValueError:
        return None
