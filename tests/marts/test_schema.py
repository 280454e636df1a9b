"""The tables that sql/schema declares."""

from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.catalog.schema import Table, column_rows, read_table, table_names
from pipeline.warehouse.ddl import create_sql


def table(**given: Any) -> Table:
    return Table(
        **({"name": "t", "purpose": "file", "comment": "A table.", "columns": "day price_kind?"} | given)
    )


def test_a_wrong_declaration_is_rejected() -> None:
    for given, says in (
        ({"columns": "day prise"}, "not in columns.csv: prise"),
        ({"meanings": {"gpu_id": "A card."}}, "not among the table's columns: gpu_id"),
        ({"checks": ["price_kind"], "key": ["source"]}, "not among the table's columns: source"),
        ({"columns": "day kind"}, "without a meaning: kind"),
        ({"purpose": "fun"}, "purpose: 'fun' is not one of answers, prices"),
        ({"check": ["price_kind"]}, "Extra inputs are not permitted"),
    ):
        with pytest.raises(ValidationError, match=says):
            table(**given)


def test_a_table_is_created_from_its_columns() -> None:
    own = table(
        key=["day"],
        checks=["price_kind", "day > '2026-01-01'"],
        types={"day": "VARCHAR"},
        meanings={"price_kind": "What it's for."},
        allowed={"price_kind": "spot (reclaimed)|reserved"},
        defaults={"day": "''"},
    )
    assert create_sql(own).splitlines() == [
        'CREATE TABLE main.t ("day" VARCHAR NOT NULL DEFAULT \'\', "price_kind" VARCHAR, '
        'PRIMARY KEY ("day"), '
        "CHECK (\"price_kind\" IN ('spot', 'reserved')), CHECK (day > '2026-01-01'));",
        "COMMENT ON TABLE main.t IS 'A table.';",
        "COMMENT ON COLUMN main.t.\"day\" IS 'Day of the capture (UTC).';",
        "COMMENT ON COLUMN main.t.\"price_kind\" IS 'What it''s for. One of spot (reclaimed), reserved.';",
    ]


def test_a_meaning_replaces_the_allowed_values() -> None:
    assert table().described()[1].values
    assert not table(meanings={"price_kind": "Another kind."}).described()[1].values


def test_meanings_are_sentences_and_each_described_column_is_in_a_table() -> None:
    columns = [column for name in table_names() for column in read_table(name).described()]
    assert [column.name for column in columns if not column.meaning.endswith(".")] == []
    assert {column.name for column in columns} == column_rows().keys()
    assert list(column_rows()) == sorted(column_rows())
