"""Builds the database of a day: what earlier builds kept, then the record, the marts and the checks.

The file is built under a temporary name and owes nothing to the one before, which can be deleted at any time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial
from pathlib import Path

import duckdb

from pipeline.catalog.own import OwnCatalogue, read_own_catalogue
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.contracts.progress import Progress, Step, no_progress
from pipeline.home.disk import UnwritableError
from pipeline.home.paths import Home
from pipeline.record.damage import Damage, RecordError
from pipeline.record.incidents import report_incident
from pipeline.record.months import SCHEMAS
from pipeline.record.records import Records
from pipeline.warehouse.checks import CheckResult, run_checks
from pipeline.warehouse.connection import connect
from pipeline.warehouse.history import bring_up_to_date, is_history, unknown_sources
from pipeline.warehouse.lineage import Lineage
from pipeline.warehouse.load import load_other_models
from pipeline.warehouse.load_record import load_incidents, missing_days, set_own_labels
from pipeline.warehouse.marts import fill, is_timeless
from pipeline.warehouse.plan_cache import keep, start
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


SAVED_RANKS = 5
"""Ranks kept of each workload, price kind and objective: which of them are published may change."""

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
            add([_left_out(home, damage) for damage in damages])
            add([_unknown(source) for source in unknown_sources(connection, home)])
            if keeps:
                connection.execute("CHECKPOINT gpufare")
                add(keep(file, home, own))
            load_other_models(connection, own)
            add([_left_out_of(home, *problem) for problem in own.problems])
            connection.execute("SET VARIABLE as_of_time = ?::TIMESTAMPTZ", [now])
            for table in Lineage(connection).marts():
                if not (is_timeless(table) or is_history(table)):
                    progress(Step(f"building {table}"))
                    fill(connection, table)
            if keeps:
                add(_save_ranking(connection, home, day))
            add([_left_out(home, damage) for damage in load_incidents(connection, home)])
            report.rows = _row_counts(connection)
            report.checks = run_checks(connection)
            connection.execute("USE memory")
            connection.execute("DETACH gpufare")
    except (duckdb.Error, RecordError) as error:
        raise BuildError(f"the database of {day} cannot be built: {error}") from error
    return report


def _load(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> list[Damage]:
    """Load the record, and try the incidents, which are loaded at last. Return the damaged files."""
    damages = bring_up_to_date(connection, home, day)
    connection.begin()
    damages += load_incidents(connection, home)
    connection.rollback()
    return list(dict.fromkeys(damages))


def _left_out_of(home: Home, file: Path, problem: str) -> Incident:
    return Incident(
        kind=IncidentKind.OWN_CATALOGUE,
        path="gpus.csv, workloads.csv" if file == home.root else file.name,
        reason=problem.removeprefix(str(file)).lstrip(",: "),
        remedy="published without: mend the file, or move it away",
    )


def _unknown(source: str) -> Incident:
    """It is not in the catalogue, and so no key into the table sources."""
    return Incident(
        kind=IncidentKind.UNKNOWN_SOURCE,
        path=f"record/offers/{source}",
        reason=f"the catalogue has no source {source}",
        remedy=f"its rows are skipped: bring back catalog/sources/{source}.yaml and its reader",
    )


def _left_out(home: Home, damage: Damage) -> Incident:
    return Incident(
        kind=IncidentKind.DAMAGED_FILE,
        day=damage.day,
        source=damage.source or None,
        path=str(damage.path.relative_to(home.root)),
        reason=damage.reason,
        remedy="published without its rows: move it out of the record",
    )


def _save_ranking(connection: duckdb.DuckDBPyConnection, home: Home, day: date) -> list[Incident]:
    """Keep the best of the day's ranking, so that later builds show it as it was published."""
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
    names = connection.execute(
        "SELECT table_name FROM duckdb_tables()"
        " WHERE database_name = 'gpufare' AND schema_name = 'main' ORDER BY 1"
    ).fetchall()
    counts = {}
    for (name,) in names:
        row = connection.execute(f'SELECT count(*) FROM main."{name}"').fetchone()  # noqa: S608
        counts[name] = row[0] if row else 0
    return counts
