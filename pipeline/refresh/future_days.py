"""Days after today in the archive and the record: left by a clock that was ahead, and ignored.

They never come before a real day: the database is built of a day that is not after today, and no reading
looks at later days. They are named, once as an incident and in each report, so that someone removes them.
"""

from datetime import date, datetime

from pipeline.capture.archive import Archive
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.home.paths import Home
from pipeline.record.incidents import report_incident
from pipeline.record.records import Records


def report_future_days(home: Home, now: datetime) -> list[date]:
    """Return the days after that of ``now`` (UTC) that the home has; each is reported once."""
    archive = Archive(home.archive)
    archived = {day for name in archive.sources() for day in archive.days(name)}
    found = sorted(day for day in archived | Records(home).recorded_days() if day > now.date())
    for day in found:
        incident = Incident(
            at=now,
            kind=IncidentKind.FUTURE_DAY,
            day=day,
            reason=f"the home has data of {day}, a future date",
            remedy="it is ignored until that day comes: check the clock of this machine",
        )
        report_incident(home, incident)
    return found
