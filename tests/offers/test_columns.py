"""The columns of an offer are those of the contract, in SQL and in the readers' listing, too."""

from collections.abc import Iterable
from dataclasses import fields
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel

from pipeline.catalog.schema import read_table
from pipeline.contracts.listing import PRICE_KINDS, Listing, NativeUnit, TierClass
from pipeline.contracts.offer import Continent, MatchConfidence, MatchStatus, Offer, RejectedRow, SizeEvidence
from pipeline.contracts.reject_reasons import FlagReason
from pipeline.contracts.training import CHECKPOINTINGS, METHODS, STACKS
from pipeline.home.paths import Home
from pipeline.warehouse.query import QueryError, ask, reader

SQL_TYPES: dict[type, str] = {
    bool: "BOOLEAN",
    int: "INTEGER",
    float: "DOUBLE",
    Decimal: "DECIMAL(18,8)",
    date: "DATE",
    datetime: "TIMESTAMP WITH TIME ZONE",
}


def sql_type(annotation: Any) -> str:
    """The column type of a field: text for literals, enums and JSON."""
    kind = get_origin(annotation)
    if kind is tuple:
        return "INTEGER[]"
    if kind is not None and kind is not Literal:  # Annotated[value, ...], or value | None
        return sql_type(get_args(annotation)[0])
    return SQL_TYPES.get(annotation, "VARCHAR")


@pytest.mark.parametrize(("table", "contract"), [("offers", Offer), ("rejects", RejectedRow)])
def test_table_has_the_columns_of_its_contract(table: str, contract: type[BaseModel]) -> None:
    columns = [(column.name, column.type, column.nullable) for column in read_table(table).described()]
    assert columns == [
        ("day", "DATE", False),
        *(
            (name, sql_type(field.annotation), name == "raw" or type(None) in get_args(field.annotation))
            for name, field in contract.model_fields.items()
        ),
    ]


def test_offers_latest_begins_with_the_columns_of_offers() -> None:
    offers = read_table("offers").described()
    assert read_table("offers_latest").described()[: len(offers)] == offers


@pytest.mark.parametrize(
    ("table", "column", "values"),
    [
        ("offers", "flag_reason", FlagReason),
        ("offers", "native_unit", get_args(NativeUnit)),
        ("offers", "continent", get_args(Continent)),
        ("offers", "price_kind", PRICE_KINDS),
        ("offers", "match_status", get_args(MatchStatus)),
        ("offers", "match_confidence", get_args(MatchConfidence)),
        ("offers", "size_evidence", get_args(SizeEvidence)),
        ("offers", "tier_class", get_args(TierClass)),
        ("workloads", "method", METHODS),
        ("plans", "checkpointing", CHECKPOINTINGS),
    ],
)
def test_columns_allow_the_values_that_the_code_has(table: str, column: str, values: Iterable[str]) -> None:
    (found,) = [each for each in read_table(table).described() if each.name == column]
    assert sorted(found.values) == sorted(values)
    assert [value for value in values if value not in found.meaning] == []


def test_a_listing_states_columns_of_an_offer() -> None:
    """``answer``, ``context``, ``label_kind`` and ``upstream_provider`` say how to fill others."""
    stated = {field.name for field in fields(Listing)} - Offer.model_fields.keys()
    assert stated == {"answer", "context", "label_kind", "upstream_provider"}


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
