"""What keeps a home small: files of past months are merged, once a day's work is done."""

from datetime import datetime

from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.home.disk import UnwritableError
from pipeline.home.paths import Home
from pipeline.record.compaction import Compaction, compact
from pipeline.record.incidents import report_incident


def merge_months(home: Home, now: datetime) -> Compaction:
    """Merge the day files of months that were over some days before ``now`` (UTC). What cannot be written is
    an incident, never an error: the day files stay, and the next call goes on."""
    done = Compaction()
    try:
        compact(home, now.date(), done)
    except UnwritableError as error:
        report_incident(
            home,
            Incident(
                at=now,
                kind=IncidentKind.UNWRITABLE,
                path=str(error.path.relative_to(home.root)),
                reason=str(error),
                remedy="the files of single days stay; the next refresh merges them",
            ),
        )
    return done
