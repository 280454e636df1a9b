"""The columns of an offer are those of the contract, in SQL and in the readers' listing, too."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from datetime import date, datetime
from decimal import Decimal
from typing import get_args

import duckdb
import pytest
from pydantic import BaseModel

from pipeline.contracts.listing import PRICE_KINDS, Listing, NativeUnit
from pipeline.contracts.offer import Continent, MatchStatus, Offer, RejectedRow, column_types
from pipeline.contracts.reject_reasons import FlagReason
from pipeline.contracts.training import CHECKPOINTINGS, METHODS, STACKS
from pipeline.home.paths import Home
from pipeline.warehouse.database import prepare
from pipeline.warehouse.query import QueryError, ask, reader

SQL_TYPES: dict[type, str] = {
    str: "VARCHAR",
    bool: "BOOLEAN",
    int: "INTEGER",
    float: "DOUBLE",
    Decimal: "DECIMAL(18,8)",
    date: "DATE",
    datetime: "TIMESTAMP WITH TIME ZONE",
    tuple: "INTEGER[]",
}

DAY = ("day", "DATE", False)


@pytest.fixture(scope="module")
def schema() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        prepare(connection)
        yield connection


def columns_in_sql(schema: duckdb.DuckDBPyConnection, table: str) -> list[tuple[str, str, bool, str]]:
    """Name, type, whether it may be null, and comment, in the order of the table."""
    return schema.execute(
        "SELECT column_name, data_type, is_nullable, comment FROM duckdb_columns()"
        " WHERE table_name = ? ORDER BY column_index",
        [table],
    ).fetchall()


def columns_in_contract(contract: type[BaseModel]) -> list[tuple[str, str, bool]]:
    types = column_types(contract)
    return [
        (name, SQL_TYPES[types[name]], name == "raw" or type(None) in get_args(field.annotation))
        for name, field in contract.model_fields.items()
    ]


@pytest.mark.parametrize(("table", "contract"), [("offers", Offer), ("rejects", RejectedRow)])
def test_table_has_the_columns_of_its_contract(
    schema: duckdb.DuckDBPyConnection, table: str, contract: type[BaseModel]
) -> None:
    columns = columns_in_sql(schema, table)
    assert [column[:3] for column in columns] == [DAY, *columns_in_contract(contract)]
    assert [name for name, *_, comment in columns if not (comment or "").endswith(".")] == []


def test_offers_latest_begins_with_the_columns_of_offers(schema: duckdb.DuckDBPyConnection) -> None:
    offers = columns_in_sql(schema, "offers")
    assert columns_in_sql(schema, "offers_latest")[: len(offers)] == offers


@pytest.mark.parametrize(
    ("column", "values"),
    [("flag_reason", FlagReason), ("native_unit", get_args(NativeUnit)), ("continent", get_args(Continent))],
)
def test_comments_of_an_offer_list_the_values_of_its_columns(
    schema: duckdb.DuckDBPyConnection, column: str, values: Iterable[str]
) -> None:
    (comment,) = [each[3] for each in columns_in_sql(schema, "offers") if each[0] == column]
    assert [value for value in values if value not in re.split(r"[ ,;.]+", comment)] == []


def test_a_listing_states_columns_of_an_offer() -> None:
    """``answer``, ``context``, ``label_kind`` and ``upstream_provider`` say how to fill others."""
    stated = {field.name for field in fields(Listing)} - Offer.model_fields.keys()
    assert stated == {"answer", "context", "label_kind", "upstream_provider"}


@pytest.mark.parametrize(
    ("column", "values"),
    [("price_kind", PRICE_KINDS), ("method", METHODS), ("match_status", get_args(MatchStatus))],
)
def test_constraints_and_comments_list_the_allowed_values(
    schema: duckdb.DuckDBPyConnection, column: str, values: tuple[str, ...]
) -> None:
    checks = schema.execute(
        "SELECT expression FROM duckdb_constraints()"
        " WHERE constraint_type = 'CHECK' AND constraint_column_names = [?]",
        [column],
    ).fetchall()
    assert checks
    for (expression,) in checks:
        assert set(re.findall(r"'(\w+)'", expression)) == set(values)


@pytest.mark.parametrize(("column", "values"), [("price_kind", PRICE_KINDS), ("method", METHODS)])
def test_comments_list_the_allowed_values(
    schema: duckdb.DuckDBPyConnection, column: str, values: tuple[str, ...]
) -> None:
    comments = schema.execute(
        "SELECT table_name, comment FROM duckdb_columns()"
        " WHERE column_name = ? AND NOT internal AND schema_name = 'main'",
        [column],
    ).fetchall()
    assert comments
    assert [table for table, text in comments if not all(value in text for value in values)] == []


def test_costs_are_defined_for_each_price_kind_and_no_other(sample_home: Home) -> None:
    with reader(sample_home.published) as connection:
        kinds = ask(connection, "SELECT DISTINCT price_kind FROM cost_parameters_by_source()").rows
        ranked = ask(connection, "SELECT DISTINCT price_kind FROM cheapest_gpu_per_workload").rows
    assert {kind for (kind,) in kinds} == set(PRICE_KINDS) == {kind for (kind,) in ranked}


@pytest.mark.parametrize(
    ("setting", "values"),
    [("checkpointing", CHECKPOINTINGS), ("stack", STACKS), ("kind", (*PRICE_KINDS, "any"))],
)
def test_questions_take_the_allowed_values_and_no_other(
    sample_home: Home, setting: str, values: tuple[str, ...]
) -> None:
    jobs = f"SELECT 'llama-3.1-8b' AS model, 1e6 AS tokens, unnest(?) AS {setting}, {setting} AS job"
    query = f"WITH mine AS ({jobs}) SELECT count(*) FROM cheapest_for('mine')"
    with reader(sample_home.published) as connection:
        ask(connection, query, [values])
        with pytest.raises(QueryError) as refused:
            ask(connection, query, [["another"]])
    listed = str(refused.value).partition("is none of ")[2].partition(".")[0].partition(", or several")[0]
    assert set(listed.split(", ")) == set(values)
