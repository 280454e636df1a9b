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
    """Return the columns after ``changes``, which are listed newest first."""
    columns = dict(columns)
    for change in reversed(changes):
        for name in change.get("dropped", ()):
            del columns[name]
        for former, name in change.get("renamed", {}).items():
            columns[name] = columns.pop(former)
        for name, kind in change.get("retyped", {}).items():
            assert name in columns, f"{name} is retyped but does not exist"
            columns[name] = kind
        columns |= change.get("added", {})
    return columns


def missing(said: dict[str, str], published: dict[str, str]) -> list[str]:
    """Columns that are gone or have another type without an entry."""
    return sorted(
        f"{name} was {kind} and is {published.get(name, 'gone')}"
        for name, kind in said.items()
        if published.get(name) != kind
    )


@cache
def _published_columns() -> dict[str, str]:
    """Return each column with its type, as sql/schema defines it."""
    with connect() as connection:
        create(connection)
        return dict(ask(connection, COLUMNS).rows)


def published_columns() -> dict[str, str]:
    return dict(_published_columns())


def test_no_column_is_renamed_dropped_or_retyped_without_an_entry() -> None:
    said = replayed(columns_of_the_first_version(), schema_changes())
    undocumented = missing(said, published_columns())
    assert not undocumented, f"add a version to catalog/{FOLDER}/changes.yaml with: {undocumented}"


def test_no_column_is_added_without_an_entry() -> None:
    """A column without an entry could be dropped again unnoticed."""
    said = replayed(columns_of_the_first_version(), schema_changes())
    new = {name: kind for name, kind in published_columns().items() if name not in said}
    assert not new, f"add a version to catalog/{FOLDER}/changes.yaml with added: {new}"


def test_the_published_file_has_these_columns(sample_home: Home) -> None:
    with reader(sample_home.published) as connection:
        assert dict(ask(connection, COLUMNS).rows) == published_columns()


def test_dropped_renamed_and_retyped_columns_are_noticed() -> None:
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


def wrong_numbers(changes: Sequence[dict[str, Any]]) -> list[str]:
    """Return the versions, newest first, whose number does not suit what they change."""
    numbers = [tuple(int(part) for part in change["version"].split(".")) for change in changes]
    wrong = []
    for change, number, before in zip(changes, numbers, numbers[1:], strict=False):
        breaks = change.keys() & {"dropped", "renamed", "retyped"}
        digits = 1 if breaks and number[0] else 2 if breaks or "added" in change else 3
        if number[:digits] <= before[:digits]:
            wrong.append(change["version"])
    return wrong


def test_versions_are_numbered_by_their_changes() -> None:
    assert wrong_numbers(schema_changes()) == []
    for change in schema_changes():
        assert change.keys() <= {"version", "day", "note", "added", "dropped", "renamed", "retyped"}


@pytest.mark.parametrize(
    ("version", "before", "change", "fits"),
    [
        ("0.2.0", "0.1.9", {"dropped": ["gpus.year"]}, True),
        ("0.1.1", "0.1.0", {"dropped": ["gpus.year"]}, False),
        ("1.3.0", "1.2.0", {"dropped": ["gpus.year"]}, False),
        ("2.0.0", "1.2.0", {"renamed": {"gpus.year": "gpus.launched"}}, True),
        ("1.3.0", "1.2.0", {"added": {"gpus.launched": "DATE"}}, True),
        ("1.2.1", "1.2.0", {"added": {"gpus.launched": "DATE"}}, False),
        ("1.2.1", "1.2.0", {"note": "another unit"}, True),
        ("1.2.0", "1.2.0", {"note": "the same number twice"}, False),
    ],
)
def test_a_version_number_follows_from_its_change(
    version: str, before: str, change: dict[str, Any], fits: bool
) -> None:
    wrong = wrong_numbers([{"version": version, **change}, {"version": before}])
    assert wrong == ([] if fits else [version])


def test_a_missing_column_cannot_be_dropped() -> None:
    with pytest.raises(KeyError):
        replayed(columns_of_the_first_version(), [{"dropped": ["plans.never_there"]}])
