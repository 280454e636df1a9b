"""Readers of the exports are told of every column that was renamed, dropped or given another type."""

import csv
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from pipeline.export.versions import FOLDER, schema_changes
from pipeline.home.paths import CATALOG_DIR, Home
from pipeline.warehouse.connection import connect
from pipeline.warehouse.database import create
from pipeline.warehouse.query import ask, reader

COLUMNS = """SELECT table_name || '.' || column_name, data_type FROM duckdb_columns()
              WHERE schema_name = 'main' AND table_name IN (
                    SELECT table_name FROM duckdb_tables() WHERE comment IS NOT NULL AND NOT temporary)"""


def columns_of_the_first_version() -> dict[str, str]:
    first = schema_changes()[-1]["version"]
    with (CATALOG_DIR / FOLDER / f"{first}.csv").open(newline="", encoding="utf-8") as file:
        return {f"{row['table']}.{row['column']}": row["type"] for row in csv.DictReader(file)}


def replayed(columns: dict[str, str], changes: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The columns after the changes, newest first."""
    columns = dict(columns)
    for change in reversed(changes):
        for name in change.get("dropped", ()):
            del columns[name]
        for former, name in change.get("renamed", {}).items():
            columns[name] = columns.pop(former)
        for name, kind in change.get("retyped", {}).items():
            assert name in columns, f"{name} is said to have another type, and was not there"
            columns[name] = kind
        columns |= change.get("added", {})
    return columns


def missing(said: dict[str, str], published: dict[str, str]) -> list[str]:
    """What a version must say that no version says: columns that are gone or have another type."""
    return sorted(
        f"{name} was {kind} and is {published.get(name, 'gone')}"
        for name, kind in said.items()
        if published.get(name) != kind
    )


@cache
def _published_columns() -> dict[str, str]:
    """As sql/schema defines them."""
    with connect() as connection:
        create(connection)
        return dict(ask(connection, COLUMNS).rows)


def published_columns() -> dict[str, str]:
    return dict(_published_columns())


def test_no_column_is_renamed_dropped_or_retyped_without_an_entry() -> None:
    said = replayed(columns_of_the_first_version(), schema_changes())
    undocumented = missing(said, published_columns())
    assert not undocumented, f"say so in a new version of catalog/{FOLDER}/changes.yaml: {undocumented}"


def test_no_column_is_added_without_an_entry() -> None:
    """Else nobody would notice when it is dropped again."""
    said = replayed(columns_of_the_first_version(), schema_changes())
    new = {name: kind for name, kind in published_columns().items() if name not in said}
    assert not new, f"add a version to catalog/{FOLDER}/changes.yaml with added: {new}"


def test_the_published_file_has_these_columns(sample_home: Home) -> None:
    with reader(sample_home.published) as connection:
        assert dict(ask(connection, COLUMNS).rows) == published_columns()


def test_a_dropped_a_renamed_and_a_retyped_column_are_noticed() -> None:
    published = published_columns()
    said = dict(published)
    published["gpus.card"] = published.pop("gpus.gpu_id")
    published["plans.gpu_count"] = "DOUBLE"
    del published["claims.title"]
    assert missing(said, published) == [
        "claims.title was VARCHAR and is gone",
        "gpus.gpu_id was VARCHAR and is gone",
        "plans.gpu_count was INTEGER and is DOUBLE",
    ]
    entry = {
        "renamed": {"gpus.gpu_id": "gpus.card"},
        "retyped": {"plans.gpu_count": "DOUBLE"},
        "dropped": ["claims.title"],
    }
    assert missing(replayed(said, [entry]), published) == []


def test_versions_go_up_and_break_only_with_their_first_number() -> None:
    changes = schema_changes()
    numbers = [tuple(int(part) for part in change["version"].split(".")) for change in changes]
    assert numbers == sorted(numbers, reverse=True)
    assert len(set(numbers)) == len(numbers)
    for change, number, before in zip(changes, numbers, numbers[1:], strict=False):
        assert change.keys() <= {"version", "day", "note", "added", "dropped", "renamed", "retyped"}
        if change.keys() & {"dropped", "renamed", "retyped"}:
            assert number[0] > before[0], f"{change['version']} breaks readers: its first number must move"
        elif "added" in change:
            assert number[:2] > before[:2], f"{change['version']} adds columns: its second number must move"


def test_what_was_never_there_cannot_be_dropped() -> None:
    with pytest.raises(KeyError):
        replayed(columns_of_the_first_version(), [{"dropped": ["plans.never_there"]}])
