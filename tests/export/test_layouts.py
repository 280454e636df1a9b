"""The layouts of other tools, read by their own code, which must answer what the published file says."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pipeline.export.layouts import write
from pipeline.export.machines import LEFT_OUT, accelerators, clouds
from pipeline.home.paths import CATALOG_DIR, Home
from pipeline.warehouse.query import ask, reader
from tests.conftest import gpufare
from tests.export.conftest import ask_tool, package_of

CHEAPEST = """
    SELECT source, gpu_id, gpu_count::INTEGER AS gpus, instance_type, region, vcpus, ram_gib,
        min(usd_per_hour)::DOUBLE AS usd_per_hour
    FROM offers_latest
    WHERE ranked AND price_kind = ? AND source IN (SELECT unnest(?::VARCHAR[]))
        AND coalesce(instance_type, region) IS NOT NULL AND least(vcpus, ram_gib) IS NOT NULL
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
catalog = Catalog(balance_resources=False, auto_reload=False)
items = catalog.query()
cheapest = catalog.query(gpu_name="H100", min_gpu_count=8, spot=False)[0]
print(json.dumps({
    "offline": sorted(OFFLINE_PROVIDERS), "known": sorted(OFFLINE_PROVIDERS + ONLINE_PROVIDERS),
    "items": sorted([i.provider, i.instance_name, i.location, i.spot, i.price, i.cpu, i.memory, i.gpu_name,
                     i.gpu_count, i.gpu_memory] for i in items),
    "cheapest": [cheapest.provider, cheapest.price],
}))
"""

GPUHUNT_NAMES = """
import json
from gpuhunt._internal.constraints import KNOWN_ACCELERATORS
print(json.dumps(sorted({each.name for each in KNOWN_ACCELERATORS})))
"""


def laid_out(home: Home, folder: Path, tool: str) -> list[str]:
    with reader(home.published, writes_files=True) as connection:
        return write(connection, folder, tool, None, (), None)


def machines(home: Home, tool: str, kind: str) -> list[dict[str, Any]]:
    """The machines that a tool can list, from SQL."""
    with reader(home.published) as connection:
        rows = ask(connection, CHEAPEST, [kind, list(clouds(tool))]).dicts()
        return [row for row in rows if row["gpu_id"] in accelerators(tool)]


def left_out(folder: Path) -> list[dict[str, str]]:
    with (folder / LEFT_OUT).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_skypilot_reads_its_catalogue(sample_home: Home, consumers: Path, tmp_path: Path) -> None:
    folder = tmp_path / "home" / ".sky" / "catalogs" / "v8"
    lines = laid_out(sample_home, folder, "skypilot")
    expected = machines(sample_home, "skypilot", "on_demand")
    assert len(expected) >= 25
    names = clouds("skypilot")
    asked: dict[str, list[list[str]]] = {}
    for row in expected:
        asked.setdefault(names[row["source"]], []).append([row["instance_type"], row["region"]])
    assert set(asked) == {"aws", "cudo", "verda"}
    answer = ask_tool(consumers, SKYPILOT, json.dumps(asked), home=tmp_path / "home")
    answered = [machine for cloud in asked for machine in answer["machines"][cloud]]
    assert answered == [
        [
            row["usd_per_hour"],
            [row["vcpus"], row["ram_gib"]],
            {accelerators("skypilot")[row["gpu_id"]]: row["gpus"]},
        ]
        for cloud in asked
        for row in expected
        if names[row["source"]] == cloud
    ]
    with reader(sample_home.published) as connection:
        memory = dict(ask(connection, "SELECT gpu_id, memory_gb FROM gpus").rows)
    assert answer["listed"] == sorted(
        [
            names[row["source"]],
            row["instance_type"],
            row["region"],
            row["usd_per_hour"],
            memory[row["gpu_id"]],
        ]
        for row in expected
    )
    assert lines[0].startswith(f"{len(expected)} prices of {len(expected)} machines; ")


def test_gpuhunt_reads_its_catalogue(
    sample_home: Home, consumers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laid_out(sample_home, tmp_path / "out", "gpuhunt")
    script = f"import os; os.environ['GPUHUNT_CATALOG_DIR'] = {str(tmp_path / 'out')!r}\n{GPUHUNT}"
    answer = ask_tool(consumers, script, home=tmp_path)
    names = clouds("gpuhunt")
    with reader(sample_home.published) as connection:
        memory = dict(ask(connection, "SELECT gpu_id, memory_gb FROM gpus").rows)
    expected = sorted(
        [
            names[row["source"]], row["instance_type"], row["region"], kind == "spot", row["usd_per_hour"],
            int(row["vcpus"]), row["ram_gib"], accelerators("gpuhunt")[row["gpu_id"]], row["gpus"],
            memory[row["gpu_id"]],
        ]
        for kind in ("on_demand", "spot")
        for row in machines(sample_home, "gpuhunt", kind)
        if names[row["source"]] in answer["offline"]
    )  # fmt: skip
    assert answer["items"] == expected
    assert len(expected) >= 30
    assert set(names.values()) <= set(answer["known"])
    h100 = [item for item in expected if item[7] == "H100" and item[8] == 8 and not item[3]]
    assert answer["cheapest"] == [min(h100, key=lambda item: item[4])[0], min(item[4] for item in h100)]


def test_gpuhunt_knows_the_names_of_its_accelerators(consumers: Path, tmp_path: Path) -> None:
    assert set(accelerators("gpuhunt").values()) <= set(ask_tool(consumers, GPUHUNT_NAMES, home=tmp_path))


def test_skypilot_knows_the_names_of_its_accelerators(consumers: Path) -> None:
    """Each name stands in the file of SkyPilot that the mapping says."""
    (package,) = consumers.parents[1].glob("lib/python3*/site-packages/sky")
    with (CATALOG_DIR / "consumers" / "accelerator_names.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["tool"] == "skypilot"]
    assert len(rows) > 40
    for row in rows:
        said, _, version = row["source"].partition(" in ")
        assert version == "skypilot 0.14.1"
        assert f"'{row['name']}'" in (package.parent / said).read_text(encoding="utf-8"), row


def test_the_mapping_names_existing_gpus_and_sources(sample_home: Home) -> None:
    with reader(sample_home.published) as connection:
        gpus = {gpu for (gpu,) in ask(connection, "SELECT gpu_id FROM gpus").rows}
        sources = {source for (source,) in ask(connection, "SELECT source FROM sources").rows}
    for tool in ("skypilot", "gpuhunt"):
        assert accelerators(tool).keys() <= gpus
        assert clouds(tool).keys() <= sources


@pytest.mark.parametrize("tool", ["skypilot", "gpuhunt"])
def test_every_offer_is_written_or_skipped_with_a_reason(
    sample_home: Home, tmp_path: Path, tool: str
) -> None:
    answer = gpufare("export", str(tmp_path / "out"), "--for", tool, home=sample_home)
    assert answer.returncode == 0, answer.stderr
    first, *reasons = answer.stdout.splitlines()[:-1]
    left = left_out(tmp_path / "out")
    with reader(sample_home.published) as connection:
        ((offers, lack_region, lack_vcpus, lack_memory),) = ask(
            connection,
            """SELECT count(*), count(*) - count(region), count(*) - count(vcpus), count(*) - count(ram_gib)
                FROM offers_latest""",
        ).rows
    assert int(first.split()[0]) + len(left) == offers
    assert f"; {len(left)} offers are omitted" in first
    assert {f"  {lack_region} x no region", f"  {lack_vcpus} x no vCPUs", f"  {lack_memory} x no memory"} <= {
        *reasons
    }
    assert all(row["reasons"] for row in left)
    described = {each["path"]: each for each in package_of(tmp_path / "out")["resources"]}
    assert described[LEFT_OUT]["bytes"] == (tmp_path / "out" / LEFT_OUT).stat().st_size


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--for", "skypilot", "--format", "csv"),
            "--for skypilot has its own format: leave out --format",
        ),
        (("--for", "gpuhunt", "--since", "2026-08-22"), "--for gpuhunt writes the newest offers: leave"),
    ],
)
def test_options_that_a_layout_does_not_take_are_named(
    sample_home: Home, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    answer = gpufare("export", str(tmp_path / "out"), *options, home=sample_home)
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"Error: {said}")
    assert not (tmp_path / "out").exists()


def test_skypilot_and_gpuhunt_are_those_of_the_lock(consumers: Path) -> None:
    lock = (consumers.parents[2] / "requirements-consumers.lock").read_text(encoding="utf-8")
    (packages,) = consumers.parents[1].glob("lib/python3*/site-packages")
    for name, version in (("skypilot", "0.14.1"), ("gpuhunt", "0.1.34")):
        assert f"\n{name}=={version} " in lock
        assert (packages / f"{name}-{version}.dist-info").is_dir()
    assert shutil.which("sky", path=str(consumers.parent)) is not None
