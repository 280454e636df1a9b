"""Vast.ai's asks: which GPU, how many, on demand or by bid, and no host's address kept."""

import json
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from pipeline.capture.visit import first_requests
from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import Answer, ReaderWarning, Request, SourceChangedError
from pipeline.gates.history import History
from pipeline.gates.judge import screen
from pipeline.offers.build import build_offers
from pipeline.sources import vast as source
from tests.sources.helpers import PAGES, answer, page, read

ASK = {
    "id": 1,
    "gpu_name": "A100 SXM4",
    "gpu_ram": 81920,
    "num_gpus": 4,
    "dph_total": 4.01,
    "is_bid": False,
    "geolocation": "Sweden, SE",
    "public_ipaddr": "203.0.113.7",
}
BID = ASK | {"min_bid": 2.0}


def asked(offers: object, **query: object) -> Answer:
    """An answer to a search, with the search in its address as the client sends it."""
    search = {"type": "on-demand", "order": [["dph_total", "asc"]]} | query
    url = "https://console.vast.ai/api/v0/bundles/?q=" + quote(json.dumps(search))
    return answer({"offers": offers}, url)


def test_trimmed_asks_without_their_envelope() -> None:
    """Asks of 2026-10 with four fields each."""
    asks = [
        ("B200", 183359, 1, 6.252083333333333),
        ("B200", 183359, 8, 65.01041666666667),
        ("H100 NVL", 95830, 8, 24.962222222222223),
        ("A100 SXM4", 40960, 1, 0.2962962962962963),
        ("A100 SXM4", 39936, 1, 0.6044444444444445),
        ("A100 PCIE", 81920, 4, 3.735555555555555),
        ("L40S", 46068, 7, 5.6395714814814815),
        ("L40S", 46068, 8, 3.734814814814815),
    ]
    fields = ("gpu_name", "gpu_ram", "num_gpus", "dph_total")
    listings, rejects = read("vast", answer([dict(zip(fields, ask, strict=True)) for ask in asks]))
    assert rejects == []
    assert [
        (row.raw_label, row.context["gpu_ram_mib"], row.gpu_count, float(row.native_price))
        for row in listings
    ] == asks
    assert listings[1].native_price == Decimal("65.01041666666667")
    assert {listing.price_kind for listing in listings} == {"on_demand"}


def test_price_is_of_the_whole_ask_and_a_bid_answer_gives_the_least_bid() -> None:
    (on_demand,), _ = read("vast", asked([ASK]))
    assert (on_demand.price_kind, on_demand.native_price, on_demand.gpu_count) == (
        "on_demand",
        Decimal("4.01"),
        4,
    )
    (spot,), _ = read("vast", answer([BID | {"is_bid": True}]))
    assert (spot.price_kind, spot.native_price) == ("spot", Decimal("2.0"))


@pytest.mark.parametrize("is_bid", [None, False])
def test_an_ask_in_a_search_for_bids_must_be_marked_as_a_bid(is_bid: bool | None) -> None:
    listings, rejects = read("vast", asked([BID | {"is_bid": is_bid}], type="bid"), asked([ASK]))
    assert [row.price_kind for row in listings] == ["on_demand"]
    assert [reject.reason for reject in rejects] == ["unknown_price_kind"]
    (bid,), _ = read("vast", asked([BID | {"is_bid": True}], type="bid"))
    assert (bid.price_kind, bid.native_price) == ("spot", Decimal("2.0"))


def test_price_is_without_the_disk_which_is_charged_apart() -> None:
    """4.0022 is 4.00 and 8 GB at 0.20 USD per GB and month of 720 hours."""
    ask = ASK | {"dph_base": 4.0, "dph_total": 4.0022, "storage_cost": 0.2, "disk_space": 1425.0}
    (listing,), _ = read("vast", asked([ask]))
    assert (listing.native_price, listing.local_disk_gb) == (Decimal("4.0"), None)
    assert listing.storage_usd_per_gb_month == Decimal("0.2")
    (only_total,), _ = read("vast", asked([ask | {"dph_base": None}]))
    assert (only_total.native_price, only_total.local_disk_gb) == (Decimal("4.0022"), 8)
    (bid,), _ = read("vast", asked([ask | {"min_bid": 2.0, "is_bid": True}]))
    assert (bid.native_price, bid.local_disk_gb) == (Decimal("2.0"), None)


