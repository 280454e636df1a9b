"""Builds the database of a day: what earlier builds kept, then the record, the marts and the checks.

The file is built under a temporary name and owes nothing to the one before, which can be deleted at any time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path

import duckdb

from pipeline.catalog.own import OwnCatalogue, read_own_catalogue
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.contracts.progress import Progress, Step, no_progress
from pipeline.home.disk import UnwritableError
from pipeline.home.paths import Home
from pipeline.record.damage import Damage, RecordError
from pipeline.record.incidents import kept_incidents, report_incident
from pipeline.warehouse.checks import CheckResult, run_checks
from pipeline.warehouse.connection import connect
from pipeline.warehouse.history import bring_up_to_date, is_history, unknown_sources
from pipeline.warehouse.lineage import Lineage
from pipeline.warehouse.load import load_other_models
from pipeline.warehouse.load_record import load_incidents, missing_days, set_own_labels
from pipeline.warehouse.marts import fill, is_timeless
from pipeline.warehouse.plan_cache import keep, start
from pipeline.warehouse.rankings import save_ranking
from pipeline.warehouse.sql_files import BuildError


@dataclass(slots=True)
class Report:
    """The result of a build: rows by table, what each check found, and what was wrong with files."""

    rows: dict[str, int] = field(default_factory=dict)
    checks: list[CheckResult] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)

    @property
    def warnings(self) -> list[str]:
        """What the checks found that does not stop the publishing."""
        return [result.message for result in self.checks if not result.passed]


Mend = Callable[[Sequence[Damage]], list[Incident]]
"""Sets damaged files of the record aside, reads their days again, and reports what it did."""


def build(
    file: Path,
    home: Home,
    day: date,
    now: datetime,
    progress: Progress = no_progress,
    mend: Mend | None = None,
    *,
    keeps: bool = True,
) -> Report:
    """Build the database of ``day`` into ``file`` (which must not exist), as of the moment ``now`` (UTC).

    It is kept for the next build as far as the record goes, and so is the day's ranking in the record, unless
    ``keeps`` is False.
    Damaged files of the record are given to ``mend``; what still cannot be loaded is left out and reported,
    as is what the record has of sources that are not in the catalogue.
    So is what cannot be used of the user's own catalogue: where it stops the build, all of it.
    Raises BuildError when a statement fails and CheckFailedError when a check does.
    """
    own = read_own_catalogue(home)
    try:
        report = _build(file, home, day, now, progress, mend, own, keeps=keeps)
    except BuildError as error:
        if not own.state():
            raise
        file.unlink(missing_ok=True)
        own = OwnCatalogue(problems=[*own.problems, (home.root, f"nothing of it can be used: {error}")])
        report = _build(file, home, day, now, progress, mend, own, keeps=keeps)
    return report


def _build(
    file: Path,
    home: Home,
    day: date,
    now: datetime,
    progress: Progress,
    mend: Mend | None,
    own: OwnCatalogue,
    *,
    keeps: bool,
) -> Report:
    report = Report()
    try:
        report.incidents += _reported(home, start(file, home, own, progress))
        with connect(file) as connection:
            set_own_labels(connection, own.labels())
            report.incidents += _load(connection, home, day, mend)
            if keeps:
                connection.execute("CHECKPOINT gpufare")
                report.incidents += _reported(home, keep(file, home, own))
            load_other_models(connection, own)
            report.incidents += _reported(home, _left_out_of(own, home))
            connection.execute("SET VARIABLE as_of_time = ?::TIMESTAMPTZ", [now])
            for table in Lineage(connection).marts():
                if not (is_timeless(table) or is_history(table)):
                    progress(Step(f"building {table}"))
                    fill(connection, table)
            if keeps:
                report.incidents += _reported(home, _save_ranking(connection, home, day))
            load_incidents(connection, home)
            report.rows = _row_counts(connection)
            report.checks = run_checks(connection)
            connection.execute("USE memory")
            connection.execute("DETACH gpufare")
    except (duckdb.Error, RecordError) as error:
        raise BuildError(f"the database of {day} cannot be built: {error}") from error
    return report


def _left_out_of(own: OwnCatalogue, home: Home) -> list[Incident]:
    return [
        Incident(
            at=datetime.now(UTC),
            kind=IncidentKind.OWN_MODELS if file == home.models else IncidentKind.OWN_CATALOGUE,
            path="gpus.csv, workloads.csv" if file == home.root else file.name,
            reason=problem.removeprefix(str(file)).lstrip(",: "),
            remedy="published without: mend the file, or move it away",
        )
        for file, problem in own.problems
    ]


def _load(connection: duckdb.DuckDBPyConnection, home: Home, day: date, mend: Mend | None) -> list[Incident]:
    damages = [*_damage_of_incidents(home), *bring_up_to_date(connection, home, day)]
    mended = []
    if mend is not None:
        missing = missing_days(connection, home, day, damages)
        if damages or missing:
            mended = mend([*damages, *missing])
            damages = bring_up_to_date(connection, home, day)
    left_out = [_left_out(home, damage) for damage in damages]
    return [*mended, *_reported(home, [*left_out, *_of_unknown_sources(connection, home)])]


def _damage_of_incidents(home: Home) -> list[Damage]:
    """Return the journal where an incident cannot be read; they are loaded last, after the last of them."""
    try:
        kept_incidents(home)
    except RecordError as error:
        return [error.damage]
    return []


def _of_unknown_sources(connection: duckdb.DuckDBPyConnection, home: Home) -> list[Incident]:
    """One incident per source that is not in the catalogue, and so no key into the table sources."""
    return [
        Incident(
            at=datetime.now(UTC),
            kind=IncidentKind.UNKNOWN_SOURCE,
            path=f"record/offers/{source}",
            reason=f"the catalogue has no source {source}",
            remedy=f"its rows are skipped: bring back catalog/sources/{source}.yaml and its reader",
        )
        for source in unknown_sources(connection, home)
    ]


def _left_out(home: Home, damage: Damage) -> Incident:
    return Incident(
        at=datetime.now(UTC),
        kind=IncidentKind.DAMAGED_FILE,
        day=damage.day,
        source=damage.source or None,
        path=str(damage.path.relative_to(home.root)),
        reason=damage.reason,
        remedy="published without its rows: move it out of the record",
    )


def _save_ranking(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> list[Incident]:
    try:
        save_ranking(connection, home, day)
    except (UnwritableError, RecordError) as error:
        path = error.path if isinstance(error, UnwritableError) else error.damage.path
        return [
            Incident(
                at=datetime.now(UTC),
                kind=IncidentKind.UNWRITABLE,
                day=day,
                path=str(path.relative_to(home.root)),
                reason=str(error),
                remedy="published without it; later publications lack this day's ranking if it stays so",
            )
        ]
    return []


def _reported(home: Home, incidents: list[Incident]) -> list[Incident]:
    for incident in incidents:
        report_incident(home, incident)
    return incidents


def _row_counts(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    names = connection.execute(
        "SELECT table_name FROM duckdb_tables()"
        " WHERE database_name = 'gpufare' AND schema_name = 'main' ORDER BY 1"
    ).fetchall()
    counts = {}
    for (name,) in names:
        row = connection.execute(f'SELECT count(*) FROM main."{name}"').fetchone()  # noqa: S608
        counts[name] = row[0] if row else 0
    return counts
