"""The layouts of other tools, to the cell. tests/nightly/export reads them with the tools' own code."""

import ast
import zipfile
from pathlib import Path

import duckdb

from pipeline.catalog.tables import catalog_table
from pipeline.export.gpuhunt import READ_FROM_FILES
from pipeline.export.layouts import write
from pipeline.export.machines import LEFT_OUT
from pipeline.export.tools import Accelerator, clouds
from pipeline.home.paths import Home
from pipeline.warehouse.query import ask, reader
from tests.conftest import gpufare
from tests.export.conftest import package_of, rows_of

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "export.md"

GPUS = [
    ("h100-sxm-80gb", "nvidia", 80),
    ("gh200-96gb", "nvidia", 96),
    ("v100-sxm-16gb", "nvidia", 16),
    ("unheard-of", "nvidia", 24),
]
OFFERS = [
    # source, label, instance type, GPU, count, kind, region, vCPUs, GiB, disk, USD, why it is not ranked
    ("verda", "H100", "1H100", "h100-sxm-80gb", 1, "on_demand", "FIN-01", 32.0, 185.5, 500, "2.10", None),
    ("verda", "H100", "1H100", "h100-sxm-80gb", 1, "spot", "FIN-01", 32.0, 185.5, 500, "0.70", None),
    ("verda", "H100", "1H100", "h100-sxm-80gb", 1, "on_demand", "FIN-01", 32.0, 185.5, 500, "2.20", None),
    ("verda", "H100", "1H100", "h100-sxm-80gb", 2, "on_demand", "FIN-02", 32.0, 185.5, 500, "4.20", None),
    ("verda", "GH", "=1GH", "gh200-96gb", 1, "spot", "FIN-01", 64.0, 400.0, None, "1.50", None),
    ("verda", "H100", "odd", "h100-sxm-80gb", 1, "spot", "FIN-01", 1.0, 2.0, None, "9.00", "stale"),
    ("lambda", "V100", None, "v100-sxm-16gb", 8, "on_demand", "us-south-1", None, 9.0, None, "6.00", None),
    ("civo", "H100", None, "unheard-of", 1, "reserved", None, None, None, None, "3.00", None),
]  # fmt: skip
LEFT = {
    "1H100 FIN-01 on_demand": "more expensive than the same machine in the same region",
    "1H100 FIN-02 on_demand": "another size than elsewhere under the same name",
    "odd FIN-01 spot": "not ranked: stale",
    " us-south-1 on_demand": "several machines or none fit",
    "  reserved": (
        "no name of the machine; no region; no vCPUs; no memory; {tool} has no such provider; "
        "{tool} has no prices that are reserved; {tool} has no name for its GPU"
    ),
}


def made_up(folder: Path, tool: str) -> list[str]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE gpus (gpu_id VARCHAR, vendor VARCHAR, memory_gb DOUBLE)")
        connection.executemany("INSERT INTO gpus VALUES (?, ?, ?)", GPUS)
        connection.execute("""CREATE TABLE offers_latest (source VARCHAR, raw_label VARCHAR,
            instance_type VARCHAR, gpu_id VARCHAR, gpu_count DOUBLE, price_kind VARCHAR, region VARCHAR,
            vcpus DOUBLE, ram_gib DOUBLE, local_disk_gb DOUBLE, usd_per_hour DECIMAL(18, 8),
            not_ranked_reason VARCHAR, tier VARCHAR, gpu_counts INTEGER[], size_evidence VARCHAR,
            listing_id VARCHAR, storage_usd_per_gb_month DOUBLE, host_usd_per_vcpu_hour DOUBLE,
            host_usd_per_gib_hour DOUBLE)""")
        columns = f"{', '.join(12 * '?')}, NULL, NULL, 'offered', NULL, NULL, NULL, NULL"
        connection.executemany(f"INSERT INTO offers_latest VALUES ({columns})", OFFERS)
        return write(connection, folder, tool, None, (), None)


