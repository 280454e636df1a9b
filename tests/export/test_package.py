"""datapackage.json says what is in the files: bytes, types, units, keys and allowed values."""

import csv
import hashlib
from codecs import BOM_UTF8
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb

from pipeline.export.cells import csv_cell
from pipeline.export.tables import field_type
from pipeline.export.versions import schema_version
from pipeline.export.whole import SMALL
from tests.export.conftest import fields, package_of, rows_of, schema_of

UNITS = ("usd", "gib", "gb", "gbps", "seconds", "hours", "minutes", "days", "bytes", "tflops")


def schema(folder: Path, table: str) -> dict[str, Any]:
    (resource,) = [each for each in package_of(folder)["resources"] if each["name"] == table]
    return schema_of(folder, resource)


def test_every_file_is_described_to_the_byte(exported: Path) -> None:
    package = package_of(exported)
    named = {each["path"]: each for each in package["resources"]}
    schemas = {each["schema"] for each in package["resources"] if isinstance(each["schema"], str)}
    files = {str(path.relative_to(exported)) for path in exported.rglob("*") if path.is_file()}
    assert files == {"datapackage.json", *named, *schemas}
    wrong = []
    for path, resource in named.items():
        content = (exported / path).read_bytes()
        assert resource["bytes"] == len(content)
        assert resource["hash"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
        assert (resource["format"], resource["mediatype"]) == ("csv", "text/csv")
        assert resource["encoding"] == "utf-8"
        assert content.startswith(BOM_UTF8)  # Excel takes anything else for the system's old encoding
        described = fields(exported, resource)
        assert list(described) == next(csv.reader(content.decode("utf-8-sig").splitlines()[:1]))
        for name, each in described.items():
            numeric = each["type"] in ("number", "integer")
            lacks_unit = numeric and set(UNITS) & set(name.split("_")) and "unit" not in each
            if not each["description"] or each["type"] == "any" or lacks_unit:
                wrong.append((path, name))
    assert not wrong


def test_the_package_names_its_version_licence_and_the_rights_of_each_source(exported: Path) -> None:
    package = package_of(exported)
    assert package["$schema"] == "https://datapackage.org/profiles/2.0/datapackage.json"
    assert (package["name"], package["version"]) == ("gpufare", schema_version())
    assert [each["name"] for each in package["licenses"]] == ["Apache-2.0"]
    assert all({*each} == {"title", "path", "source", "rights"} for each in package["sources"])
    rights = {each["source"]: each["rights"] for each in package["sources"]}
    offered = {row["source"] for row in rows_of(exported / "offers" / "2026-08-22.csv")}
    assert rights.keys() == offered | {"ecb"}
    assert rights["vast"]["republishing"] == "forbidden"
    assert rights["vast"]["read_on"] == "2026-10-05"
    assert rights["ecb"]["republishing"] == "allowed"
    assert rights["civo"] == {"republishing": "unknown"}


def test_types_keys_units_and_values_are_those_of_the_tables(exported: Path) -> None:
    said: dict[str, dict[str, tuple[Any, Any, Any]]] = {}
    for resource in package_of(exported)["resources"]:
        for name, each in fields(exported, resource).items():
            described = (each["type"], each.get("unit"), each.get("constraints"))
            said.setdefault(resource["name"], {})[name] = described
    assert said["claims"]["document"][0] == "string"
    assert {row["document"] for row in rows_of(exported / "claims.csv")} > {"000"}
    assert said["rentals"]["assumptions"] == ("string", None, {"required": True})
    assert said["rentals"]["usd_per_hour"][:2] == ("number", "USD/h")
    assert said["price-list"]["usd_per_gpu_hour"][:2] == ("number", "USD/(GPU h)")
    assert said["gpus"]["gpu_id"] == ("string", None, {"required": True, "unique": True})
    assert said["plans"]["fit_probability"][2] == {"minimum": 0, "maximum": 1}
    terms = said["sources"]["terms_automated"][2]
    assert terms["enum"] == ["allowed", "silent", "forbidden", "unknown"]
    assert "flex_start" in said["offers-2026-08-22"]["price_kind"][2]["enum"]
    gpu = {"fields": ["gpu_id"], "reference": {"resource": "gpus", "fields": ["gpu_id"]}}
    assert schema(exported, "gpus")["primaryKey"] == ["gpu_id"]
    assert gpu in schema(exported, "rentals")["foreignKeys"]
    keys = schema(exported, "offers-2026-08-22")["foreignKeys"]
    assert [key["reference"]["resource"] for key in keys] == ["sources", "gpus"]
    kinds = ("BIGINT", "UINTEGER", "DECIMAL(18, 8)", "VARCHAR[]", "DATE")
    assert [field_type(kind) for kind in kinds] == ["integer", "integer", "number", "array", "date"]


def test_numbers_are_plain_decimals() -> None:
    values = [1e-07, -2.5e-19, 8e20, 1.5, 0.1, 123456789012345680.0, 0.0, 3.141592653589793]
    cell = csv_cell("x", "DOUBLE")
    rows = duckdb.execute(f"SELECT {cell} FROM (SELECT unnest(?::DOUBLE[]) AS x)", [values]).fetchall()
    assert [float(text) for (text,) in rows] == values
    assert not [text for (text,) in rows if "e" in text]


def test_the_small_set_has_the_first_of_each(exported: Path) -> None:
    files = sorted((exported / "latest").iterdir())
    assert [file.stem for file in files] == sorted(SMALL)
    assert sum(file.stat().st_size for file in files) < 2_000_000
    ranks = [int(row["rank"]) for row in rows_of(exported / "latest" / "cheapest.csv")]
    assert max(ranks) == 3
    assert len(ranks) > 2000
    lowest = []  # of each card and price kind five, in the order of the whole list
    for _, rows in groupby(rows_of(exported / "price_list.csv"), itemgetter("gpu_id", "price_kind")):
        by_price = sorted(enumerate(rows), key=lambda it: (float(it[1]["usd_per_gpu_hour"]), it[1]["source"]))
        lowest += [row for _, row in sorted(by_price[:5], key=itemgetter(0))]
    assert rows_of(exported / "latest" / "prices.csv") == lowest
