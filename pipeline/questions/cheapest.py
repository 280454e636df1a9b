"""The cheapest ways to run one training job, ranked."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

import duckdb

from pipeline.catalog.own_models import OwnModel
from pipeline.catalog.source_config import configs
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.paths import Home
from pipeline.model.given_models import insert_model
from pipeline.offers.records import Records
from pipeline.warehouse.build import build
from pipeline.warehouse.connection import connect
from pipeline.warehouse.query import QueryError, Result, ask, reader


class JobError(GpufareError):
    """The question cannot be answered: says which part of the job is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A training job as ``cheapest_for`` takes it; None leaves a setting at its documented default."""

    model: str
    method: str
    tokens: float | None = None
    examples: float | None = None
    tokens_per_example: float | None = None
    epochs: float | None = None
    seq_len: int | None = None
    lora_rank: int | None = None
    micro_batch: int | None = None
    checkpointing: str | None = None
    offload: str | None = None
    stack: str | None = None
    max_gpus: int | None = None
    max_hours: float | None = None
    min_fit_probability: float | None = None
    price_kind: str = "on_demand"
    objective: Literal["cost", "time"] = "cost"
    assumed_sizes: bool | None = None


@contextmanager
def prices_of(
    home: Home, day: date | None, today: date, given: OwnModel | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """The published file, or for another day than its own, a database of that day built from the record.

    With ``given``, a copy that knows this model, too. Raises NotPublishedError, and JobError for a day
    without prices or after ``today``.
    """
    with _prices_of(home, day, today) as connection:
        if given is None:
            yield connection
            return
        source = ask(connection, "SELECT path FROM duckdb_databases() WHERE database_name = 'gpufare'")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "gpufare.duckdb"
            shutil.copyfile(source.rows[0][0], file)
            with connect(file) as copy:
                _add_model(copy, given)
            with reader(file) as knowing:
                yield knowing


def _add_model(copy: duckdb.DuckDBPyConnection, given: OwnModel) -> None:
    """A model of the same name, of the catalogue or the user's own, gives way in the copy."""
    try:
        copy.execute("DELETE FROM main.models WHERE model = ?", [given.model])
        insert_model(copy, given)
    except duckdb.Error as error:
        raise JobError(
            f"the published file is of an earlier version: run `gpufare refresh` ({error})"
        ) from error


@contextmanager
def _prices_of(home: Home, day: date | None, today: date) -> Iterator[duckdb.DuckDBPyConnection]:
    if day is not None and day > today:
        raise JobError(f"--day {day} is after today ({today} UTC): there are no prices of it yet")
    with reader(home.published) as connection:
        if day is None or day == ask(connection, "SELECT as_of_day FROM main.publication").rows[0][0]:
            yield connection
            return
    _refuse_day_without_prices(home, day, today)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gpufare.duckdb"
        build(file, home, day, datetime.now(UTC))
        with reader(file) as connection:
            yield connection


def _refuse_day_without_prices(home: Home, day: date, today: date) -> None:
    records = Records(home)
    recorded = {each for source in configs() for each in records.accepted_days(source)}
    days = sorted(each for each in recorded if each <= today)
    if day not in days:
        available = f"there are prices of {days[0]} to {days[-1]}" if days else "there are none at all"
        raise JobError(f"no prices were captured on {day}; {available}")


def cheapest(connection: duckdb.DuckDBPyConnection, job: Job) -> Result:
    """Every ranked way to run the job, all columns of ``cheapest_for``. Raises JobError."""
    settings = {name: value for name, value in asdict(job).items() if value is not None}
    _refuse_unknown_model(connection, job.model)
    columns = ", ".join(f"? AS {name}" for name in settings)
    query = f"WITH asked AS (SELECT {columns}) FROM cheapest_for('asked') ORDER BY rank"  # noqa: S608
    try:
        return ask(connection, query, list(settings.values()))
    except QueryError as error:
        raise JobError(str(error).splitlines()[0].removeprefix("Invalid Input Error: ")) from error


def _refuse_unknown_model(connection: duckdb.DuckDBPyConnection, model: str) -> None:
    known = [name for (name,) in ask(connection, "SELECT model FROM main.models ORDER BY model").rows]
    if model not in known:
        similar = get_close_matches(model.lower().rpartition("/")[2], known, n=3)
        hint = f"did you mean {' or '.join(similar)}? " if similar else ""
        raise JobError(
            f"there is no model {model!r}; {hint}give its config.json with --config, or add it with gpufare "
            f"model add and refresh; known models: {', '.join(known)}"
        )
