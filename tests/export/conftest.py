"""One export of the sample home for all tests, and how its descriptor is read."""

import csv
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pipeline.export.whole import export
from pipeline.home.paths import Home
from pipeline.warehouse.query import reader
from tests.homes import made_once, shared_folder


@pytest.fixture(scope="session")
def exported(sample_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All tables as CSV. Read only."""

    def write(folder: Path) -> None:
        with reader(sample_home.published, writes_files=True) as connection:
            export(connection, folder, "csv")

    return made_once(shared_folder(tmp_path_factory) / "exported-csv", write)


def package_of(folder: Path) -> dict[str, Any]:
    """The descriptor of an export."""
    package: dict[str, Any] = json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))
    assert datetime.fromisoformat(package["created"]).tzinfo == UTC
    return package


def schema_of(folder: Path, resource: dict[str, Any]) -> dict[str, Any]:
    """A resource's schema, wherever it is written."""
    schema = resource["schema"]
    return json.loads((folder / schema).read_text(encoding="utf-8")) if isinstance(schema, str) else schema


def fields(folder: Path, resource: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """A resource's fields by name."""
    return {field["name"]: field for field in schema_of(folder, resource)["fields"]}


def rows_of(file: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with file.open(newline="", encoding="utf-8-sig") as opened:
        return list(csv.DictReader(opened))