def test_prices_without_disk_are_believed_the_day_after_prices_with_it() -> None:
    """As on the day on which a record of an earlier version is followed by one of this."""
    config, day = source_config("vast"), date(2026, 8, 22)
    files = sorted((PAGES / "vast").glob("search_*.json"))
    asks = [json.loads(file.read_text()) for file in files]
    totals = [{"offers": [a | {"dph_base": None} for a in answered["offers"]]} for answered in asks]
    before, after = (
        build_offers(source.read([answer(body) for body in bodies], config), config).offers
        for bodies in (totals, asks)
    )
    assert sum(o.native_price != n.native_price for o, n in zip(before, after, strict=True)) > 20
    screened = screen(after, History(before, day - timedelta(days=1)), config, day)
    assert (screened.rejects, screened.failure) == ([], None)


def test_a_total_below_the_price_without_disk_is_a_reject() -> None:
    listings, (reject,) = read("vast", asked([ASK | {"dph_base": 4.1, "dph_total": 4.0}]))
    assert (listings, reject.reason) == ([], "conflicting_prices")


@pytest.mark.parametrize(
    ("fields", "ram_gib"),
    [
        ({"cpu_ram": 262144, "cpu_cores": 64, "cpu_cores_effective": 32.0}, 128),
        ({"cpu_ram": 262144, "gpu_frac": 0.25}, 64),
        ({"cpu_ram": 262144}, None),
        ({"cpu_cores": 64, "cpu_cores_effective": 32.0}, None),
    ],
)
def test_memory_is_the_share_of_the_host(fields: dict[str, float], ram_gib: float | None) -> None:
    (listing,), _ = read("vast", asked([ASK | fields]))
    assert listing.ram_gib == ram_gib


def test_each_direction_of_traffic_has_its_price() -> None:
    (listing,), _ = read("vast", asked([ASK | {"inet_up_cost": 0.004, "inet_down_cost": 0.003}]))
    assert (listing.egress_usd_per_gb, listing.download_usd_per_gb) == (Decimal("0.004"), Decimal("0.003"))


def test_same_ask_of_two_searches_counts_once_but_two_alike_asks_count_twice() -> None:
    twin = ASK | {"id": 2}
    listings, rejects = read("vast", asked([ASK, twin]), asked([ASK], order=[["dph_total", "desc"]]))
    assert len(listings) == 2
    assert [reject.reason for reject in rejects] == ["duplicate"]


@pytest.mark.parametrize("min_bid", [4.5, ASK["dph_total"]])
def test_bid_not_below_the_fixed_price_of_the_same_ask_is_flagged(min_bid: float) -> None:
    dear_bid = asked([ASK | {"min_bid": min_bid}])
    other_ask = asked([ASK | {"id": 2, "min_bid": 4.5, "is_bid": True}])
    for answers in ((dear_bid, other_ask), (other_ask, dear_bid)):
        listings, _ = read("vast", *answers)
        flags = {row.flag_reason: row.price_kind for row in listings if row.flag_reason}
        assert flags == {"spot_not_below_on_demand": "spot"}
        assert len(listings) == 3


def test_an_ask_that_was_shown_to_bidders_first_has_one_spot_price() -> None:
    listings, _ = read("vast", asked([BID | {"is_bid": True}]), asked([BID | {"min_bid": 2.5}]))
    assert [(row.price_kind, str(row.native_price)) for row in listings] == [
        ("spot", "2.0"),
        ("on_demand", "4.01"),
    ]


def test_ask_without_a_price_or_count_is_a_reject_and_optional_fields_may_go() -> None:
    bare = {"gpu_name": "RTX 4090", "num_gpus": "2", "dph_total": "0.70"}
    broken = [
        ASK | {"id": 3, "dph_total": None},
        ASK | {"id": 4, "num_gpus": None},
        ASK | {"id": 5, "dph_total": 0},
        ASK | {"id": 6, "num_gpus": "many"},
        ASK | {"id": 7, "gpu_name": ""},
    ]
    listings, rejects = read("vast", answer({"offers": [bare, *broken], "extra": 1}))
    assert [(row.raw_label, row.gpu_count, row.native_price) for row in listings] == [
        ("RTX 4090", 2, Decimal("0.70"))
    ]
    assert [reject.reason for reject in rejects] == [
        "missing_field",
        "missing_field",
        "zero_price",
        "unknown_gpu_count",
        "missing_field",
    ]


