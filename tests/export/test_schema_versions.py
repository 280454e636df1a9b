"""Readers of the exports are told of every column that was renamed, dropped or given another type."""

import csv
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from pipeline.export.versions import FOLDER, schema_changes, schema_version
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


@cache
def published_columns() -> dict[str, str]:
    """Return each column with its type, as sql/schema defines it."""
    with connect() as connection:
        create(connection)
        return dict(ask(connection, COLUMNS).rows)


def test_every_change_of_a_column_has_an_entry() -> None:
    """A new column without one could be dropped again unnoticed."""
    said = replayed(columns_of_the_first_version(), schema_changes())
    changed = sorted(set(said.items()) ^ set(published_columns().items()))
    assert not changed, f"add a version to catalog/{FOLDER}/changes.yaml with: {changed}"


def test_the_published_file_has_these_columns(sample_home: Home) -> None:
    with reader(sample_home.published) as connection:
        assert dict(ask(connection, COLUMNS).rows) == published_columns()


def test_dropped_renamed_retyped_and_added_columns_are_replayed() -> None:
    before = {"gpus.gpu_id": "VARCHAR", "plans.gpu_count": "INTEGER", "claims.title": "VARCHAR"}
    entry = {
        "renamed": {"gpus.gpu_id": "gpus.card"},
        "retyped": {"plans.gpu_count": "DOUBLE"},
        "dropped": ["claims.title"],
        "added": {"gpus.launched": "DATE"},
    }
    after = {"gpus.card": "VARCHAR", "plans.gpu_count": "DOUBLE", "gpus.launched": "DATE"}
    assert replayed(before, [entry]) == after
    assert replayed(before, [{"dropped": ["gpus.card"]}, {"renamed": entry["renamed"]}]).keys() == {
        "plans.gpu_count",
        "claims.title",
    }
    with pytest.raises(KeyError):
        replayed(before, [{"dropped": ["plans.never_there"]}])


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
    assert schema_version() == schema_changes()[0]["version"]
    for change in schema_changes():
        assert change.keys() <= {"version", "day", "note", "added", "dropped", "renamed", "retyped"}


def test_a_version_number_follows_from_its_change() -> None:
    drops, adds, notes = {"dropped": ["gpus.year"]}, {"added": {"gpus.at": "DATE"}}, {"note": "another unit"}
    cases = [
        ("0.2.0", "0.1.9", drops, True),
        ("0.1.1", "0.1.0", drops, False),
        ("1.3.0", "1.2.0", drops, False),
        ("2.0.0", "1.2.0", {"renamed": {"gpus.year": "gpus.launched"}}, True),
        ("1.3.0", "1.2.0", adds, True),
        ("1.2.1", "1.2.0", adds, False),
        ("1.2.1", "1.2.0", notes, True),
        ("1.2.0", "1.2.0", notes, False),
    ]
    for version, before, change, fits in cases:
        wrong = wrong_numbers([{"version": version, **change}, {"version": before}])
        assert wrong == ([] if fits else [version]), (version, before)
