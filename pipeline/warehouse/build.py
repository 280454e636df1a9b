"""Builds a day's database: loads the record, fills the marts, and runs the checks.

The published file is never read here, so it can be deleted at any time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial
from pathlib import Path

import duckdb

from pipeline.catalog.own import OwnCatalogue, read_own_catalogue
from pipeline.catalog.schema import table_names
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.contracts.progress import Progress, Step, no_progress
from pipeline.home.disk import UnwritableError
from pipeline.home.paths import Home
from pipeline.record.damage import Damage, RecordError
from pipeline.record.incidents import report_incident
from pipeline.record.months import SCHEMAS
from pipeline.record.records import Records
from pipeline.warehouse.checks import CheckResult, Level, run_checks
from pipeline.warehouse.connection import connect
from pipeline.warehouse.history import bring_up_to_date, is_history, unknown_sources
from pipeline.warehouse.lineage import Lineage
from pipeline.warehouse.load_record import load_incidents, missing_days, set_own_labels
from pipeline.warehouse.marts import fill, is_timeless
from pipeline.warehouse.plan_cache import keep, start
from pipeline.warehouse.sql_files import BuildError


@dataclass(slots=True)
class Report:
    """The result of a build: row counts by table, the results of the checks, and problems with files."""

    rows: dict[str, int] = field(default_factory=dict)
    checks: list[CheckResult] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)

    @property
    def warnings(self) -> list[str]:
        """The messages of checks that found rows but do not stop the publication, the errors first."""
        found = sorted((each for each in self.checks if not each.passed), key=lambda each: each.check.level)
        return [f"{_SPOKEN[each.check.level]}: {each.message}" for each in found]


_SPOKEN: Mapping[Level, str] = {"fail": "error", "error": "error", "warn": "warning"}


SAVED_RANKS = 5
"""The number of ranks recorded per workload, price kind and objective, including the published ranks."""

Mend = Callable[[Sequence[Damage]], list[Incident]]
"""Moves damaged files of the record aside, reads their days again, and reports these steps."""


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

    Unless ``keeps`` is False, the tables loaded from the record are kept for the next build, and the day's
    ranking is recorded. Damaged files are passed to ``mend``. Files that still cannot be loaded, rows of
    unknown sources, and unusable rows of the user's own catalogue (or all rows, if the build fails) are
    skipped and reported. Raises BuildError if a statement fails, and CheckFailedError if a check fails.
    """
    own = read_own_catalogue(home)
    make = partial(_build, file, home, day, now, progress, mend, keeps=keeps)
    try:
        return make(own)
    except BuildError as error:
        if not own.state():
            raise
        file.unlink(missing_ok=True)
        return make(
            OwnCatalogue(problems=[*own.problems, (home.root, f"nothing of it can be used: {error}")])
        )


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

    def add(incidents: list[Incident]) -> None:
        for incident in incidents:
            report_incident(home, incident)
        report.incidents += incidents

    try:
        add(start(file, home, own, progress))
        with connect(file) as connection:
            set_own_labels(connection, own.labels())
            damages = _load(connection, home, day)
            if mend and (found := [*damages, *missing_days(connection, home, day, damages)]):
                report.incidents += mend(found)
                damages = _load(connection, home, day)
            add([_damage_incident(home, damage) for damage in damages])
            add([_unknown_source_incident(source) for source in unknown_sources(connection, home)])
            if keeps:
                connection.execute("CHECKPOINT gpufare")
                add(keep(file, home, own))
            add([_own_catalogue_incident(home, *problem) for problem in own.problems])
            connection.execute("SET VARIABLE as_of_time = ?::TIMESTAMPTZ", [now])
            for table in Lineage(connection).marts():
                if not (is_timeless(table) or is_history(table)):
                    progress(Step(f"building {table}"))
                    fill(connection, table)
            if keeps:
                add(_save_ranking(connection, home, day))
            add([_damage_incident(home, damage) for damage in load_incidents(connection, home)])
            report.rows = _row_counts(connection)
            report.checks = run_checks(connection)
            connection.execute("USE memory")
            connection.execute("DETACH gpufare")
    except (duckdb.Error, RecordError) as error:
        raise BuildError(f"the database of {day} cannot be built: {error}") from error
    return report


def _load(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> list[Damage]:
    """Load the record, and test whether the incidents can be loaded. Return the damaged files."""
    damages = bring_up_to_date(connection, home, day)
    connection.begin()
    damages += load_incidents(connection, home)
    connection.rollback()
    return list(dict.fromkeys(damages))


def _own_catalogue_incident(home: Home, file: Path, problem: str) -> Incident:
    return Incident(
        kind=IncidentKind.OWN_CATALOGUE,
        path="models.csv, gpus.csv, workloads.csv" if file == home.root else file.name,
        reason=problem.removeprefix(str(file)).lstrip(",: "),
        remedy="published without: mend the file, or move it away",
    )


def _unknown_source_incident(source: str) -> Incident:
    return Incident(
        kind=IncidentKind.UNKNOWN_SOURCE,
        path=f"record/offers/{source}",
        reason=f"the catalogue has no source {source}",
        remedy=f"its rows are skipped: bring back catalog/sources/{source}.yaml and its reader",
    )


def _damage_incident(home: Home, damage: Damage) -> Incident:
    return Incident(
        kind=IncidentKind.DAMAGED_FILE,
        day=damage.day,
        source=damage.source or None,
        path=str(damage.path.relative_to(home.root)),
        reason=damage.reason,
        remedy="published without its rows: move it out of the record",
    )


def _save_ranking(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> list[Incident]:
    """Record the best rows of the day's ranking for later publications. Return any problems."""
    rows = connection.execute(
        f"SELECT {', '.join(SCHEMAS['rankings'])} FROM main.cheapest_gpu_per_workload"  # noqa: S608
        f" WHERE rank <= {SAVED_RANKS} ORDER BY workload, price_kind, objective, rank"
    ).fetchall()
    try:
        Records(home).write_ranking(day, rows)
    except (UnwritableError, RecordError) as error:
        path = error.path if isinstance(error, UnwritableError) else error.damage.path
        return [
            Incident(
                kind=IncidentKind.UNWRITABLE,
                day=day,
                path=str(path.relative_to(home.root)),
                reason=str(error),
                remedy="published without it; later publications lack this day's ranking if it stays so",
            )
        ]
    return []


def _row_counts(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    counts = "SELECT count(*) FROM main."
    return {name: connection.execute(counts + name).fetchall()[0][0] for name in table_names()}
