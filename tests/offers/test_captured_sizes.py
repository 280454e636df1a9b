"""No captured price is ranked in a machine that its provider does not sell.

The captures lie beside the checkout and are no part of the project: without them there is nothing to test.
"""

import csv
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from pipeline.catalog.source_config import source_config
from pipeline.contracts.rates import Rate
from pipeline.home.paths import Home
from pipeline.offers.build import build_offers
from pipeline.record.records import Records
from pipeline.sources import source_module
from pipeline.warehouse.connection import connect
from pipeline.warehouse.database import prepare
from pipeline.warehouse.marts import fill
from tests.sources.helpers import answer
from tests.warehouse.full_load import load_record

CAPTURES = next(
    (folder for parent in Path(__file__).parents if (folder := parent / "shared" / "captures").is_dir()), None
)
DAY = date(2026, 10, 1)


def table(name: str) -> list[dict[str, str]]:
    with Path(__file__).with_name(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


FILES: dict[str, list[str]] = defaultdict(list)
for _row in table("captured_files.csv"):
    FILES[_row["source"]].append(_row["file"])

SOLD = {
    (row["source"], gpu_id): set(map(int, row["gpu_counts"].split()))
    for row in table("sold_machines.csv")
    for gpu_id in row["gpu_ids"].split()
}
"""Where prices are per GPU, what the providers' own names of machines and documentation say; elsewhere each
offer is a machine."""

MOST_GPUS_OF_A_POD = 12
"""The largest maxGpuCount of any card of RunPod."""


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    if CAPTURES is None:
        pytest.skip("no captures beside the checkout")
    home = Home(tmp_path_factory.mktemp("captured"))
    rates = {"EUR": Rate(Decimal("1.17"), DAY)}
    observed_at = datetime(DAY.year, DAY.month, DAY.day, 6, tzinfo=UTC)
    for source, files in FILES.items():
        config = source_config(source)
        url = config.requests[0].url if config.requests else config.homepage
        answers = [answer((CAPTURES / file).read_bytes(), url, observed_at) for file in files]
        offers = build_offers(source_module(source).read(answers, config), config, rates).offers
        assert offers, source
        Records(home).write_accepted(DAY, source, offers)
    with connect() as connection:
        prepare(connection)
        connection.execute(f"SET VARIABLE as_of_day = DATE '{DAY}'")
        assert load_record(connection, home, DAY) == []
        for table in ("offers_latest", "rentals"):
            fill(connection, table)
        yield connection


def test_every_machine_that_can_be_ranked_is_one_that_its_provider_sells(
    captured: duckdb.DuckDBPyConnection,
) -> None:
    rentals = captured.execute(
        "SELECT source, gpu_id, gpus_billed / node_count, raw_label, tier = 'cluster' FROM main.rentals"
        " WHERE size_evidence <> 'assumed'"
    ).fetchall()
    listed = captured.execute(
        "SELECT source, gpu_id, list(DISTINCT gpu_count) FROM main.offers_latest"
        " WHERE ranked AND gpu_counts IS NULL AND size_evidence = 'offered' GROUP BY ALL"
    ).fetchall()
    machines = {(source, gpu_id): set(counts) for source, gpu_id, counts in listed}
    assert {source for source, *_ in rentals} >= FILES.keys()
    wrong = []
    for source, gpu_id, gpus, label, is_cluster in rentals:
        sold = machines.get((source, gpu_id), set()) | SOLD.get((source, gpu_id), set())
        if not sold and source == "runpod":
            sold = set(range(1, MOST_GPUS_OF_A_POD + 1))
        assert sold, f"say in SOLD in which machines {source} sells {gpu_id}"
        # A cluster of machines with eight GPUs is paid as a whole, idle machines included.
        if gpus not in sold and not (is_cluster and gpus % 8 == 0):
            wrong.append((source, gpu_id, gpus, label))
    assert wrong == []
    query = "SELECT source, gpu_id FROM main.rentals WHERE node_count > 1 AND node_network_gbps IS NULL"
    assert captured.execute(query).fetchall() == []  # no job on several machines without a known network
