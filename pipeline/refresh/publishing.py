"""Publishes a day from the record, after mending damaged files, and sends the file to the bucket."""

from collections.abc import Mapping
from datetime import date, datetime
from functools import partial

from pipeline.contracts.errors import sentence_of
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.contracts.progress import Progress, no_progress
from pipeline.home.paths import Home
from pipeline.model.corrections import own_corrections
from pipeline.parsing.printable import printable
from pipeline.record.incidents import report_incident
from pipeline.record.mending import report_strays
from pipeline.refresh import clock
from pipeline.refresh.clock import clock_problem
from pipeline.refresh.ingest import mend_journal, mend_record
from pipeline.store.address import store_address
from pipeline.store.publication import bucket_at
from pipeline.store.publication import publish as publish_to_bucket
from pipeline.warehouse.build import Report
from pipeline.warehouse.plan_grid import complete, report_not_planned
from pipeline.warehouse.publish import publish
from pipeline.warehouse.sql_files import BuildError

REMEDY = "the next refresh sends it, or `gpufare store publish`"


def publish_day(home: Home, day: date, now: datetime, progress: Progress = no_progress) -> Report:
    """Publish as of ``day``, with ``now`` (UTC) as the time of the build.

    Damaged files of the record are set aside, and their days are read again from the archive; damaged and
    stray files are recorded as incidents. Plans are corrected from the home's own runs. Raises BuildError,
    after recording the error as an incident, also if the clock of this machine is wrong.
    """
    mend_journal(home)
    strays = report_strays(home)
    if problem := clock_problem(home, now.date()):
        report_incident(
            home, Incident(kind=IncidentKind.WRONG_CLOCK, day=day, reason=problem, remedy=clock.REMEDY)
        )
        raise BuildError(f"{problem}: {clock.REMEDY}")
    own_corrections(home)
    try:
        report = publish(home, day, now, progress, partial(mend_record, home))
    except BuildError as error:
        remedy = "the file published before stays"
        incident = Incident(kind=IncidentKind.NOT_PUBLISHED, day=day, reason=str(error), remedy=remedy)
        report_incident(home, incident)
        raise
    report.incidents = [*strays, *report.incidents]
    return report


def publish_plans(home: Home, day: date, now: datetime, progress: Progress = no_progress) -> Report | None:
    """Compute the plans of models that have none, and publish ``day`` again with them. Return None if there
    were none to add.

    Computing takes minutes after a change to the catalogue or the model, so prices are published first, by
    ``publish_day``. Never raises BuildError: plans that cannot be computed or published are an incident.
    """
    try:
        return publish(home, day, now, progress) if complete(home, progress) else None
    except BuildError as error:
        report_not_planned(home, str(error))
        return None


def store_published(
    home: Home, environment: Mapping[str, str], progress: Progress = no_progress
) -> str | None:
    """Send the published file to the bucket in GPUFARE_STORE and return a line on the outcome; return None if
    there is no bucket or no published file.

    Never raises: a failure is recorded as an incident, and the next refresh sends the file.
    """
    try:
        address = store_address(environment)
        if address is None or not home.published.exists():
            return None
        return publish_to_bucket(home, bucket_at(address), {}, progress)
    except Exception as problem:
        reason = printable(sentence_of(problem))
        report_incident(home, Incident(kind=IncidentKind.NOT_STORED, reason=reason, remedy=REMEDY))
        return f"warning: not stored: {reason}; {REMEDY}"
