"""No captured price is ranked in a machine that its provider does not sell.

The captures lie beside the checkout and are no part of the project: without them there is nothing to test.
"""

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

FILES = {
    "runpod": ["runpod_gpuTypes_2026-09-29.json"],
    "lambda": ["lambda_1cc_tabs_2026-08-22.html"],
    "coreweave": ["coreweave_pricing_gpu_section_2026-08-22.html"],
    "aws": ["aws_awsstatic_ondemand_us-east-1_2026-10.json"],
    "azure": ["azure_retail_items_trimmedfields_2026-10.json"],
    "oci": ["oracle_products_2026-10-01.json", "oci_cloudestimator_shapes.json"],
    "vast": ["vast_offers_trimmedfields_2026-10.json"],
    "scaleway": ["scaleway_products_servers_2026-08-22.json"],
    "nebius": ["nebius_highlight_table_block_2026-08-22.json"],
    "verda": ["verda_pricing_jsonld_2026-08-22.html"],
    "vultr": ["vultr_plans_vcg.json", "vultr_plans_metal.json"],
    "cudo": ["cudo_machine_types.json"],
    "digitalocean": ["digitalocean_v2_sizes.json"],
    "jarvislabs": ["jarvislabs_server_meta.json"],
    "civo": ["civo_l40s_table_2026-08-22.html"],
    "hotaisle": ["hotaisle_pricing_2026-08-22.html"],
    "massedcompute": ["massedcompute_pricing_rsc_2026-08-22.txt"],
    "seeweb": ["seeweb_plans_2026-08-19.json"],
}

BARE_METAL = {"h100-sxm-80gb", "h200-sxm-141gb", "b200-sxm-180gb", "b300-sxm-288gb", "mi300x", "mi355x"}
SOLD: dict[tuple[str, str], set[int]] = {
    # Names of Oracle's shapes: BM.GPU.H100.8, BM.GPU.L40S.4, VM.GPU.A10.1 and so on.
    **{("oci", card): {8} for card in (*BARE_METAL, "a100-sxm-40gb", "a100-sxm-80gb", "rtx-pro-6000")},
    **{("oci", card): {4} for card in ("l40s", "gb200", "gb300")},
    ("oci", "a10"): {1, 2, 4},
    ("oci", "v100-sxm-16gb"): {1, 2, 4, 8},
    ("oci", "p100-16gb"): {1, 2},
    # Nebius's presets: 1gpu-16vcpu-200gb and 8gpu-128vcpu-1600gb; L40S also with two and four.
    **{("nebius", card): {1, 8} for card in BARE_METAL},
    ("nebius", "l40s"): {1, 2, 4},
    ("nebius", "rtx-pro-6000"): {1, 2, 4, 8},
    # Lambda's 1-Click Clusters are made of its largest machines.
    ("lambda", "b200-sxm-180gb"): {8},
    # RunPod's maxGpuCount of these cards.
    **{("runpod", card): set(range(1, 9)) for card in BARE_METAL},
    ("runpod", "rtx-a4500"): {1, 2, 3, 4},
    ("cudo", "rtx-3080-10gb"): set(range(1, 6)),
    ("cudo", "rtx-a5000"): set(range(1, 5)),
    ("jarvislabs", "a100-80gb"): set(range(1, 9)),
    ("jarvislabs", "h100-80gb"): set(range(1, 9)),
    ("jarvislabs", "l4"): set(range(1, 9)),
    ("jarvislabs", "rtx-pro-6000"): set(range(1, 9)),
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


def test_no_captured_card_is_ranked_on_several_machines_without_a_known_network(
    captured: duckdb.DuckDBPyConnection,
) -> None:
    query = "SELECT source, gpu_id FROM main.rentals WHERE node_count > 1 AND node_network_gbps IS NULL"
    assert captured.execute(query).fetchall() == []
