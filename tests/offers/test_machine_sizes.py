"""The evidence for a machine's number of GPUs: the answer, the catalogue, or neither."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from pipeline.catalog.machine_sizes import machine_size, machine_sizes
from pipeline.catalog.source_config import CatalogError
from pipeline.home import paths
from pipeline.home.paths import Home
from pipeline.offers.build import build_offers
from pipeline.record.records import Records
from pipeline.warehouse.connection import connect
from pipeline.warehouse.database import create
from pipeline.warehouse.load import load_catalog
from tests.offers.builders import config, listing
from tests.warehouse.full_load import load_record

DAY = date(2026, 8, 22)
HEADER = (
    "source,gpu_id,tier,gpu_counts,node_network_gbps,max_nodes,network_attached,"
    "evidence,evidence_url,read_on,note\n"
)
ROWS = (
    "acme,,,8,,,,documented,,2026-08-22,\n"
    "acme,,shared,1,,,yes,documented,,2026-08-22,\n"
    "acme,h100-sxm-80gb,,1;2;8,3200,16,no,documented,,2026-08-22,\n"
    "acme,h100-sxm-80gb,shared,1;2,,,yes,documented,,2026-08-22,\n"
)


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The catalogue with the machine sizes of a made-up provider."""
    folder = tmp_path / "catalog"
    folder.mkdir()
    for file in paths.CATALOG_DIR.iterdir():
        (folder / file.name).symlink_to(file)
    (folder / "machine_sizes.csv").unlink()
    (folder / "machine_sizes.csv").write_text(HEADER + ROWS)
    monkeypatch.setattr(paths, "CATALOG_DIR", folder)
    machine_sizes.cache_clear()
    yield folder
    machine_sizes.cache_clear()


SHOWN: list[tuple[str, dict[str, Any], str]] = [
    ("a price per GPU", {}, "assumed"),
    ("a machine with a name", {"instance_type": "h100.8", "gpu_count": 8}, "offered"),
    ("a named machine of one", {"instance_type": "h100.1"}, "offered"),
    ("a price per GPU of eight", {"gpu_count": 8}, "offered"),
    ("a price for a whole machine", {"native_unit": "instance_hour"}, "offered"),
    ("a price per GPU next to its counts", {"gpu_counts": (1, 2, 4)}, "offered"),
    ("a host on a marketplace", {"tier": "marketplace"}, "offered"),
]


@pytest.mark.parametrize(("facts", "evidence"), [p[1:] for p in SHOWN], ids=[p[0] for p in SHOWN])
def test_answer_lists_the_offered_machines(facts: dict[str, Any], evidence: str) -> None:
    (offer,) = build_offers([listing(**facts)], config()).offers
    assert offer.size_evidence == evidence


@pytest.mark.usefixtures("catalogue")
def test_a_price_per_gpu_is_catalogued_where_the_catalogue_has_its_machines() -> None:
    offers = build_offers([listing(), listing("2.5", gpu_count=8, instance_type="h100.8")], config()).offers
    assert [offer.size_evidence for offer in offers] == ["catalogued", "offered"]


def test_a_source_of_whole_machines_gives_no_offer_without_a_machine_size() -> None:
    shown = [listing(), listing("2.5", gpu_count=8, instance_type="h100.8"), listing("1.5", raw_label="X900")]
    built = build_offers(shown, config(known_sizes=True))
    assert [offer.size_evidence for offer in built.offers] == ["offered", "assumed"]
    assert built.offers[1].gpu_id is None
    (reject,) = built.rejects
    assert reject.reason == "unknown_gpu_count"
    assert "catalog/machine_sizes.csv" in reject.detail


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(
    ("gpu_id", "tier", "gpu_counts"),
    [
        ("h100-sxm-80gb", "shared", (1, 2)),
        ("h100-sxm-80gb", "secure", (1, 2, 8)),
        ("h100-sxm-80gb", None, (1, 2, 8)),
        ("l40s", "shared", (1,)),
        ("l40s", None, (8,)),
        (None, None, (8,)),
    ],
)
def test_the_row_of_the_card_counts_first_and_then_that_of_the_tier(
    gpu_id: str | None, tier: str | None, gpu_counts: tuple[int, ...]
) -> None:
    row = machine_size("acme", gpu_id, tier)
    assert row is not None
    assert row.gpu_counts == gpu_counts
    assert machine_size("other", gpu_id, tier) is None
    with connect() as connection:
        create(connection, "machine_sizes", "catalogued_sizes")
        load_catalog(connection)
        query = """WITH asked AS (SELECT 'acme' AS source, ?::VARCHAR AS gpu_id, ?::VARCHAR AS tier)
            SELECT size.gpu_counts, size.network_attached FROM catalogued_sizes('asked')"""
        assert connection.execute(query, [gpu_id, tier]).fetchall() == [
            (list(gpu_counts), row.network_attached)
        ]


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("acme,,,2;1,,,,documented,,2026-08-22,\n", "not ascending"),
        ("acme,,,,,,,documented,,2026-08-22,\n", "line 2: gpu_counts"),
        ("acme,,,0;1,,,,documented,,2026-08-22,\n", "greater than 0"),
        ("acme,,,8,,4,,documented,,2026-08-22,\n", "need a known network"),
        ("acme,,,8,,,,hearsay,,2026-08-22,\n", "line 2: evidence"),
        ("acme,,,8,,,,documented,,yesterday,\n", "line 2: read_on"),
        ("acme,,,8,,,,documented,,2026-08-22,\n" * 2, "two rows for acme any any"),
    ],
)
def test_a_row_that_cannot_be_meant_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str, complaint: str
) -> None:
    (tmp_path / "machine_sizes.csv").write_text(HEADER + row)
    monkeypatch.setattr(paths, "CATALOG_DIR", tmp_path)
    with pytest.raises(CatalogError, match=complaint):
        machine_sizes.__wrapped__()


def test_counts_come_back_from_the_record(tmp_path: Path) -> None:
    offers = build_offers([listing(gpu_counts=(1, 2, 4)), listing("3")], config()).offers
    home = Home(tmp_path)
    Records(home).write_accepted(DAY, "acme", offers)
    assert Records(home).offers("acme", DAY) == offers
    with connect() as connection:
        create(connection, "offers", "rejects", "capture_outcomes", "exchange_rates")
        load_record(connection, home, DAY)
        found = connection.execute("SELECT gpu_counts FROM main.offers ORDER BY usd_per_hour").fetchall()
    assert found == [([1, 2, 4],), (None,)]
