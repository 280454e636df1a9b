"""The database behind a question: the published file or another day's prices, with the user's own data.

Heavy packages are imported on demand: a question answered from the published file does not need them.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.contracts.progress import Progress, no_progress
from pipeline.home.paths import Home
from pipeline.questions.job import JobError, NoAnswerError
from pipeline.warehouse.engine import duckdb
from pipeline.warehouse.query import QueryError, ask, reader

if TYPE_CHECKING:
    from pipeline.catalog.own import OwnModel


@contextmanager
def prices_of(
    home: Home,
    day: date | None,
    today: date,
    given: "OwnModel | None" = None,
    progress: Progress = no_progress,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the published file or, for a day other than the file's, a database of that day from the record.

    The connection also knows the home's own models and runs, even those added since the publication, and the
    model ``given``. Raises NotPublishedError, and JobError for a day without prices or after ``today``.
    """
    corrections = _corrections(home)
    with _prices_of(home, day, today, progress) as connection:
        models = {model.model: model for model in (*_own_models(home), *([given] if given else []))}
        _put_in_front(connection, models, corrections)
        yield connection


def _own_models(home: Home) -> "list[OwnModel]":
    if not home.models.exists():
        return []
    from pipeline.catalog.own import read_own_catalogue

    return read_own_catalogue(home).models


def _corrections(home: Home) -> list[dict[str, Any]]:
    if not (home.own_runs.exists() or home.own_corrections.exists()):
        return []
    from pipeline.model.corrections import own_corrections

    return own_corrections(home).rows


_CORRECTIONS = "FROM main.own_corrections ORDER BY quantity, position"


def unpublished_runs_note(home: Home, connection: duckdb.DuckDBPyConnection) -> str | None:
    """Return a note if the published file was made without the newest changes to the home's own runs."""
    try:
        if _published_corrections(connection) == _corrections(home):
            return None
    except QueryError:  # a file of an earlier version
        return None
    return "note: without the newest changes to your own runs: run `gpufare refresh`"


def _published_corrections(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    return list(ask(connection, _CORRECTIONS).dicts())


def _put_in_front(
    connection: duckdb.DuckDBPyConnection,
    models: "Mapping[str, OwnModel]",
    corrections: list[dict[str, Any]],
) -> None:
    """Put models, keyed by name, in front of the published ones of the same names, and corrections from own
    runs in front of all published ones; leave out the plans that were made without them, so that they are
    made anew. The file is not changed: DuckDB finds a temporary table before a table of the file."""
    added = _unpublished(connection, models)
    try:
        is_corrected = _published_corrections(connection) == corrections
    except QueryError as error:
        if not added and not corrections:
            return
        raise _earlier_version(error) from error
    if is_corrected and not added:
        return
    from pipeline.catalog.own import OwnCatalogue
    from pipeline.warehouse.load import load_own

    names = ", ".join(f"'{model.model}'" for model in added)
    others = f"model NOT IN ({names})" if names else "TRUE"
    try:
        if added:
            connection.execute(f"CREATE TEMP TABLE models AS FROM gpufare.main.models WHERE {others}")
        if not is_corrected:
            connection.execute(
                "CREATE TEMP TABLE own_corrections AS FROM gpufare.main.own_corrections LIMIT 0"
            )
        for table in ("plans", "plan_grid"):
            kept = others if is_corrected else "FALSE"
            connection.execute(f"CREATE TEMP VIEW {table} AS FROM gpufare.main.{table} WHERE {kept}")
        load_own(connection, OwnCatalogue(models=added, corrections=[] if is_corrected else corrections))
    except duckdb.Error as error:
        raise _earlier_version(error) from error


def _unpublished(connection: duckdb.DuckDBPyConnection, models: "Mapping[str, OwnModel]") -> "list[OwnModel]":
    """Return the models that the file lacks, or has with other values."""
    if not models:
        return []
    published = {row["model"]: row for row in ask(connection, "FROM main.models").dicts()}
    return [model for name, model in models.items() if published.get(name) != model.row()]


def _earlier_version(error: Exception) -> NoAnswerError:
    return NoAnswerError(
        f"the published file was made by an earlier version: run `gpufare refresh` ({error})"
    )


@contextmanager
def _prices_of(
    home: Home, day: date | None, today: date, progress: Progress
) -> Iterator[duckdb.DuckDBPyConnection]:
    if day is not None and day > today:
        raise JobError(f"--day {day} is after today ({today} UTC): it has no prices yet")
    with reader(home.published, few_rows=True) as connection:
        if day is None or day == ask(connection, "SELECT as_of_day FROM main.publication").rows[0][0]:
            yield connection
            return
    _require_prices(home, day, today)
    from pipeline.warehouse.build import build

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gpufare.duckdb"
        build(file, home, day, datetime.now(UTC), progress, keeps=False)
        with reader(file, few_rows=True) as connection:
            yield connection


def _require_prices(home: Home, day: date, today: date) -> None:
    from pipeline.catalog.source_config import asked_configs
    from pipeline.record.records import Records

    records = Records(home)
    recorded = {each for source in asked_configs() for each in records.days_with_offers(source)}
    days = sorted(each for each in recorded if each <= today)
    if day not in days:
        available = f"there are prices from {days[0]} to {days[-1]}" if days else "no day has prices"
        raise JobError(f"no prices were captured on {day}; {available}")
