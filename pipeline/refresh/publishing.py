"""Publishes a day from the record, after mending what can be mended, for the command and for Dagster."""

from collections.abc import Sequence
from datetime import UTC, date, datetime

from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.contracts.progress import Progress, no_progress
from pipeline.home.paths import Home
from pipeline.record.damage import Damage
from pipeline.record.incidents import report_incident
from pipeline.record.mending import mend, report_strays
from pipeline.refresh.ingest import mend_journal, read_again
from pipeline.warehouse.build import Report
from pipeline.warehouse.publish import publish
from pipeline.warehouse.sql_files import BuildError


def publish_day(home: Home, day: date, now: datetime, progress: Progress = no_progress) -> Report:
    """Publish as of ``day``, with ``now`` (UTC) as the moment of building.

    Damaged files of the record are set aside and their days read again from the archive; they and stray files
    are incidents. Raises BuildError, after keeping it as an incident.
    """

    def mended(damages: Sequence[Damage]) -> list[Incident]:
        return mend(home, damages, lambda source, damaged_day: read_again(source, damaged_day, home))

    mend_journal(home)
    strays = report_strays(home)
    try:
        report = publish(home, day, now, progress, mended)
    except BuildError as error:
        report_incident(
            home,
            Incident(
                at=datetime.now(UTC),
                kind=IncidentKind.NOT_PUBLISHED,
                day=day,
                reason=str(error),
                remedy="the file published before stays",
            ),
        )
        raise
    report.incidents = [*strays, *report.incidents]
    return report