@pytest.mark.parametrize(
    ("place", "region"), [(", US", "US"), ("Texas, US", "Texas, US"), (None, None), ("", None)]
)
def test_region_is_as_stated_by_the_host(place: str | None, region: str | None) -> None:
    (listing,), _ = read("vast", answer([ASK | {"geolocation": place}]))
    assert listing.region == region


@pytest.mark.parametrize(
    "body",
    [b'{"offers": [{"id": 1, "gpu_', b'{"offers": []}', b'{"results": []}'],
)
def test_answer_of_another_shape_fails_the_source(body: bytes) -> None:
    with pytest.raises(SourceChangedError):
        read("vast", answer(body))


def test_addresses_of_hosts_go_and_every_other_byte_stays() -> None:
    body = b'{"offers": [{"id": 1, "public_ipaddr": "203.0.113.7", "dph_total": 2.6337719298245617}]}'
    assert source.redact(body) == b'{"offers": [{"id": 1, "dph_total": 2.6337719298245617}]}'
    assert source.redact(b'[{"id": 1, "public_ipaddr": null}]') == b'[{"id": 1}]'
    assert source.redact(b'[{"public_ipaddr":"203.0.113.7\\n"}]') == b"[{}]"
    assert b"203.0" not in source.redact(b'[{"id": 1, "public_ipaddr": "203.0.11')
    untouched = page("vast", "search_2.json").encode()
    assert source.redact(untouched) == untouched


CONFIG = source_config("vast")
NAMES_URL = CONFIG.requests[0].url


def names_answer(*names: object) -> Answer:
    return answer({"success": True, "gpu_names": list(names)}, NAMES_URL)


def query_of(request: Request) -> dict[str, Any]:
    return json.loads(parse_qs(urlsplit(request.url).query)["q"][0])


def replied(request: Request, count: int) -> Answer:
    """Return a search's answer with ``count`` asks."""
    return answer({"offers": [ASK | {"id": at} for at in range(count)]}, request.url)


def test_the_names_are_asked_for_first_and_searched_in_groups() -> None:
    (first,) = first_requests(CONFIG, source, {})
    assert (first.url, first.headers) == (NAMES_URL, {})
    (with_key,) = first_requests(CONFIG, source, {"VAST_API_KEY": "secret"})
    assert with_key.headers == {"Authorization": "Bearer ${VAST_API_KEY}"}
    searches = source.next_requests(names_answer(*"HGFEDCBA", "A", 7), CONFIG)
    assert [query_of(search)["gpu_name"] for search in searches] == [
        {"in": list("ABCDEF")},
        {"in": ["G", "H"]},
    ]
    query = query_of(searches[0])
    assert (query["type"], query["allocated_storage"], query["limit"]) == ("on-demand", 8, 64)


@pytest.mark.parametrize("body", ["<html>busy</html>", {"gpu_names": []}, {"gpu_names": None}, [], {}])
def test_without_the_list_the_names_of_the_yaml_are_searched(body: object) -> None:
    broken = answer(body, NAMES_URL)
    searches = source.next_requests(broken, CONFIG)
    assert searches == source.retry_requests(Answer(NAMES_URL, b"", broken.observed_at, "", 404), CONFIG)
    assert [name for s in searches for name in query_of(s)["gpu_name"]["in"]] == CONFIG.settings["gpu_names"]
    rows = list(source.read([broken, asked([ASK])], CONFIG))
    assert "only names of the yaml" in next(row.text for row in rows if isinstance(row, ReaderWarning))
    assert source.retry_requests(replied(searches[0], 0), CONFIG) == []


