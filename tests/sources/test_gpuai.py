"""GPU.ai's marketplace: pages by cursor, prices of whole machines, and whose hardware it is."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.contracts.listing import SourceChangedError
from tests.capture.site import Asked, Reply, Site
from tests.sources.helpers import answer, following, page, read
from tests.sources.loopback import json_reply, visit

HOST = "api.gpu.ai"
FIRST = "https://api.gpu.ai/v1/pricing?limit=200"


def offer(**changes: Any) -> dict[str, Any]:
    return json.loads(page("gpuai", "pricing.json"))["data"][1] | changes


def pricing(*offers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"data": list(offers), "next_cursor": None} | more


def test_the_book_is_read_page_by_page_to_its_end(tmp_path: Path) -> None:
    pages = {
        "/v1/pricing?limit=200": page("gpuai", "pricing.json"),
        "/v1/pricing?limit=200&cursor=MjAyNi0wOC0yMnxydHhfMzA5MHx8MQ%3D%3D": page("gpuai", "pricing-2.json"),
    }

    def book(asked: Asked) -> Reply:
        return json_reply(pages[asked.target]) if asked.target in pages else Reply(400, b"{}")

    with Site() as site:
        site.route(HOST, "/v1/pricing", book)
        captured, answers = visit("gpuai", site, tmp_path)
        assert [asked.target for asked in site.pages_asked()] == list(pages)
    assert captured.status == "captured"
    listings, _ = read("gpuai", *answers)
    assert len(listings) == 9


def test_a_book_whose_cursor_does_not_move_on_ends(tmp_path: Path) -> None:
    with Site() as site:
        site.say(HOST, "/v1/pricing", json_reply(json.dumps(pricing(offer(), next_cursor="the same"))))
        _, answers = visit("gpuai", site, tmp_path)
        assert len(site.pages_asked()) == 2
    listings, rejects = read("gpuai", *answers)
    assert len(listings) == 1
    assert {reject.reason for reject in rejects} <= {"duplicate"}


@pytest.mark.parametrize(("cursor", "url"), [(None, None), ("", None), ("a=b", f"{FIRST}&cursor=a%3Db")])
def test_the_next_page_is_asked_for_by_its_cursor(cursor: str | None, url: str | None) -> None:
    assert following("gpuai", answer(pricing(offer(), next_cursor=cursor), FIRST)) == url


def test_pages_are_counted_if_none_states_whether_another_follows() -> None:
    body = pricing(offer())
    del body["next_cursor"]
    listings, rejects = read("gpuai", answer(body))
    assert len(listings) == 1
    assert [reject.reason for reject in rejects] == ["unread_page"]


def test_the_price_is_of_all_gpus_of_the_offer() -> None:
    (row,), _ = read("gpuai", answer(pricing(offer())))
    assert (row.gpu_count, row.native_price, row.native_unit) == (8, Decimal("50.62"), "instance_hour")


def test_an_offer_that_two_pages_show_is_one() -> None:
    moved = answer(pricing(offer(), next_cursor="x")), answer(pricing(offer(), offer(offering_id="other")))
    listings, rejects = read("gpuai", *moved)
    assert len(listings) == 2
    assert [reject.reason for reject in rejects] == ["duplicate"]


def test_offers_without_an_id_are_kept_apart() -> None:
    listings, rejects = read("gpuai", answer(pricing(offer(offering_id=None), offer(offering_id=None))))
    assert (len(listings), rejects) == (2, [])


def test_specifications_of_nothing_are_unknown() -> None:
    (row,), _ = read("gpuai", answer(pricing(offer(cpu_cores=0, ram_gb=0, instance_disk_gb=0))))
    assert (row.vcpus, row.ram_gib, row.local_disk_gb) == (None, None, None)


@pytest.mark.parametrize(
    ("changes", "price"),
    [
        ({"disk_configurable": True, "disk_price_per_gb_hour": 0.00028}, Decimal("0.2044")),
        ({"disk_configurable": True, "disk_price_per_gb_hour": 0}, Decimal(0)),
        ({"disk_configurable": False, "disk_price_per_gb_hour": 0}, None),
    ],
)
def test_more_disk_is_priced_where_it_can_be_had(changes: dict[str, Any], price: Decimal | None) -> None:
    (row,), _ = read("gpuai", answer(pricing(offer(**changes))))
    assert row.storage_usd_per_gb_month == price


@pytest.mark.parametrize(
    ("changes", "tier"),
    [
        ({"capacity_class": ""}, "marketplace_secure_vm"),
        ({"capacity_class": "community", "community": True}, "marketplace_community_vm"),
        ({"deployment_type": None}, "marketplace_secure"),
    ],
)
def test_the_owner_of_the_hardware(changes: dict[str, Any], tier: str) -> None:
    (row,), _ = read("gpuai", answer(pricing(offer(**changes))))
    assert row.tier == tier


def test_a_spot_price_is_one() -> None:
    (row,), _ = read("gpuai", answer(pricing(offer(tier="spot"))))
    assert row.price_kind == "spot"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"tier": "reserved"}, "unknown_price_kind"),
        ({"tier": None}, "unknown_price_kind"),
        ({"capacity_class": "community"}, "unknown_terms"),
        ({"capacity_class": "sovereign"}, "unknown_terms"),
        ({"community": None}, "unknown_terms"),
        ({"price_per_hour": 0}, "zero_price"),
        ({"price_per_hour": None}, "not_offered"),
        ({"gpu_count": 0}, "unknown_gpu_count"),
        ({"gpu_type": ""}, "missing_field"),
    ],
)
def test_unreadable_rows_are_rejected(changes: dict[str, Any], reason: str) -> None:
    listings, rejects = read("gpuai", answer(pricing(offer(**changes))))
    assert not listings
    assert [reject.reason for reject in rejects] == [reason]


def test_another_currency_is_not_taken_for_dollars() -> None:
    (row,), _ = read("gpuai", answer(pricing(offer(currency="EUR"))))
    assert row.native_currency == "EUR"


@pytest.mark.parametrize("body", [pricing(), {"data": {}}])
def test_another_shape_is_a_change(body: Any) -> None:
    with pytest.raises(SourceChangedError):
        read("gpuai", answer(body))
