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
from pipeline.warehouse.query import reader
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
    own, models, missing = _models_kept(home)
    if not missing:
        return 0
    added, planned, problems = 0, len(models) - len(missing), list[str]()
    try:
        with planner(TABLE, "plans_in_full", "grid_jobs") as connection:
            load_own(connection, own)
            for start in range(0, len(missing), MODELS_KEPT_AT_ONCE):
                try:
                    for model in missing[start : start + MODELS_KEPT_AT_ONCE]:
                        problems += _compute(connection, model)
                        planned += 1
                        progress(Step(f"prices are published; {planned} of {len(models)} models are planned"))
                finally:
                    is_kept = _keep(home, own, connection)
                if not is_kept:
                    break
                count = "SELECT count(DISTINCT model) FROM main.plan_grid"
                ((added,),) = connection.execute(count).fetchall()
    except duckdb.Error as error:
        raise BuildError(f"sql/marts/{TABLE}.sql: {error}") from error
    if problems:
        report_not_planned(home, f"sql/marts/{TABLE}.sql: {'; '.join(problems)}")
    return added


def report_not_planned(home: Home, reason: str) -> None:
    """Record that plans are missing from what is published."""
    remedy = "the prices are published; the next refresh tries again"
    report_incident(home, Incident(kind=IncidentKind.NOT_PLANNED, reason=reason, remedy=remedy))


def compute(connection: duckdb.DuckDBPyConnection, model: str) -> None:
    """Insert the plans for one model of the grid. Raises BuildError."""
    connection.execute("SET VARIABLE grid_model = ?", [model])
    fill(connection, TABLE)


def _compute(connection: duckdb.DuckDBPyConnection, model: str) -> list[str]:
    """Insert the plans for one model. Return the problem if that fails, so that it stops no other model."""
    try:
        compute(connection, model)
    except (duckdb.Error, BuildError) as error:
        return [f"{model}: {error}"]
    return []


_MODELS = """
SELECT model
FROM grid_jobs()
JOIN main.models USING (model)
GROUP BY model
ORDER BY any_value(params_total), model
"""


def _models_kept(home: Home) -> tuple[OwnCatalogue, list[str], list[str]]:
    """Return, of the prepared database, the user's own catalogue (empty if the publication could not use it),
    the models of the grid, and those without plans. Raises BuildError if there is no such database."""
    # A simultaneous publication would replace the file.
    with FileLock(home.lock):
        for own in (read_own_catalogue(home), OwnCatalogue()):
            if kept := kept_file(home, own):
                with reader(kept) as connection:
                    models = [model for (model,) in connection.execute(_MODELS).fetchall()]
                    planned = connection.execute("SELECT DISTINCT model FROM main.plan_grid").fetchall()
                return own, models, [model for model in models if (model,) not in planned]
    raise BuildError(f"there is no prepared database in {home.cache}: publish first")


def _keep(home: Home, own: OwnCatalogue, connection: duckdb.DuckDBPyConnection) -> bool:
    """Add the computed plans to the prepared database. False if the disk refuses them, which is reported."""
    with FileLock(home.lock):
        incidents = edit_kept(home, own, lambda file: _add(connection, file))
    for incident in incidents:
        report_incident(home, incident)
    return not incidents


def _add(connection: duckdb.DuckDBPyConnection, file: Path) -> None:
    connection.execute(f"ATTACH '{quoted(file)}' AS kept")
    try:
        connection.execute(
            "INSERT INTO kept.main.plan_grid FROM main.plan_grid AS new"
            " WHERE new.model NOT IN (SELECT known.model FROM kept.main.plan_grid AS known)"
        )
    finally:
        connection.execute("DETACH kept")
