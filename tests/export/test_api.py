"""The static JSON API: its files, their contents and their description are those of the published tables."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import duckdb
import pytest

from pipeline.catalog.schema import column_rows, read_table
from pipeline.export.api import ENDPOINTS
from pipeline.home.paths import Home
from pipeline.warehouse.query import reader
from tests.conftest import gpufare
from tests.export.conftest import package_of
from tests.homes import made_once, shared_folder


@pytest.fixture(scope="module")
def api(sample_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Read only."""

    def write(folder: Path) -> None:
        answer = gpufare("export", str(folder), "--for", "api", home=sample_home)
        assert answer.returncode == 0, answer.stderr

    return made_once(shared_folder(tmp_path_factory) / "exported-api", write) / "v1"


def no_number(text: str) -> NoReturn:
    raise AssertionError(f"{text} is not JSON")


def read(file: Path) -> Any:
    return json.loads(file.read_bytes(), parse_constant=no_number)


def names_of(connection: duckdb.DuckDBPyConnection, query: str) -> set[str]:
    return {name for (name,) in connection.execute(query).fetchall()}


def test_each_workload_and_each_gpu_with_a_price_has_a_file(api: Path, sample_home: Home) -> None:
    with reader(sample_home.published) as connection:
        workloads = names_of(connection, "SELECT workload FROM workloads")
        gpus = names_of(connection, "SELECT gpu_id FROM offers_latest WHERE ranked")
    files = {path.relative_to(api).as_posix() for path in api.rglob("*.json")}
    assert files == {
        *("index.json", "publication.json", "workloads.json", "gpus.json", "sources.json"),
        *(f"cheapest/{workload}.json" for workload in workloads),
        *(f"gpus/{gpu}.json" for gpu in gpus),
    }
    assert {row["workload"] for row in read(api / "workloads.json")} == workloads
    assert {row["gpu_id"] for row in read(api / "gpus.json")} == gpus


def test_the_index_describes_every_field_as_the_tables_do(api: Path) -> None:
    index = read(api / "index.json")
    assert [endpoint["path"] for endpoint in index["endpoints"]] == list(ENDPOINTS)
    for endpoint in index["endpoints"]:
        named = [field["name"] for field in endpoint["fields"]]
        for file in api.glob(endpoint["path"].replace("{workload}", "*").replace("{gpu_id}", "*")):
            assert all(list(row) == named for row in read(file))
        meanings = {c.name: c.meaning for c in read_table(ENDPOINTS[endpoint["path"]].table).described()}
        assert all(field["description"] == meanings[field["name"]] for field in endpoint["fields"])
    assert {"as_of_day", "offers_ranked"} < set(read(api / "publication.json")[0]) < set(column_rows())


def test_the_rows_are_those_of_the_tables(api: Path, sample_home: Home) -> None:
    cheapest = """SELECT price_kind, rank, gpu_id, provider, total_usd::DOUBLE FROM cheapest_gpu_per_workload
        WHERE workload = 'llama-3.1-8b-lora-100m' AND objective = 'cost' AND rank <= 3 ORDER BY ALL"""
    prices = """SELECT price_kind, provider, min(usd_per_gpu_hour)::DOUBLE FROM price_list
        WHERE gpu_id = 'h100-sxm-80gb' GROUP BY ALL ORDER BY ALL"""
    states = "SELECT source, state, last_accepted_day::VARCHAR FROM source_health ORDER BY ALL"
    asked: dict[str, tuple[str, Callable[[dict[str, Any]], tuple[Any, ...]]]] = {
        "cheapest/llama-3.1-8b-lora-100m.json": (
            cheapest,
            lambda row: (
                *(row["price_kind"], row["rank"], row["gpu_id"]),
                *(row["provider"], row["total_usd"]),
            ),
        ),
        "gpus/h100-sxm-80gb.json": (
            prices,
            lambda row: (row["price_kind"], row["provider"], row["usd_per_gpu_hour"]),
        ),
        "sources.json": (states, lambda row: (row["source"], row["state"], row["last_accepted_day"])),
    }
    with reader(sample_home.published) as connection:
        for file, (query, cells) in asked.items():
            rows = connection.execute(query).fetchall()
            assert len(rows) > 5
            assert sorted(map(cells, read(api / file)), key=str) == sorted(rows, key=str), file
    (published,) = read(api / "publication.json")
    assert published["as_of_day"] == "2026-08-22"
    assert published["as_of_time"].endswith("Z")


def test_files_are_small_and_described_to_the_byte_and_written_alike_again(
    api: Path, sample_home: Home, tmp_path: Path
) -> None:
    package = package_of(api.parent)
    hashes = {each["path"]: each["hash"].removeprefix("sha256:") for each in package["resources"]}
    files = {path.relative_to(api.parent).as_posix(): path.read_bytes() for path in api.rglob("*.json")}
    assert hashes == {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
    assert {each["mediatype"] for each in package["resources"]} == {"application/json"}
    assert max(map(len, files.values())) < 200_000
    again = gpufare("export", str(tmp_path / "api"), "--for", "api", home=sample_home)
    assert again.returncode == 0, again.stderr
    assert {each["path"]: each["hash"] for each in package_of(tmp_path / "api")["resources"]} == {
        each["path"]: each["hash"] for each in package["resources"]
    }


def test_forbidden_prices_and_options_of_the_tables_are_refused(sample_home: Home, tmp_path: Path) -> None:
    for option, says in (
        ("--republishable", "whose terms forbid publishing them again"),
        ("--format=csv", "--for api has its own format"),
        ("--tables=gpus", "--for api writes the newest offers"),
    ):
        answer = gpufare("export", str(tmp_path / "api"), "--for", "api", option, home=sample_home)
        assert answer.returncode == 1
        assert says in answer.stderr
    assert not (tmp_path / "api").exists()
