"""The database behind a question: the published file, another day's prices, or a copy with another model.

Heavy packages are imported on demand: a question answered from the published file does not need them.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from pipeline.contracts.progress import Progress, no_progress
from pipeline.home.paths import Home
from pipeline.questions.job import JobError
from pipeline.warehouse.connection import connect
from pipeline.warehouse.query import ask, reader

if TYPE_CHECKING:
    from pipeline.catalog.own import OwnModel

THREADS = 1
"""A question reads few rows: more threads take more processor time and answer no sooner."""


@contextmanager
def prices_of(
    home: Home,
    day: date | None,
    today: date,
    given: "OwnModel | None" = None,
    progress: Progress = no_progress,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the published file or, for a day other than the file's, a database of that day from the record.

    With ``given``, open a copy that also contains this model. Raises NotPublishedError, and JobError for a
    day without prices or after ``today``.
    """
    with _prices_of(home, day, today, progress) as connection:
        if given is None:
            yield connection
            return
        source = ask(connection, "SELECT path FROM duckdb_databases() WHERE database_name = 'gpufare'")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "gpufare.duckdb"
            shutil.copyfile(source.rows[0][0], file)
            with connect(file) as copy:
                _add_model(copy, given)
            with reader(file, threads=THREADS) as knowing:
                yield knowing


def _add_model(copy: duckdb.DuckDBPyConnection, given: "OwnModel") -> None:
    """Add a model to the copy, replacing any model of the same name and deleting that model's plans."""
    from pipeline.catalog.own import OwnCatalogue
    from pipeline.warehouse.load import load_own

    try:
        for table in ("models", "plans", "plan_grid"):
            copy.execute(f"DELETE FROM main.{table} WHERE model = ?", [given.model])  # noqa: S608
        load_own(copy, OwnCatalogue(models=[given]))
    except duckdb.Error as error:
        raise JobError(
            f"the published file was made by an earlier version: run `gpufare refresh` ({error})"
        ) from error


@contextmanager
def _prices_of(
    home: Home, day: date | None, today: date, progress: Progress
) -> Iterator[duckdb.DuckDBPyConnection]:
    if day is not None and day > today:
        raise JobError(f"--day {day} is after today ({today} UTC): it has no prices yet")
    with reader(home.published, threads=THREADS) as connection:
        if day is None or day == ask(connection, "SELECT as_of_day FROM main.publication").rows[0][0]:
            yield connection
            return
    _require_prices(home, day, today)
    from pipeline.warehouse.build import build

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gpufare.duckdb"
        build(file, home, day, datetime.now(UTC), progress, keeps=False)
        with reader(file, threads=THREADS) as connection:
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
