"""Lium's feed of nodes: what can be ordered of a node, its share of the host, and contradictions."""

from typing import Any

from pipeline.catalog.source_config import source_config
from pipeline.refresh.ingest import read_answers
from tests.sources.edited_pages import changed, each, misread, outcome, sample_row
from tests.sources.helpers import answer

NODE = sample_row("lium", "nodes.json", "nodes", 1) | {"ram_gb": 2000, "disk_gb": 3576}


def feed(*changes: dict[str, Any], **more: Any) -> dict[str, Any]:
    nodes = [changed(NODE, change) for change in changes]
    return {"generated_at": "2026-09-10T07:37:02Z", "count": len(nodes), "nodes": nodes} | more


def test_a_node_is_rented_in_every_number_that_is_free_with_its_share_of_the_host() -> None:
    whole = {"available_gpu_count": 8, "min_rentable_gpu_count": 8}
    cases = [
        ({}, [(1, (1, 2, 3, 4, 5), 1, 24, (2000 - 20) / 8, 447)]),
        ({"min_rentable_gpu_count": 4}, [(1, (4, 5), 4, 24, (2000 - 20) / 8, 447)]),
        (whole | {"ram_gb": 100}, [(8, None, 8, 192, 96, 3576)]),  # the host keeps at least 4 GiB
        (whole | {"min_rentable_gpu_count": None, "ram_gb": 3}, [(8, None, 8, 192, 0, 3576)]),
        (whole | {"cpu_count": None, "ram_gb": "?", "disk_gb": None}, [(8, None, 8, None, None, None)]),
        *each([{"min_rentable_gpu_count": 8}, {"available_gpu_count": 0}], "not_offered"),
        ({"min_rentable_gpu_count": None}, ["not_offered"]),
        ({"available_gpu_count": 9}, ["unknown_gpu_count"]),
        ({"available_gpu_count": None}, ["missing_field"]),
    ]
    columns = "gpu_count gpu_counts min_gpu_count vcpus ram_gib local_disk_gb"
    assert not misread("lium", feed, cases, columns)


def test_the_price_and_the_terms_of_a_node() -> None:
    secure = ("3.99", "on_demand", "marketplace_secure", "Jackson, MS, US")
    cases = [
        ({}, [secure]),
        ({"tier": "spot", "city": None}, [("3.99", "spot", "marketplace_spot", "MS, US")]),
        ({"tier": "community"}, ["unknown_price_kind"]),
        *each([{"price_per_node_hour": 31.93}, {"price_per_node_hour": 31.91}], secure),  # a cent of rounding
        *each([{"price_per_node_hour": 31.94}, {"price_per_node_hour": 3.99}], "conflicting_prices"),
        ({"price_per_node_hour": "3.99O"}, ["unreadable_price"]),
        ({"price_per_node_hour": None}, [secure]),
    ]
    assert not misread("lium", feed, cases, "native_price price_kind tier region")


def test_a_node_is_listed_once() -> None:
    cases = [
        ({}, [("H200", "3.99"), "duplicate"]),
        ({"available_gpu_count": 6}, [("H200", "3.99"), "duplicate"]),
        ({"id": "n-2"}, [("H200", "3.99")] * 2),
    ]
    assert not misread("lium", lambda other: feed({}, other), cases)
    # Nodes without an id are not one node.
    nameless = feed({"id": None}, {"id": None, "price_per_node_hour": None})
    assert outcome("lium", nameless) == [("H200", "3.99")] * 2


def test_a_feed_that_is_cut_short_or_of_other_objects() -> None:
    cases = [
        (feed({}, count=2), [("H200", "3.99"), "unread_page"]),
        (feed({}, count=None), [("H200", "3.99")]),
        (feed(), ["changed: the feed has no node"]),
        ({"nodes": [{"name": "H100"}]}, ["changed: the objects are not nodes: ['name']"]),
    ]
    assert not misread("lium", lambda body: body, cases)


def test_a_node_in_another_currency_is_refused_and_one_in_dollars_is_paid_by_the_second() -> None:
    body = feed({}, {"id": "n-2", "currency": "TAO"})
    built = read_answers([answer(body)], source_config("lium"), {})
    billed = [(offer.native_currency, offer.billing_increment_seconds) for offer in built.offers]
    assert (billed, [reject.reason for reject in built.rejects]) == ([("USD", 1)], ["unexpected_currency"])


def test_no_card_is_required_in_a_list_of_free_machines() -> None:
    required = {name: source_config(name).expect.must_have for name in ("lium", "vast", "primeintellect")}
    assert required == dict.fromkeys(required, ())