def test_skypilots_files_have_these_cells_and_the_rest_a_reason(tmp_path: Path) -> None:
    lines = made_up(tmp_path / "out", "skypilot")
    assert lines[0] == (
        "3 offers listed as 3 prices of 2 machines, by region; 5 offers are omitted (left_out.csv has each):"
    )
    assert "  1 x no region" in lines
    first, second = rows_of(tmp_path / "out" / "verda" / "vms.csv")
    assert list(first)[:4] == ["InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs"]
    assert list(first)[4:] == ["MemoryGiB", "Price", "Region", "GpuInfo", "SpotPrice"]
    assert list((first | {"GpuInfo": ""}).values()) == [
        "1H100", "H100", "1", "32", "185.5", "2.1", "FIN-01", "", "0.7"
    ]  # fmt: skip
    assert list(second.values())[:7] == ["'=1GH", "GH200", "1", "64", "400", "", "FIN-01"]
    assert ast.literal_eval(first["GpuInfo"]) == {
        "Gpus": [
            {"Name": "H100", "Manufacturer": "NVIDIA", "Count": 1.0, "MemoryInfo": {"SizeInMiB": 81920}}
        ],
        "TotalGpuMemoryInMiB": 81920,
    }
    left = rows_of(tmp_path / "out" / LEFT_OUT)
    assert {
        f"{row['instance_type']} {row['region']} {row['price_kind']}": row["reasons"] for row in left
    } == {offer: reasons.format(tool="skypilot") for offer, reasons in LEFT.items()}
    package = package_of(tmp_path / "out")
    assert [each["path"] for each in package["resources"]] == [LEFT_OUT, "verda/vms.csv"]
    assert [each["source"] for each in package["sources"]] == ["verda"]


def test_gpuhunts_files_have_these_cells_and_those_that_it_asks_for_exist(tmp_path: Path) -> None:
    made_up(tmp_path / "out", "gpuhunt")
    assert (tmp_path / "out" / "verda.csv").read_text() == (
        "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor,"
        "flags,cpu_arch,provider_data\n"
        "1H100,FIN-01,2.1,32,185.5,1,H100,80,False,500,nvidia,,x86,{}\n"
        "1H100,FIN-01,0.7,32,185.5,1,H100,80,True,500,nvidia,,x86,{}\n"
        "'=1GH,FIN-01,1.5,64,400,1,GH200,96,True,,nvidia,,arm,{}\n"
    )
    files = {path.name for path in (tmp_path / "out").glob("*.csv")}
    assert files == {LEFT_OUT, *(f"{provider}.csv" for provider in READ_FROM_FILES)}


def test_gpuhunts_version_3_has_the_same_files_packed_under_their_version(tmp_path: Path) -> None:
    made_up(tmp_path / "out", "gpuhunt")
    for provider in READ_FROM_FILES:
        place = tmp_path / "out" / "v3" / provider
        version = (place / "version").read_text().strip()
        assert {path.name for path in place.iterdir()} == {"version", version}
        with zipfile.ZipFile(place / version / "catalog.zip") as packed:
            assert packed.namelist() == [f"{provider}.csv"]
            assert packed.read(f"{provider}.csv") == (tmp_path / "out" / f"{provider}.csv").read_bytes()
    described = {each["path"] for each in package_of(tmp_path / "out")["resources"]}
    files = {path for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert described | {"datapackage.json"} == {
        path.relative_to(tmp_path / "out").as_posix() for path in files
    }
    made_up(tmp_path / "out", "gpuhunt")  # replaces its own files


def test_every_sample_offer_is_written_or_skipped_with_a_reason(sample_home: Home, tmp_path: Path) -> None:
    with reader(sample_home.published) as connection:
        ((offers,),) = ask(connection, "SELECT count(*) FROM offers_latest").rows
        gpus = {gpu for (gpu,) in ask(connection, "SELECT gpu_id FROM gpus").rows}
        sources = {source for (source,) in ask(connection, "SELECT source FROM sources").rows}
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    for tool in ("skypilot", "gpuhunt"):
        folder = tmp_path / tool
        answer = gpufare("export", str(folder), "--for", tool, home=sample_home)
        assert answer.returncode == 0, answer.stderr
        left = rows_of(folder / LEFT_OUT)
        assert int(answer.stdout.split()[0]) + len(left) == offers
        assert f"; {len(left)} offers are omitted" in answer.stdout
        listed, prices, machines = (int(answer.stdout.split()[at]) for at in (0, 4, 7))
        said = f"{listed} of {offers} offers are listed, as {prices:,} prices of {machines} machines"
        assert said in page
        assert all(row["reasons"] for row in left)
        assert clouds(tool).keys() <= sources
    names = catalog_table("consumers/accelerator_names.csv", Accelerator)
    assert {row.gpu_id for row in names} <= gpus
    assert {row.source for row in names} <= {*sources, ""}
