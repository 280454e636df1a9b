"""Readers of the exports are told of every column that was renamed, dropped or given another type."""

import csv

from pipeline.export.versions import FOLDER, schema_changes
from pipeline.home.paths import CATALOG_DIR, Home
from pipeline.warehouse.connection import connect
from pipeline.warehouse.database import create
from pipeline.warehouse.query import ask, reader

COLUMNS = """SELECT table_name || '.' || column_name, data_type FROM duckdb_columns()
              WHERE schema_name = 'main' AND table_name IN (
                    SELECT table_name FROM duckdb_tables() WHERE comment IS NOT NULL AND NOT temporary)"""


def columns_by_their_changes() -> dict[str, str]:
    """The columns of the first version after all changes, which are listed newest first."""
    first = schema_changes()[-1]["version"]
    with (CATALOG_DIR / FOLDER / f"{first}.csv").open(newline="", encoding="utf-8") as file:
        columns = {f"{row['table']}.{row['column']}": row["type"] for row in csv.DictReader(file)}
    for change in reversed(schema_changes()):
        for name in change.get("dropped", ()):
            del columns[name]
        for former, name in change.get("renamed", {}).items():
            columns[name] = columns.pop(former)
        for name, kind in change.get("retyped", {}).items():
            assert name in columns, f"{name} is retyped but does not exist"
            columns[name] = kind
        columns |= change.get("added", {})
    return columns


def test_every_change_of_a_column_has_an_entry_and_is_published(sample_home: Home) -> None:
    """A new column without one could be dropped again unnoticed."""
    with connect() as connection:
        create(connection)
        defined = dict(ask(connection, COLUMNS).rows)
    changed = sorted(set(columns_by_their_changes().items()) ^ set(defined.items()))
    assert not changed, f"add a version to catalog/{FOLDER}/changes.yaml with: {changed}"
    with reader(sample_home.published) as connection:
        assert dict(ask(connection, COLUMNS).rows) == defined