def test_a_full_reply_is_halved_then_split_by_count_then_by_price() -> None:
    (search,) = source.next_requests(names_answer("A", "B", "C"), CONFIG)
    assert source.next_requests(replied(search, 63), CONFIG) == []
    one, two = source.next_requests(replied(search, 64), CONFIG)
    assert [query_of(half)["gpu_name"] for half in (one, two)] == [{"in": ["A"]}, {"in": ["B", "C"]}]
    per_count = source.next_requests(replied(one, 64), CONFIG)
    assert [query_of(search)["num_gpus"] for search in per_count] == [
        {"eq": 1},
        {"eq": 2},
        {"eq": 4},
        {"eq": 8},
        {"notin": [1, 2, 4, 8]},
    ]
    assert {json.dumps(query_of(search)["gpu_name"]) for search in per_count} == {'{"in": ["A"]}'}
    (dear,) = source.next_requests(replied(per_count[0], 64), CONFIG)
    assert query_of(dear) == query_of(per_count[0]) | {"order": [["dph_total", "desc"]]}
    assert source.next_requests(replied(dear, 64), CONFIG) == []


def test_asks_that_no_search_shows_are_a_reject() -> None:
    (search,) = source.next_requests(names_answer("A"), CONFIG)
    count = source.next_requests(replied(search, 64), CONFIG)[0]
    (dear,) = source.next_requests(replied(count, 64), CONFIG)
    far = answer({"offers": [ASK | {"id": at} for at in range(100, 164)]}, dear.url)
    _, rejects = read("vast", replied(count, 64), far)
    (reject,) = rejects
    assert reject.reason == "unread_page"
    assert '"num_gpus": {"eq": 1}' in reject.detail
    meeting = answer({"offers": [ASK | {"id": at} for at in range(63, 127)]}, dear.url)
    _, rejects = read("vast", replied(count, 64), meeting)
    assert {reject.reason for reject in rejects} == {"duplicate"}
    _, rejects = read("vast", replied(count, 64), replied(dear, 5))
    assert {reject.reason for reject in rejects} == {"duplicate"}
    unnamed = answer({"offers": [ASK | {"id": [at]} for at in range(64)]}, dear.url)
    listings, rejects = read("vast", replied(count, 64), unnamed)
    assert (len(listings), [reject.reason for reject in rejects]) == (128, ["unread_page"])


def test_an_ask_is_let_at_its_price_and_at_the_least_bid() -> None:
    listings, rejects = read("vast", asked([BID, ASK | {"id": 2, "min_bid": None}, ASK | {"id": 3}]))
    assert [(row.price_kind, str(row.native_price)) for row in listings] == [
        ("on_demand", "4.01"),
        ("spot", "2.0"),
        ("on_demand", "4.01"),
        ("on_demand", "4.01"),
    ]
    assert rejects == []
    _, rejects = read("vast", asked([BID | {"min_bid": 0}]))
    assert [reject.reason for reject in rejects] == ["zero_price"]
    (_, dear), _ = read("vast", asked([BID | {"min_bid": 4.5}]))
    assert dear.flag_reason == "spot_not_below_on_demand"


def test_optional_fields_that_cannot_be_read_cost_no_ask():
    ask = {"id": None, "gpu_name": "L40S", "num_gpus": 1, "dph_total": 0.6, "resource_type": None}
    odd = ask | {"gpu_ram": "?", "storage_cost": "free", "reliability2": None, "reliability": 0.9}
    listings, rejects = read("vast", answer({"offers": [ask, odd, ask | {"num_gpus": 0}]}))
    assert [(row.context, row.storage_usd_per_gb_month, row.reliability) for row in listings] == [
        ({}, None, None),
        ({}, None, 0.9),
    ]
    assert [reject.reason for reject in rejects] == ["unknown_gpu_count"]


@pytest.mark.parametrize(
    ("verification", "flag"),
    [("verified", None), ("unverified", None), (None, None), ("deverified", "host_deverified")],
)
def test_a_host_that_lost_its_verification_is_flagged(verification: str | None, flag: str | None) -> None:
    listings, _ = read("vast", asked([{**ASK, "verification": verification}]))
    assert [listing.flag_reason for listing in listings] == [flag]


def test_one_search_that_answers_something_else_does_not_take_the_others_along():
    good = {"offers": [{"id": 1, "gpu_name": "L40S", "num_gpus": 1, "dph_total": 0.6}]}
    listings, rejects = read("vast", answer({"success": False, "msg": "try again"}), answer(good))
    assert [row.raw_label for row in listings] == ["L40S"]
    assert [reject.reason for reject in rejects] == ["unreadable_answer"]
