"""Computes the table plan_grid after a publication, one model at a time; the next publication uses the rows.

Computing the table takes minutes for each state of the catalogue and model, so prices are published first.
"""

from pathlib import Path

import duckdb
from filelock import FileLock

from pipeline.catalog.own import OwnCatalogue, read_own_catalogue
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.contracts.progress import Progress, Step, no_progress
from pipeline.home.paths import Home
from pipeline.record.incidents import report_incident
from pipeline.warehouse.connection import quoted
from pipeline.warehouse.database import planner
from pipeline.warehouse.load import load_own
from pipeline.warehouse.marts import fill
from pipeline.warehouse.plan_cache import edit_kept, kept_file
from pipeline.warehouse.sql_files import BuildError

TABLE = "plan_grid"

MODELS_KEPT_AT_ONCE = 20
"""Number of models after which plans are kept: what a kill loses at most, about 15 seconds of work."""


def complete(home: Home, progress: Progress = no_progress) -> int:
    """Add the plans of missing models to the prepared database, small models first. Return the number of
    models added; a model that fits on no GPU has no plans to add.

    Plans are kept after every MODELS_KEPT_AT_ONCE models, and before an interruption ends the process. Models
    that cannot be planned and problems with the disk are reported as incidents. Raises BuildError.
    """
    own, added, problems = _own_in_use(home), 0, list[str]()
    try:
        with planner(TABLE, "plans_in_full", "grid_jobs") as connection:
            load_own(connection, own)
            models = [model for (model,) in connection.execute(_MODELS).fetchall()]
            planned = _models_kept(home, own, connection)
            missing = [model for model in models if model not in planned]
            for start in range(0, len(missing), MODELS_KEPT_AT_ONCE):
                batch = missing[start : start + MODELS_KEPT_AT_ONCE]
                try:
                    for count, model in enumerate(batch, len(models) - len(missing) + start + 1):
                        try:
                            compute(connection, model)
                        except (duckdb.Error, BuildError) as error:
                            problems.append(f"{model}: {error}")
                        progress(Step(f"prices are published; {count} of {len(models)} models are planned"))
                finally:
                    with FileLock(home.lock):
                        unwritten = edit_kept(home, own, lambda file: _add(connection, file))
                if unwritten:
                    for incident in unwritten:
                        report_incident(home, incident)
                    break
                ((added,),) = connection.execute(
                    "SELECT count(DISTINCT model) FROM main.plan_grid"
                ).fetchall()
    except duckdb.Error as error:
        raise BuildError(f"sql/marts/{TABLE}.sql: {error}") from error
    if problems:
        report_not_planned(home, f"sql/marts/{TABLE}.sql: {'; '.join(problems)}")
    return added


def report_not_planned(home: Home, reason: str) -> None:
    """Record that plans are missing from what is published."""
    remedy = "the prices are published; the next refresh tries again"
    report_incident(home, Incident(kind=IncidentKind.NOT_PLANNED, reason=reason, remedy=remedy))


def _own_in_use(home: Home) -> OwnCatalogue:
    """Return the user's own catalogue, or an empty one if the publication could not use it."""
    own = read_own_catalogue(home)
    with FileLock(home.lock):
        return own if kept_file(home, own) else OwnCatalogue()


def compute(connection: duckdb.DuckDBPyConnection, model: str) -> None:
    """Insert the plans for one model of the grid. Raises BuildError."""
    connection.execute("SET VARIABLE grid_model = ?", [model])
    fill(connection, TABLE)


_MODELS = """
SELECT model
FROM grid_jobs()
JOIN main.models USING (model)
GROUP BY model
ORDER BY any_value(params_total), model
"""


def _models_kept(home: Home, own: OwnCatalogue, connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Return the models with plans in the prepared database. Raises BuildError if there is no such file."""
    # A simultaneous publication would replace the file.
    with FileLock(home.lock):
        kept = kept_file(home, own)
        if kept is None:
            raise BuildError(f"there is no prepared database in {home.cache}: publish first")
        connection.execute(f"ATTACH '{quoted(kept)}' AS kept (READ_ONLY)")
        try:
            rows = connection.execute("SELECT DISTINCT model FROM kept.main.plan_grid").fetchall()
        finally:
            connection.execute("DETACH kept")
    return {model for (model,) in rows}


def _add(connection: duckdb.DuckDBPyConnection, file: Path) -> None:
    connection.execute(f"ATTACH '{quoted(file)}' AS kept")
    try:
        connection.execute(
            "INSERT INTO kept.main.plan_grid FROM main.plan_grid AS new"
            " WHERE new.model NOT IN (SELECT known.model FROM kept.main.plan_grid AS known)"
        )
    finally:
        connection.execute("DETACH kept")
