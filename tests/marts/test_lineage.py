"""Dependencies in sql/, found by parsing instead of a hand-kept list."""

import json
import re
from collections.abc import Iterator
from graphlib import CycleError
from typing import Any

import duckdb
import pytest

from pipeline.catalog.schema import table_names
from pipeline.home.paths import SQL_DIR
from pipeline.warehouse.connection import connect
from pipeline.warehouse.database import create
from pipeline.warehouse.lineage import Lineage, in_order
from pipeline.warehouse.sql_files import BuildError

MARTS = sorted((SQL_DIR / "marts").glob("*.sql"), key=lambda path: path.stem)


@pytest.fixture(scope="module")
def lineage() -> Lineage:
    return Lineage(connect())


def test_tables_are_found_through_macros(lineage: Lineage) -> None:
    read = {
        "offers": "",
        "vram_requirements": "plans gpus models offers",
        "rentals": "offers_latest gpus sources machine_sizes cost_parameters countries",
        "plans": "workloads models gpus model_constants model_bands measured_runs recipe_settings "
        "recipe_memory recipe_work measured_sources job_settings own_corrections",
        "cheapest_gpu_per_workload": "workloads plans rentals gpus cost_parameters models job_settings "
        "job_names offers_latest exchange_rates out_of_scope",
        "compare_gpus": "gpu_compare job_names gpus offers_latest out_of_scope",
    }
    assert {name: lineage.tables_read(name) for name in read} == {
        name: set(tables.split()) for name, tables in read.items()
    }


def test_parser_and_text_name_the_same_tables(lineage: Lineage) -> None:
    """A table named without its schema could be captured by a CTE of whoever calls a macro."""
    differing = {}
    for mart in MARTS:
        text = re.sub("--.*", "", mart.read_text(encoding="utf-8"))
        read = {name for name in lineage.reads(mart.stem) if name in table_names()}
        if read ^ set(re.findall(r"main\.(\w+)", text)) - {mart.stem}:
            differing[mart.stem] = read
    assert differing == {}


def test_every_macro_is_found_and_names_its_tables_with_their_schema() -> None:
    """A table named without it would be the CTE of that name of whoever calls the macro."""
    with connect() as connection:
        create(connection)
        macros = connection.execute(
            """SELECT
                function_name, CASE function_type WHEN 'macro' THEN 'SELECT ' ELSE '' END || macro_definition
            FROM duckdb_functions() WHERE database_name = current_database() AND NOT internal"""
        ).fetchall()
        lineage, bare = Lineage(connection), []
        for name, query in macros:
            assert lineage.names_in(f'SELECT "{name}"()') == {name}
            ((tree,),) = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
            bare += [(name, table) for table in bare_tables(json.loads(tree)) if table in table_names()]
    assert len(macros) > 40
    assert bare == []


def bare_tables(node: Any) -> Iterator[str]:
    """Return the tables in a parsed query that are named without a schema."""
    if isinstance(node, dict):
        if node.get("type") == "BASE_TABLE" and not node["schema_name"]:
            yield node["table_name"]
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from bare_tables(child)


def test_a_circle_is_reported() -> None:
    with pytest.raises(CycleError, match=r"a.*b|b.*a"):
        in_order({"a": {"b"}, "b": {"a"}, "c": {"a"}})


def test_tables_come_after_those_they_read(lineage: Lineage) -> None:
    order = lineage.marts()
    assert sorted(order) == [path.stem for path in MARTS]
    for place, mart in enumerate(order):
        assert not lineage.tables_read(mart) & set(order[place:])


def test_a_part_is_created_with_all_that_it_needs() -> None:
    with connect() as connection:
        create(connection, "plans_for")
        found = connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'"
        ).fetchall()
        assert {name for (name,) in found} == Lineage(connection).tables_read("plans_for")
        with pytest.raises(duckdb.CatalogException, match="rentals"):
            connection.execute("FROM main.rentals")


def test_wrong_names_and_queries_are_refused(lineage: Lineage) -> None:
    with pytest.raises(BuildError, match="no table or macro plan_for"):
        lineage.needed(["plan_for"])
    with pytest.raises(BuildError, match="syntax error"):
        lineage.names_in("SELECT FROM WHERE")
