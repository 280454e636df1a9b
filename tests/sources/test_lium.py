"""Lium's feed of nodes: what can be ordered of a node, its share of the host, and contradictions."""

from decimal import Decimal
from typing import Any

import pytest

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import SourceChangedError
from pipeline.refresh.ingest import read_answers
from tests.sources.captures import capture
from tests.sources.helpers import answer, page, read

NODE: dict[str, Any] = {
    "id": "n-1",
    "gpu_model": "H200",
    "gpu_count": 8,
    "available_gpu_count": 5,
    "price_per_gpu_hour": 3.99,
    "min_rentable_gpu_count": 1,
    "gpu_memory_gb": 140,
    "cpu_count": 192,
    "ram_gb": 2000,
    "disk_gb": 3576,
    "tier": "secure",
    "country": "United States",
    "country_code": "US",
    "region": "MS",
    "city": "Jackson",
    "rent_url": "https://lium.io/browse-pods/n-1",
    "price_per_node_hour": 31.92,
}


def feed(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"generated_at": "2026-09-10T07:37:02Z", "count": len(nodes), "nodes": list(nodes)} | more


def test_a_node_is_rented_in_every_number_that_is_free_with_its_share_of_the_host() -> None:
    (row,), rejects = read("lium", answer(feed(NODE)))
    assert rejects == []
    assert (row.gpu_count, row.gpu_counts, row.min_gpu_count) == (1, (1, 2, 3, 4, 5), 1)
    assert (row.native_price, row.native_unit, row.price_kind) == (Decimal("3.99"), "gpu_hour", "on_demand")
    assert (row.region, row.country, row.tier) == ("Jackson, MS, US", "US", "marketplace_secure")
    assert (row.vcpus, row.ram_gib, row.local_disk_gb) == (24, (2000 - 20) / 8, 447)


def test_a_node_that_cannot_be_split_is_one_machine() -> None:
    whole = NODE | {"available_gpu_count": 8, "min_rentable_gpu_count": 8, "ram_gb": 100, "tier": "spot"}
    unstated = whole | {"id": "n-2", "min_rentable_gpu_count": None, "tier": "secure"}
    listings, _ = read("lium", answer(feed(whole, unstated)))
    assert [(row.gpu_count, row.gpu_counts, row.price_kind) for row in listings] == [
        (8, None, "spot"),
        (8, None, "on_demand"),
    ]
    assert listings[0].ram_gib == 96  # the host keeps at least 4 GiB


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"price_per_gpu_hour": None}, "not_offered"),
        ({"price_per_gpu_hour": 0}, "zero_price"),
        ({"price_per_gpu_hour": "3.99O"}, "unreadable_price"),
        ({"price_per_node_hour": 3.99}, "conflicting_prices"),
        ({"min_rentable_gpu_count": 8}, "not_offered"),
        ({"available_gpu_count": 0}, "not_offered"),
        ({"available_gpu_count": 9}, "unknown_gpu_count"),
        ({"gpu_count": 0}, "unknown_gpu_count"),
        ({"gpu_count": None}, "unknown_gpu_count"),
        ({"available_gpu_count": None}, "missing_field"),
        ({"gpu_model": None}, "missing_field"),
        ({"tier": "community"}, "unknown_price_kind"),
    ],
)
def test_a_node_that_is_not_certain_is_rejected(change: dict[str, Any], reason: str) -> None:
    listings, rejects = read("lium", answer(feed(NODE | change)))
    assert listings == []
    assert [reject.reason for reject in rejects] == [reason]


@pytest.mark.parametrize(
    ("other", "reasons"),
    [
        ({}, ["duplicate"]),
        ({"available_gpu_count": 6}, ["duplicate"]),
        ({"id": "n-2"}, []),
    ],
)
def test_a_node_is_listed_once(other: dict[str, Any], reasons: list[str]) -> None:
    listings, rejects = read("lium", answer(feed(NODE, NODE | other)))
    assert [reject.reason for reject in rejects] == reasons
    assert len(listings) == 2 - len(reasons)


def test_nodes_without_an_id_are_not_taken_for_one_node() -> None:
    nameless = NODE | {"id": None}
    listings, _ = read("lium", answer(feed(nameless, nameless | {"price_per_node_hour": None})))
    assert len(listings) == 2


def test_another_currency_is_refused() -> None:
    config = source_config("lium")
    built = read_answers([answer(feed(NODE, NODE | {"id": "n-2", "currency": "TAO"}))], config, {})
    assert [offer.native_currency for offer in built.offers] == ["USD"]
    assert [reject.reason for reject in built.rejects] == ["unexpected_currency"]


@pytest.mark.parametrize("name", ["lium", "vast", "primeintellect"])
def test_no_card_is_required_in_a_list_of_free_machines(name: str) -> None:
    assert source_config(name).expect.must_have == ()


def test_a_pod_is_paid_by_the_second() -> None:
    built = read_answers([answer(feed(NODE))], source_config("lium"), {})
    assert [offer.billing_increment_seconds for offer in built.offers] == [1]


def test_feed_shorter_than_its_count_is_reported() -> None:
    listings, rejects = read("lium", answer(feed(NODE, count=2)))
    assert len(listings) == 1
    assert [reject.reason for reject in rejects] == ["unread_page"]


@pytest.mark.parametrize("body", [{"nodes": {}}, {"nodes": []}])
def test_an_answer_without_nodes_counts_as_changed(body: Any) -> None:
    with pytest.raises(SourceChangedError):
        read("lium", answer(body))


def test_the_machines_of_another_endpoint_are_not_taken_for_nodes() -> None:
    with pytest.raises(SourceChangedError, match="the objects are not nodes"):
        read("lium", answer(capture("lium_machines_2026-08.json")))


def test_the_sample_page() -> None:
    listings, rejects = read("lium", answer(page("lium", "nodes.json")))
    assert len(listings) == 12
    assert [reject.reason for reject in rejects] == ["not_offered", "not_offered"]
