"""The exports, read by other tools' own code, which must answer what the published file says."""

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from pipeline.catalog.machine_sizes import named_machines
from pipeline.catalog.tables import catalog_rows
from pipeline.export.layouts import write
from pipeline.export.machines import LEFT_OUT
from pipeline.export.tools import accelerator, clouds
from pipeline.export.whole import SMALL, export
from pipeline.home.paths import Home
from pipeline.warehouse.query import ask, reader
from tests.export.conftest import fields, package_of
from tests.homes import PAGES
from tests.nightly.export.conftest import ask_tool

CHEAPEST = """
    SELECT instance_type, region, min(usd_per_hour)::DOUBLE AS usd_per_hour
    FROM offers_latest
    WHERE ranked AND price_kind = ? AND source = ? AND region IS NOT NULL
    GROUP BY ALL
"""

SKYPILOT = """
import importlib, json, sys
from sky import catalog
from sky.provision.runpod.utils import GPU_NAME_MAP
asked = json.loads(sys.argv[1])
found, eight = {}, {}
for cloud, machines in asked.items():
    own = importlib.import_module(f"sky.catalog.{cloud}_catalog")
    found[cloud] = [
        [own.get_hourly_cost(name, False, region, None) if on_demand else None,
         own.get_hourly_cost(name, True, region, None) if spot else None,
         *own.get_vcpus_mem_from_instance_type(name), own.get_accelerators_from_instance_type(name),
         own.validate_region_zone(region, None)[0]]
        for name, region, on_demand, spot in machines
    ]
    gpu = "H100-SXM" if cloud == "runpod" else "H100"
    eight[cloud] = own.get_instance_type_for_accelerator(gpu, 8)[0]
listed = catalog.list_accelerators(gpus_only=True, clouds=list(asked), all_regions=True)
print(json.dumps({
    "machines": found, "eight": eight, "listed": sum(len(group) for group in listed.values()),
    "pods": {name.split("_")[1]: GPU_NAME_MAP[name.split("_")[1]] for name, *_ in asked["runpod"]},
}))
"""

ZONES = """
import json
from sky.catalog import aws_catalog
regions = aws_catalog.get_region_zones_for_instance_type("p5.48xlarge", use_spot=False)
print(json.dumps({region.name: [zone.name for zone in region.zones] for region in regions}))
"""

GPUHUNT = """
import json, os, sys
from pathlib import Path
from gpuhunt import Catalog
from gpuhunt._internal import storage
from gpuhunt._internal.catalog import OFFLINE_PROVIDERS, ONLINE_PROVIDERS
from gpuhunt._internal.constraints import KNOWN_ACCELERATORS
def seen(items):
    return sorted([i.provider, i.instance_name, i.location, i.spot, i.price, i.cpu, i.memory, i.gpu_name,
                   i.gpu_count, i.gpu_memory, i.flags, i.cpu_arch.value] for i in items)
os.environ["GPUHUNT_CATALOG_DIR"] = sys.argv[1]
catalog = Catalog(balance_resources=False, auto_reload=False)
items, eight = catalog.query(), catalog.query(gpu_name="H100", min_gpu_count=8, spot=False)
loaded = []
for provider in sys.argv[2].split():
    with open(Path(sys.argv[1]) / f"{provider}.csv") as file:
        loaded += storage.load(file, provider=provider)
del os.environ["GPUHUNT_CATALOG_DIR"]
os.environ["GPUHUNT_CATALOG_URL"] = (Path(sys.argv[1]) / "v3").as_uri()
version_3 = Catalog(balance_resources=False, auto_reload=False)
version_3.load()
print(json.dumps({
    "offline": sorted(OFFLINE_PROVIDERS), "known": sorted(OFFLINE_PROVIDERS + ONLINE_PROVIDERS),
    "names": sorted({each.name for each in KNOWN_ACCELERATORS}),
    "items": seen(items), "eight": seen(eight), "first": eight[0].price, "loaded": seen(loaded),
    "version_3": seen(version_3.query()),
}))
"""

COLLECTED = """
import json, sys
from pathlib import Path
from types import SimpleNamespace
from gpuhunt import QueryFilter
from gpuhunt.providers import daytona, lium, vastai
def page(file):
    return json.loads((Path(sys.argv[1]) / file).read_text())
found = daytona._make_gpu_offers(page("daytona/gpu-pricing.json"), QueryFilter(), True, None)
for node in page("lium/nodes.json")["nodes"]:
    found += lium._make_offers(node)
for number in (1, 2, 3, 4):
    answer = SimpleNamespace(raise_for_status=int, json=lambda: page(f"vast/search_{number}.json"))
    vastai.requests = SimpleNamespace(post=lambda *asked, **options: answer)
    found += vastai.VastAIProvider().get(QueryFilter(min_disk_size=8))
print(json.dumps([
    [[i.provider, i.instance_name, i.location, i.gpu_count, i.spot, i.gpu_name, i.cpu],
     i.price, i.memory, i.disk_size, i.provider_data] for i in found
]))
"""

