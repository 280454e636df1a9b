"""The exports, read by other tools' own code, which must answer what the published file says."""

import json
from pathlib import Path
from typing import Any

from pipeline.catalog.tables import catalog_rows
from pipeline.export.layouts import write
from pipeline.export.machines import accelerators, clouds
from pipeline.export.whole import SMALL, export
from pipeline.home.paths import Home
from pipeline.warehouse.query import ask, reader
from tests.export.conftest import fields, package_of
from tests.nightly.export.conftest import ask_tool

CHEAPEST = """
    SELECT o.source, gpu_id, memory_gb, gpu_count::INTEGER AS gpus, instance_type, region, vcpus, ram_gib,
        min(usd_per_hour)::DOUBLE AS usd_per_hour
    FROM offers_latest AS o JOIN gpus USING (gpu_id)
    WHERE ranked AND price_kind = ? AND o.source IN (SELECT unnest(?::VARCHAR[]))
        AND instance_type IS NOT NULL AND region IS NOT NULL AND vcpus IS NOT NULL AND ram_gib IS NOT NULL
    GROUP BY ALL
"""

SKYPILOT = """
import importlib, json, sys
from sky import catalog
asked = json.loads(sys.argv[1])
found = {}
for cloud, machines in asked.items():
    own = importlib.import_module(f"sky.catalog.{cloud}_catalog")
    found[cloud] = [
        [own.get_hourly_cost(name, False, region, None), own.get_vcpus_mem_from_instance_type(name),
         own.get_accelerators_from_instance_type(name)] for name, region in machines
    ]
listed = catalog.list_accelerators(gpus_only=True, clouds=list(asked), all_regions=True)
print(json.dumps({
    "machines": found,
    "listed": sorted([each.cloud.lower(), each.instance_type, each.region, each.price, each.device_memory]
                     for group in listed.values() for each in group),
}))
"""

GPUHUNT = """
import json
from gpuhunt import Catalog
from gpuhunt._internal.catalog import OFFLINE_PROVIDERS, ONLINE_PROVIDERS
from gpuhunt._internal.constraints import KNOWN_ACCELERATORS
catalog = Catalog(balance_resources=False, auto_reload=False)
items = catalog.query()
cheapest = catalog.query(gpu_name="H100", min_gpu_count=8, spot=False)[0]
print(json.dumps({
    "offline": sorted(OFFLINE_PROVIDERS), "known": sorted(OFFLINE_PROVIDERS + ONLINE_PROVIDERS),
    "names": sorted({each.name for each in KNOWN_ACCELERATORS}),
    "items": sorted([i.provider, i.instance_name, i.location, i.spot, i.price, i.cpu, i.memory, i.gpu_name,
                     i.gpu_count, i.gpu_memory] for i in items),
    "cheapest": [cheapest.provider, cheapest.price],
}))
"""

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


def laid_out(home: Home, folder: Path, tool: str) -> list[str]:
    with reader(home.published, writes_files=True) as connection:
        return write(connection, folder, tool, None, (), None)


def machines(home: Home, tool: str, kind: str) -> list[dict[str, Any]]:
    """The machines that a tool can list, from SQL, with the tool's names."""
    with reader(home.published) as connection:
        rows = ask(connection, CHEAPEST, [kind, list(clouds(tool))]).dicts()
        return [
            row | {"cloud": clouds(tool)[row["source"]], "name": accelerators(tool)[row["gpu_id"]]}
            for row in rows
            if row["gpu_id"] in accelerators(tool)
        ]


def test_skypilot_reads_its_catalogue(sample_home: Home, consumers: Path, tmp_path: Path) -> None:
    folder = tmp_path / "home" / ".sky" / "catalogs" / "v8"
    lines = laid_out(sample_home, folder, "skypilot")
    expected = machines(sample_home, "skypilot", "on_demand")
    assert len(expected) >= 25
    asked: dict[str, list[list[str]]] = {}
    for row in expected:
        asked.setdefault(row["cloud"], []).append([row["instance_type"], row["region"]])
    assert set(asked) == {"aws", "cudo", "verda"}
    answer = ask_tool(consumers, SKYPILOT, json.dumps(asked), home=tmp_path / "home")
    assert [machine for cloud in asked for machine in answer["machines"][cloud]] == [
        [row["usd_per_hour"], [row["vcpus"], row["ram_gib"]], {row["name"]: row["gpus"]}]
        for cloud in asked
        for row in expected
        if row["cloud"] == cloud
    ]
    assert answer["listed"] == sorted(
        [row["cloud"], row["instance_type"], row["region"], row["usd_per_hour"], row["memory_gb"]]
        for row in expected
    )
    assert lines[0].startswith(f"{len(expected)} prices of {len(expected)} machines; ")


def test_gpuhunt_reads_its_catalogue(sample_home: Home, consumers: Path, tmp_path: Path) -> None:
    laid_out(sample_home, tmp_path / "out", "gpuhunt")
    script = f"import os; os.environ['GPUHUNT_CATALOG_DIR'] = {str(tmp_path / 'out')!r}\n{GPUHUNT}"
    answer = ask_tool(consumers, script, home=tmp_path)
    expected = sorted(
        [
            row["cloud"], row["instance_type"], row["region"], kind == "spot", row["usd_per_hour"],
            int(row["vcpus"]), row["ram_gib"], row["name"], row["gpus"], row["memory_gb"],
        ]
        for kind in ("on_demand", "spot")
        for row in machines(sample_home, "gpuhunt", kind)
        if row["cloud"] in answer["offline"]
    )  # fmt: skip
    assert answer["items"] == expected
    assert len(expected) >= 30
    assert set(clouds("gpuhunt").values()) <= set(answer["known"])
    assert set(accelerators("gpuhunt").values()) <= set(answer["names"])
    h100 = [item for item in expected if item[7] == "H100" and item[8] == 8 and not item[3]]
    cheapest = min(h100, key=lambda item: item[4])
    assert answer["cheapest"] == [cheapest[0], cheapest[4]]


def test_skypilot_knows_the_names_of_its_accelerators(consumers: Path) -> None:
    """Each name stands in the file of SkyPilot that the mapping says."""
    (packages,) = consumers.parents[1].glob("lib/python3*/site-packages")
    rows = [row for row in catalog_rows("consumers/accelerator_names.csv") if row["tool"] == "skypilot"]
    assert len(rows) > 40
    for row in rows:
        said, _, version = row["source"].partition(" in ")
        assert version == "skypilot 0.14.1"
        assert f"'{row['name']}'" in (packages / said).read_text(encoding="utf-8"), row


def test_skypilot_and_gpuhunt_are_those_of_the_lock(consumers: Path) -> None:
    lock = (consumers.parents[2] / "requirements-consumers.lock").read_text(encoding="utf-8")
    (packages,) = consumers.parents[1].glob("lib/python3*/site-packages")
    for name, version in (("skypilot", "0.14.1"), ("gpuhunt", "0.1.34")):
        assert f"\n{name}=={version} " in lock
        assert (packages / f"{name}-{version}.dist-info").is_dir()


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
