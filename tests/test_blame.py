"""Only an error that a file can cause sets it aside; a mistake in our SQL is raised and costs nothing."""

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import duckdb
import polars as pl
import pytest

from pipeline.home.paths import Home
from pipeline.record.record_files import RecordFile, record_files
from pipeline.record.records import Records
from pipeline.warehouse.database import create
from pipeline.warehouse.load import LOADERS, Insert, load_files
from tests.offers.builders import offer

DAYS = (date(2026, 8, 21), date(2026, 8, 22))
INSERT_OFFERS = LOADERS["offers"][1]
READ = "FROM read_parquet([{}], union_by_name = true)"


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        create(opened, "offers")
        yield opened


@pytest.fixture
def files(tmp_path: Path) -> list[RecordFile]:
    home = Home(tmp_path)
    for day in DAYS:
        Records(home).write_accepted(day, "crusoe", [offer("2", source="crusoe")])
    return record_files(home, "offers")


def inserting(select: str) -> Insert:
    """What inserts by other SQL than the record's."""

    def insert(connection: duckdb.DuckDBPyConnection, files: Sequence[RecordFile]) -> None:
        read = READ.format(", ".join(f"'{file.path}'" for file in files))
        connection.execute(f"INSERT INTO main.offers BY NAME {select} {read}")

    return insert


@pytest.mark.parametrize(
    ("select", "error"),
    [
        ("SELEC *", duckdb.ParserException),
        ("SELECT * REPLACE (no_function(source) AS source)", duckdb.CatalogException),
        ("SELECT * REPLACE (no_column AS source)", duckdb.BinderException),
        ("SELECT *, source AS no_column", duckdb.BinderException),
        ("SELECT * REPLACE (list_sum(source) AS source)", duckdb.BinderException),
    ],
)
def test_a_mistake_in_our_sql_is_raised(
    select: str, error: type[duckdb.Error], connection: duckdb.DuckDBPyConnection, files: list[RecordFile]
) -> None:
    with pytest.raises(error):
        load_files(connection, files, inserting(select))


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.drop("source"),
        lambda frame: frame.with_columns(price=pl.lit(1.0)),
        lambda frame: frame.with_columns(source=pl.lit(1.5)),
        lambda frame: frame.with_columns(source=pl.struct(name=pl.lit("crusoe"))),
        lambda frame: frame.with_columns(tier=pl.struct(name=pl.lit("spot"))),
        lambda frame: frame.with_columns(gpu_count=pl.lit([1])),
        lambda frame: frame.with_columns(filename=pl.lit("x")),
        lambda frame: frame.with_columns(source=pl.lit("lambda")),
        lambda frame: frame.with_columns(observed_at=pl.lit("yesterday")),
    ],
)
def test_a_file_of_another_shape_is_left_out_and_the_other_is_loaded(
    change: object, connection: duckdb.DuckDBPyConnection, files: list[RecordFile]
) -> None:
    assert callable(change)
    change(pl.read_parquet(files[0].path)).write_parquet(files[0].path)
    (damage,) = load_files(connection, files, INSERT_OFFERS)
    assert damage.file == files[0]
    assert connection.execute("SELECT DISTINCT day FROM main.offers").fetchall() == [(DAYS[1],)]


def test_a_column_that_the_sql_needs_and_one_file_lacks_is_that_files_fault(
    connection: duckdb.DuckDBPyConnection, files: list[RecordFile]
) -> None:
    pl.read_parquet(files[0].path).drop("tier").write_parquet(files[0].path)
    (damage,) = load_files(
        connection, files[:1], inserting(f"SELECT DATE '{DAYS[0]}' AS day, * REPLACE (trim(tier) AS tier)")
    )
    assert damage.file == files[0], damage.reason
    assert '"tier"' in damage.reason
