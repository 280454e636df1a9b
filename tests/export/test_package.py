"""datapackage.json says what is in the files: bytes, types, units, keys and allowed values."""

import csv
import hashlib
import json
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from pipeline.catalog.source_config import configs
from pipeline.export.cells import csv_cell
from pipeline.export.tables import BY_DAY
from pipeline.export.versions import schema_version
from pipeline.export.whole import SMALL, export
from pipeline.home.paths import Home
from pipeline.warehouse.query import reader
from tests.export.conftest import ask_tool, package_of

POLARS_TYPES = {
    "string": pl.String,
    "integer": (pl.Int32, pl.Int64),
    "number": (pl.Float64, pl.Decimal),
    "boolean": pl.Boolean,
    "date": pl.Date,
    "datetime": pl.Datetime,
    "array": pl.List,
}

VALIDATE = """
import json, sys
from frictionless import Package, validate
report = validate(sys.argv[1])
changed = Package(sys.argv[1]).get_resource("rejects-2026-08-22")  # with another hash: the validator looks
changed.hash = "sha256:" + 64 * "0"
assert [error.type for error in validate(changed).tasks[0].errors] == ["hash-count"]
print(json.dumps([report.valid, report.stats["tasks"], [error.message for error in report.errors] +
    [f"{task.name}: {error.message}" for task in report.tasks for error in task.errors]]))
"""

VALIDATE_SCHEMAS = """
import json, sys
from frictionless import Package
package = Package.from_descriptor(sys.argv[1])
print(json.dumps({each.name: len(each.schema.fields) for each in package.resources}))
"""


def fields(folder: Path, resource: dict[str, Any]) -> dict[str, dict[str, Any]]:
    schema = resource["schema"]
    if isinstance(schema, str):
        schema = json.loads((folder / schema).read_text(encoding="utf-8"))
    return {field["name"]: field for field in schema["fields"]}


def field(folder: Path, table: str, column: str) -> dict[str, Any]:
    (resource,) = [each for each in package_of(folder)["resources"] if each["name"] == table]
    return fields(folder, resource)[column]


def schema(folder: Path, table: str) -> dict[str, Any]:
    (resource,) = [each for each in package_of(folder)["resources"] if each["name"] == table]
    return dict(resource["schema"])


