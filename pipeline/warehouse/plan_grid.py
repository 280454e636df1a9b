"""Computes the table plan_grid after a publication, one model at a time; the next publication uses the rows.

Computing the table takes minutes for each state of the catalogue and model, so prices are published first.
"""

from pathlib import Path

import duckdb
from filelock import FileLock

from pipeline.catalog.own import OwnCatalogue, read_own_catalogue
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


def complete(home: Home, progress: Progress = no_progress) -> int:
    """Add the plans of missing models to the prepared database, small models first. Return the number of
    models added; a model that fits on no GPU has no plans to add.

    The plans computed before an interruption are kept. Problems with the disk are reported as incidents.
    Raises BuildError; an error with one model is raised after the other models are done.
    """
    try:
        own = read_own_catalogue(home)
        with planner(TABLE, "plans_in_full", "grid_jobs") as connection:
            load_own(connection, own)
            models = [model for (model,) in connection.execute(_MODELS).fetchall()]
            planned = _models_kept(home, own, connection)
            missing = [model for model in models if model not in planned]
            if not missing:
                return 0
            problems = []
            try:
                for count, model in enumerate(missing, len(models) - len(missing) + 1):
                    try:
                        compute(connection, model)
                    except (duckdb.Error, BuildError) as error:
                        problems.append(f"{model}: {error}")
                    progress(Step(f"prices are published; planning model {count} of {len(models)}"))
            finally:
                with FileLock(home.lock):
                    for incident in edit_kept(home, own, lambda file: _add(connection, file)):
                        report_incident(home, incident)
            ((added,),) = connection.execute("SELECT count(DISTINCT model) FROM main.plan_grid").fetchall()
    except duckdb.Error as error:
        raise BuildError(f"sql/marts/{TABLE}.sql: {error}") from error
    if problems:
        raise BuildError(f"sql/marts/{TABLE}.sql: {'; '.join(problems)}")
    return int(added)


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