SKYPILOT_PRICES = {
    # cloud, machine, region: on demand and spot, in USD per hour, by hand from tests/pages
    ("aws", "p5.48xlarge", "us-east-1"): (55.04, 15.6472),
    ("azure", "Standard_NC40ads_H100_v5", "westeurope"): (9.08, 3.3469),
    ("do", "gpu-h100x8-640gb", "ams3"): (35.28, None),
    ("lambda", "gpu_8x_h100_sxm5", "us-south-1"): (8 * 3.99, None),
    ("nebius", "gpu-h200-sxm_8gpu-128vcpu-1600gb", "eu-west1"): (8 * 4.50, 8 * 2.45),
    ("oci", "BM.GPU.B200.8", "eu-frankfurt-1"): (8 * 14.0, None),
    ("oci", "VM.GPU3.1", "us-chicago-1"): (2.95, 1.475),
    ("runpod", "8x_H100-SXM_SECURE", "CA"): (8 * 3.29, None),
    ("vast", "1x-L40S-32-65536", "Texas, US"): (0.3985, None),
    ("verda", "8H100.80S.176V", "FIN-03"): (26.0, 13.0),
}
GPUHUNT_PRICES = {
    # provider, machine, location, whether spot: USD per hour, by hand from tests/pages
    ("azure", "Standard_ND96isr_H100_v5", "eastus", False): 98.32,
    ("lambdalabs", "gpu_1x_gh200", "us-east-3", False): 2.29,
    ("nebius", "gpu-b300-sxm 8gpu-192vcpu-2768gb", "uk-south1", True): 8 * 4.30,
    ("oci", "BM.GPU.H100.8", "us-ashburn-1", False): 80.0,
    ("verda", "1H100.80S.30V", "FIN-02", True): 1.625,
    ("daytona", "2x-H100-16cpu-200gb-512gb", "earth", True): 6.911744,
    ("digitalocean", "gpu-mi325x8-2048gb", "tor1", False): 30.4,
    ("hotaisle", "vm-mi300x-4", "us-michigan-1", False): 11.96,
    ("lium", "0000000a-0000-4000-8000-000000013556", "us-nv", False): 1.52,
    ("vastai", "4700303", "us-texas", True): 0.13552,
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


def laid_out(home: Home, folder: Path, tool: str) -> int:
    """Write a tool's layout, and return the number of offers in it."""
    with reader(home.published, writes_files=True) as connection:
        (summary, *_) = write(connection, folder, tool, None, (), None)
    return int(summary.split()[0])


def cheapest(home: Home, source: str, kind: str) -> dict[tuple[str, str], float]:
    """A source's lowest prices by machine and region, from SQL."""
    with reader(home.published) as connection:
        return {(name, region): usd for name, region, usd in ask(connection, CHEAPEST, [kind, source]).rows}


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def number(text: str) -> float | None:
    return float(text) if text else None


def test_skypilot_reads_its_catalogue(sample_home: Home, consumers: Path, tmp_path: Path) -> None:
    folder = tmp_path / "home" / ".sky" / "catalogs" / "v8"
    assert laid_out(sample_home, folder, "skypilot") >= 150
    rows = {file.parent.name: rows_of(file) for file in sorted(folder.glob("*/vms.csv"))}
    expected = {
        cloud: {
            (row["InstanceType"], row["Region"]): [
                number(row["Price"]), number(row["SpotPrice"]), float(row["vCPUs"]), float(row["MemoryGiB"]),
                {row["AcceleratorName"]: int(row["AcceleratorCount"])}, row["Region"],
            ]
            for row in found
        }
        for cloud, found in rows.items()
    }  # fmt: skip
    asked = {
        cloud: [[*key, row[0] is not None, row[1] is not None] for key, row in found.items()]
        for cloud, found in expected.items()
    }
    answer = ask_tool(consumers, SKYPILOT, json.dumps(asked), home=tmp_path / "home")
    assert answer["machines"] == {cloud: list(found.values()) for cloud, found in expected.items()}
    assert answer["listed"] == sum(map(len, expected.values()))
    for (cloud, *key), prices in SKYPILOT_PRICES.items():
        assert tuple(expected[cloud][key[0], key[1]][:2]) == prices, (cloud, key)
    for cloud in ("aws", "azure", "do", "lambda", "nebius", "oci", "runpod", "verda"):
        gpu = "H100-SXM" if cloud == "runpod" else "H100"
        eight = {name: row[0] for (name, _), row in expected[cloud].items() if row[4] == {gpu: 8} and row[0]}
        assert set(answer["eight"][cloud]) == set(eight), cloud
        assert eight[answer["eight"][cloud][0]] == min(eight.values())
    for source in ("aws", "azure"):
        for at, kind in enumerate(("on_demand", "spot")):
            from_sql = cheapest(sample_home, source, kind)
            assert all(row[at] in (None, from_sql[key]) for key, row in expected[source].items() if row[at])
    pods = {
        accelerator("skypilot", "runpod", row.gpu_id): row.instance_type
        for row in named_machines("runpod")
        if row.gpu_id
    }
    assert answer["pods"].items() <= pods.items()


def test_skypilot_knows_the_zones_of_an_account_at_aws(
    sample_home: Home, consumers: Path, tmp_path: Path
) -> None:
    """With an account, SkyPilot joins its names of the zones, as here, by their ids."""
    folder = tmp_path / ".sky" / "catalogs" / "v8"
    laid_out(sample_home, folder, "skypilot")
    names = "AvailabilityZone,AvailabilityZoneName\nuse1-az4,us-east-1a\nuse1-az6,us-east-1b\n"
    (folder / "aws" / "az_mappings-account.csv").write_text(names, encoding="utf-8")
    assert ask_tool(consumers, ZONES, home=tmp_path) == {"us-east-1": ["us-east-1a", "us-east-1b"]}


def test_gpuhunt_reads_its_catalogue(sample_home: Home, consumers: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert laid_out(sample_home, folder, "gpuhunt") >= 200
    rows = {file.stem: rows_of(file) for file in folder.glob("*.csv") if file.name != LEFT_OUT}
    answer = ask_tool(consumers, GPUHUNT, folder, " ".join(rows), home=tmp_path)
    expected = sorted(
        [
            provider, row["instance_name"], row["location"], row["spot"] == "True", float(row["price"]),
            int(row["cpu"]), float(row["memory"]), row["gpu_name"], int(row["gpu_count"]),
            float(row["gpu_memory"]), row["flags"].split(), row["cpu_arch"],
        ]
        for provider, found in rows.items()
        for row in found
    )  # fmt: skip
    assert answer["loaded"] == expected
    assert len(expected) >= 200
    returned = [item for item in expected if item[0] in answer["offline"]]
    assert answer["items"] == answer["version_3"] == returned
    assert len(returned) >= 200
    prices = {(item[0], item[1], item[2], item[3]): item[4] for item in expected}
    assert {key: prices[key] for key in GPUHUNT_PRICES} == GPUHUNT_PRICES
    eight = [item for item in returned if item[7] == "H100" and item[8] == 8 and not item[3]]
    assert answer["eight"] == eight
    assert answer["first"] == min(item[4] for item in eight)
    assert {cloud.name for cloud in clouds("gpuhunt").values()} <= set(answer["known"])
    assert {item[7] for item in expected} <= set(answer["names"])
    assert {tuple(item[10]) for item in expected if item[1] == "gpu_1x_gh200"} == {("lambda-arm",)}


def test_gpuhunt_collects_the_same_machines_from_the_sample_pages(
    sample_home: Home, consumers: Path, tmp_path: Path
) -> None:
    """Its code for sources that it queries live has the same machines, and the same prices for the same disk.

    Memory is in GiB here, but that of Vast in 1,000 MiB there. Lium's is rounded down from a half less.
    """
    laid_out(sample_home, tmp_path / "out", "gpuhunt")
    collected = {
        tuple(key): rest for key, *rest in ask_tool(consumers, COLLECTED, PAGES, home=tmp_path / "home")
    }
    compared = Counter[str]()
    for provider in ("daytona", "lium", "vastai"):
        for row in rows_of(tmp_path / "out" / f"{provider}.csv"):
            names = row["instance_name"], row["location"], int(row["gpu_count"]), row["spot"] == "True"
            price, memory, disk, data = collected[provider, *names, row["gpu_name"], int(row["cpu"])]
            gib = memory * 1000 / 1024 if provider == "vastai" else memory
            assert float(row["price"]) == pytest.approx(price, rel=0, abs=2e-6), row
            assert float(row["memory"]) == pytest.approx(gib, rel=0, abs=1 if provider == "lium" else 0.01), (
                row
            )
            assert float(row["disk_size"]) == pytest.approx(disk, rel=0.01), row
            assert json.loads(row["provider_data"]).items() <= data.items(), row
            compared[provider] += 1
    assert compared == {"daytona": 7 * 8 * 2, "lium": 25, "vastai": 24}


def test_skypilot_knows_the_names_of_its_accelerators(consumers: Path) -> None:
    """Each name stands in the file of SkyPilot that the mapping says, unless a rule there makes it."""
    (packages,) = consumers.parents[1].glob("lib/python3*/site-packages")
    rows = [row for row in catalog_rows("consumers/accelerator_names.csv") if row["tool"] == "skypilot"]
    by_rule = {"sky/catalog/data_fetchers/fetch_vast.py", "sky/catalog/data_fetchers/fetch_verda.py"}
    checked = 0
    for row in rows:
        said, _, version = row["evidence"].partition(" in ")
        if not version or said in by_rule:
            assert row["source"], row
            continue
        assert version == "skypilot 0.14.1"
        text = (packages / said).read_text(encoding="utf-8")
        assert not row["name"] or f"'{row['name']}'" in text, row
        checked += 1
    assert checked > 80


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