def test_every_file_is_described_to_the_byte(exported: Path) -> None:
    package = package_of(exported)
    named = {each["path"]: each for each in package["resources"]}
    schemas = {each["schema"] for each in package["resources"] if isinstance(each["schema"], str)}
    files = {str(path.relative_to(exported)) for path in exported.rglob("*") if path.is_file()}
    assert files == {"datapackage.json", *named, *schemas}
    for path, resource in named.items():
        content = (exported / path).read_bytes()
        assert resource["bytes"] == len(content)
        assert resource["hash"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
        assert (resource["format"], resource["mediatype"]) == ("csv", "text/csv")
        assert list(fields(exported, resource)) == next(csv.reader(content.decode().splitlines()[:1]))
        for each in fields(exported, resource).values():
            assert each["description"]
            assert each["type"] != "any"


def test_the_package_names_its_version_licence_and_the_rights_of_each_source(exported: Path) -> None:
    package = package_of(exported)
    assert package["$schema"] == "https://datapackage.org/profiles/2.0/datapackage.json"
    assert (package["name"], package["version"]) == ("gpufare", schema_version())
    assert [each["name"] for each in package["licenses"]] == ["Apache-2.0"]
    rights = {each["source"]: each["rights"] for each in package["sources"]}
    with (exported / "offers" / "2026-08-22.csv").open(newline="", encoding="utf-8") as file:
        assert rights.keys() == {row["source"] for row in csv.DictReader(file)} | {"ecb"}
    assert rights["vast"]["republishing"] == "forbidden"
    assert rights["vast"]["read_on"] == "2026-10-05"
    assert rights["ecb"]["republishing"] == "allowed"
    assert rights["civo"] == {"republishing": "unknown"}


def test_every_source_states_the_known_right_to_publish_it() -> None:
    text = {name: Path(f"catalog/sources/{name}.yaml").read_text(encoding="utf-8") for name in configs()}
    assert [name for name, yaml in text.items() if "\nrights:\n  republishing: " not in yaml] == []


def test_types_keys_units_and_values_are_those_of_the_tables(exported: Path) -> None:
    assert field(exported, "claims", "document")["type"] == "string"
    assert field(exported, "rentals", "assumptions")["type"] == "string"
    assert field(exported, "rentals", "usd_per_hour")["unit"] == "USD/h"
    assert field(exported, "price-list", "usd_per_gpu_hour")["unit"] == "USD/(GPU h)"
    assert field(exported, "gpus", "gpu_id")["constraints"] == {"required": True, "unique": True}
    assert field(exported, "sources", "terms_automated")["constraints"]["enum"] == [
        "allowed", "silent", "forbidden", "unknown",
    ]  # fmt: skip
    assert field(exported, "plans", "fit_probability")["constraints"] == {"minimum": 0, "maximum": 1}
    assert schema(exported, "gpus")["primaryKey"] == ["gpu_id"]
    assert {
        "fields": ["gpu_id"],
        "reference": {"resource": "gpus", "fields": ["gpu_id"]},
    } in schema(exported, "rentals")["foreignKeys"]
    offers = json.loads((exported / "schemas" / "offers.json").read_text(encoding="utf-8"))
    assert [key["reference"]["resource"] for key in offers["foreignKeys"]] == ["sources", "gpus"]
    (price_kind,) = [each for each in offers["fields"] if each["name"] == "price_kind"]
    assert "flex_start" in price_kind["constraints"]["enum"]
    with (exported / "claims.csv").open(newline="", encoding="utf-8") as file:
        assert any(row["document"] == "000" for row in csv.DictReader(file))


def test_a_number_whose_name_has_a_unit_in_it_has_that_unit(exported: Path) -> None:
    words = ("usd", "gib", "gb", "gbps", "seconds", "hours", "minutes", "days", "bytes", "tflops")
    without = {
        (resource["name"], name)
        for resource in package_of(exported)["resources"]
        for name, each in fields(exported, resource).items()
        if each["type"] in ("number", "integer") and set(words) & set(name.split("_")) and "unit" not in each
    }
    assert without == set()


def test_a_plain_number_is_written_for_every_size() -> None:
    values = [1e-07, -2.5e-19, 8e20, 1.5, 0.1, 123456789012345680.0, 0.0, 3.141592653589793]
    rows = duckdb.execute(
        f"SELECT {csv_cell('x', 'DOUBLE')} FROM (SELECT unnest(?::DOUBLE[]) AS x)", [values]
    ).fetchall()
    assert [float(text) for (text,) in rows] == values
    assert not [text for (text,) in rows if "e" in text]


def numbers(folder: Path) -> Iterator[tuple[str, str]]:
    for resource in package_of(folder)["resources"]:
        if resource["name"] in ("plans", "technique-effects") or "cheapest-gpu" in resource["name"]:
            continue
        of_numbers = [
            name for name, each in fields(folder, resource).items() if each["type"] in ("number", "integer")
        ]
        with (folder / resource["path"]).open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                yield from ((resource["name"], row[name]) for name in of_numbers if row[name])


def test_numbers_are_plain_decimals(exported: Path) -> None:
    wrong = {(table, text) for table, text in numbers(exported) if text.strip("-0123456789.")}
    assert wrong == set()


def test_the_small_set_is_below_two_megabytes(exported: Path) -> None:
    files = sorted((exported / "latest").iterdir())
    assert [file.stem for file in files] == sorted(SMALL)
    assert sum(file.stat().st_size for file in files) < 2_000_000
    with (exported / "latest" / "cheapest.csv").open(newline="", encoding="utf-8") as file:
        ranks = [int(row["rank"]) for row in csv.DictReader(file)]
    assert max(ranks) == 3
    assert len(ranks) > 2000


def test_the_small_price_list_has_the_lowest_prices_in_the_order_of_the_whole(exported: Path) -> None:
    with (exported / "price_list.csv").open(newline="", encoding="utf-8") as file:
        listed = list(csv.DictReader(file))
    expected = []
    for _, rows in groupby(listed, itemgetter("gpu_id", "price_kind")):
        by_price = sorted(
            enumerate(rows), key=lambda each: (float(each[1]["usd_per_gpu_hour"]), each[1]["source"])
        )
        expected += [row for _, row in sorted(by_price[:5], key=itemgetter(0))]
    with (exported / "latest" / "prices.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.DictReader(file)) == expected


def test_frictionless_finds_no_error(sample_home: Home, consumers: Path, tmp_path: Path) -> None:
    """The small set and the catalogue with their data."""
    tables = (
        "latest", "gpus", "sources", "workloads", "models", "claims", "rentals", "offers", "rejects",
        "reject_reasons", "exchange_rates",
    )  # fmt: skip
    with reader(sample_home.published, writes_files=True) as connection:
        export(connection, tmp_path / "out", "csv", tables)
    descriptor = tmp_path / "out" / "datapackage.json"
    assert ask_tool(consumers, VALIDATE, descriptor, home=tmp_path) == [True, 10 + len(SMALL), []]


def test_frictionless_reads_every_schema(exported: Path, consumers: Path, tmp_path: Path) -> None:
    read = ask_tool(consumers, VALIDATE_SCHEMAS, exported / "datapackage.json", home=tmp_path)
    described = {each["name"]: len(fields(exported, each)) for each in package_of(exported)["resources"]}
    assert read == described


def test_parquet_has_the_types_of_the_package(sample_home: Home, exported: Path, tmp_path: Path) -> None:
    with reader(sample_home.published, writes_files=True) as connection:
        export(connection, tmp_path / "out", "parquet")
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    package = package_of(tmp_path / "out")
    assert {file.suffix for file in files if "latest" not in file.parts} == {".parquet", ".json"}
    for resource in package["resources"]:
        if resource["format"] != "parquet":
            continue
        read = pl.read_parquet_schema(tmp_path / "out" / resource["path"])
        described = fields(tmp_path / "out", resource)
        assert list(read) == list(described)
        for name, kind in read.items():
            assert isinstance(kind, POLARS_TYPES[described[name]["type"]]), (resource["name"], name, kind)
    parquet = sum(file.stat().st_size for file in files)
    assert parquet * 8 < sum(path.stat().st_size for path in exported.rglob("*.csv"))


@pytest.mark.parametrize("table", BY_DAY)
def test_tables_that_grow_are_a_file_per_day(exported: Path, table: str) -> None:
    (file,) = (exported / table).iterdir()
    with file.open(newline="", encoding="utf-8") as rows:
        assert {row["day"] for row in csv.DictReader(rows)} == {file.stem} == {"2026-08-22"}
