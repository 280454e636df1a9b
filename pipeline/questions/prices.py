"""The database behind a question: the published file or another day's prices, with the user's models.

Heavy packages are imported on demand: a question answered from the published file does not need them.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.contracts.progress import Progress, no_progress
from pipeline.home.paths import Home
from pipeline.questions.job import JobError, NoAnswerError
from pipeline.warehouse.engine import duckdb
from pipeline.warehouse.query import ask, reader

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

    The connection also knows the home's own models, even those added since the publication, and the model
    ``given``. Raises NotPublishedError, and JobError for a day without prices or after ``today``.
    """
    with _prices_of(home, day, today, progress) as connection:
        models = [*_own_models(home), *([given] if given else [])]
        if models:
            _add_models(connection, {model.model: model for model in models})
        yield connection


def _own_models(home: Home) -> "list[OwnModel]":
    if not home.models.exists():
        return []
    from pipeline.catalog.own import read_own_catalogue

    return read_own_catalogue(home).models


def _add_models(connection: duckdb.DuckDBPyConnection, models: "Mapping[str, OwnModel]") -> None:
    """Put models, keyed by name, in front of the published ones of the same names, and leave out the plans of
    those. The file is not changed: DuckDB finds a temporary table before a table of the file."""
    from pipeline.catalog.own import OwnCatalogue
    from pipeline.warehouse.load import load_own

    published = {row["model"]: row for row in ask(connection, "FROM main.models").dicts()}
    added = [model for name, model in models.items() if published.get(name) != model.row()]
    if not added:
        return
    names = ", ".join(f"'{model.model}'" for model in added)
    try:
        for table, kind in (("models", "TABLE"), ("plans", "VIEW"), ("plan_grid", "VIEW")):
            others = f"FROM gpufare.main.{table} WHERE model NOT IN ({names})"
            connection.execute(f"CREATE TEMP {kind} {table} AS {others}")
        load_own(connection, OwnCatalogue(models=added))
    except duckdb.Error as error:
        raise NoAnswerError(
            f"the published file was made by an earlier version: run `gpufare refresh` ({error})"
        ) from error


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
