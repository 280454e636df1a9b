"""Vast.ai's asks: which GPU, how many, on demand or by bid, and no host's address kept."""

import json
from datetime import date, timedelta
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import Answer, ReaderWarning, Request
from pipeline.gates.history import History
from pipeline.gates.judge import screen
from pipeline.offers.build import build_offers
from pipeline.sources import vast as source
from tests.sources.edited_pages import GONE, changed, each, misread, outcome
from tests.sources.helpers import PAGES, answer, page

CONFIG = source_config("vast")
NAMES_URL = CONFIG.requests[0].url
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
KIND_AND_PRICE = "price_kind native_price"
ON_DEMAND = ("on_demand", "4.01")


def asked(*offers: Any, **query: Any) -> Answer:
    """An answer to a search, with the search in its address as the client sends it."""
    search = {"type": "on-demand", "order": [["dph_total", "asc"]]} | query
    url = "https://console.vast.ai/api/v0/bundles/?q=" + quote(json.dumps(search))
    return answer({"offers": list(offers)}, url)


def ask(change: dict[str, Any]) -> Answer:
    return asked(changed(ASK, change))


# --- an ask ---


def test_an_ask_needs_a_name_a_number_and_a_price() -> None:
    trimmed = {"id": GONE, "gpu_ram": GONE, "is_bid": GONE, "geolocation": GONE, "public_ipaddr": GONE}
    cases = [
        ({}, [("A100 SXM4", 4, "4.01", {"gpu_ram_mib": 81920})]),
        (trimmed | {"num_gpus": "2", "dph_total": "0.70"}, [("A100 SXM4", 2, "0.7", {})]),
        ({"dph_total": 65.01041666666667}, [("A100 SXM4", 4, "65.01041666666667", {"gpu_ram_mib": 81920})]),
        ({"gpu_ram": "?", "resource_type": None}, [("A100 SXM4", 4, "4.01", {})]),
        *each([{"dph_total": None}, {"num_gpus": None}, {"gpu_name": ""}], "missing_field"),
        *each([{"num_gpus": "many"}, {"num_gpus": 0}], "unknown_gpu_count"),
        ({"dph_total": 0}, ["zero_price"]),
        ({"resource_type": "cpu"}, ["changed: no search shows any ask"]),
    ]
    assert not misread("vast", ask, cases, "raw_label gpu_count native_price context")


def test_the_price_is_without_the_disk_which_is_charged_apart() -> None:
    """4.0022 is 4.00 and 8 GB at 0.20 USD per GB and month of 720 hours."""
    priced = {"dph_base": 4.0, "dph_total": 4.0022, "storage_cost": 0.2, "disk_space": 1425.0}
    traffic = {"inet_up_cost": 0.004, "inet_down_cost": 0.003}
    cases = [
        (priced, [("4", None, "0.2", None, None)]),
        (priced | {"dph_base": None, "storage_cost": "free"}, [("4.0022", 8, None, None, None)]),
        (priced | {"min_bid": 2.0, "is_bid": True}, [("2", None, "0.2", None, None)]),
        (priced | {"is_bid": True}, [("4", None, "0.2", None, None)]),
        (priced | traffic, [("4", None, "0.2", "0.004", "0.003")]),
        (priced | {"dph_total": 4.0}, [("4", None, "0.2", None, None)]),
        (priced | {"dph_total": 3.99}, ["conflicting_prices"]),
    ]
    columns = "native_price local_disk_gb storage_usd_per_gb_month egress_usd_per_gb download_usd_per_gb"
    assert not misread("vast", ask, cases, columns)


def test_prices_without_disk_are_believed_the_day_after_prices_with_it() -> None:
    """As on the day on which a record of an earlier version is followed by one of this."""
    day = date(2026, 8, 22)
    asks = [json.loads(file.read_text()) for file in sorted((PAGES / "vast").glob("search_*.json"))]
    totals = [{"offers": [a | {"dph_base": None} for a in answered["offers"]]} for answered in asks]
    before, after = (
        build_offers(source.read([answer(body) for body in bodies], CONFIG), CONFIG).offers
        for bodies in (totals, asks)
    )
    assert sum(o.native_price != n.native_price for o, n in zip(before, after, strict=True)) > 20
    screened = screen(after, History(before, day - timedelta(days=1)), CONFIG, day)
    assert (screened.rejects, screened.failure) == ([], None)


def test_what_an_ask_says_of_its_host() -> None:
    host = {"cpu_ram": 262144, "cpu_cores": 64, "cpu_cores_effective": 32.0}
    usual = ("Sweden, SE", None, None, None, None)
    cases = [
        ({"rentable": True, "rented": False, "geolocation": ", US"}, [("US", True, *usual[2:])]),
        *each([{"rentable": False}, {"rentable": True, "rented": True}], ("Sweden, SE", False, *usual[2:])),
        ({"rented": None}, [("Sweden, SE", True, *usual[2:])]),
        *each([{"geolocation": ""}, {"geolocation": None}], (None, *usual[1:])),
        (host, [(*usual[:2], 128, None, None)]),
        ({"cpu_ram": 262144, "gpu_frac": 0.25}, [(*usual[:2], 64, None, None)]),
        *each([{"cpu_ram": 262144}, host | {"cpu_ram": None}], usual),
        ({"verification": "verified", "reliability": 0.9}, [(*usual[:3], "marketplace_verified", None)]),
        ({"verification": "deverified"}, [(*usual[:3], "marketplace_deverified", "host_deverified")]),
    ]
    assert not misread("vast", ask, cases, "region available ram_gib tier flag_reason")
    both = [{"reliability2": 0.8, "reliability": 0.9}, {"reliability2": None, "reliability": 0.9}]
    assert not misread("vast", ask, [(both[0], [0.8]), (both[1], [0.9])], "reliability")


# --- asks and bids ---


def test_an_ask_is_let_at_its_price_and_at_the_least_bid() -> None:
    flag = "spot_not_below_on_demand"
    cases = [
        ({"min_bid": 2.0}, [(*ON_DEMAND, None), ("spot", "2", None)]),
        *each([{"min_bid": None}, {"min_bid": GONE}], (*ON_DEMAND, None)),
        *[({"min_bid": dear}, [(*ON_DEMAND, None), ("spot", str(dear), flag)]) for dear in (4.01, 4.5)],
        ({"min_bid": 4}, [(*ON_DEMAND, None), ("spot", "4", None)]),
        ({"min_bid": 0}, [(*ON_DEMAND, None), "zero_price"]),
        ({"min_bid": 4.5, "is_bid": True}, [("spot", "4.5", None)]),
    ]
    made = lambda change: asked(changed(BID, change))  # noqa: E731
    assert not misread("vast", made, cases, f"{KIND_AND_PRICE} flag_reason")


def test_an_ask_in_a_search_for_bids_must_be_marked_as_a_bid() -> None:
    cases = [(True, [("spot", "2"), ON_DEMAND]), *each([None, False, 1], ON_DEMAND, "unknown_price_kind")]
    made = lambda is_bid: (asked(BID | {"is_bid": is_bid}, type="bid"), asked(ASK))  # noqa: E731
    assert not misread("vast", made, cases, KIND_AND_PRICE)


def test_an_ask_of_two_searches_counts_once() -> None:
    dearest = asked(ASK, order=[["dph_total", "desc"]])
    cases = [
        ((asked(ASK, ASK | {"id": 2}), dearest), [ON_DEMAND, ON_DEMAND, "duplicate"]),
        ((asked(ASK | {"id": None}, ASK | {"id": None}),), [ON_DEMAND, ON_DEMAND]),
        ((asked(BID | {"is_bid": True}), asked(BID | {"min_bid": 2.5})), [("spot", "2"), ON_DEMAND]),
        ((asked(BID), asked(BID | {"is_bid": True})), [ON_DEMAND, ("spot", "2"), "duplicate"]),
        (({"success": False, "msg": "try again"}, asked(ASK)), [ON_DEMAND, "unreadable_answer"]),
        (({"results": []},), ["changed: the answer has no list under offers"]),
    ]
    assert not misread("vast", lambda answers: answers, cases, KIND_AND_PRICE)


def test_addresses_of_hosts_go_and_every_other_byte_stays() -> None:
    body = b'{"offers": [{"id": 1, "public_ipaddr": "203.0.113.7", "dph_total": 2.6337719298245617}]}'
    assert source.redact(body) == b'{"offers": [{"id": 1, "dph_total": 2.6337719298245617}]}'
    assert source.redact(b'[{"id": 1, "public_ipaddr": null}]') == b'[{"id": 1}]'
    assert source.redact(b'[{"public_ipaddr":"203.0.113.7\\n"}]') == b"[{}]"
    assert source.redact(b'[{"id": 1, "public_ipaddr": "203.0.11') == b'[{"id": 1'
    untouched = page("vast", "search_2.json").encode()
    assert source.redact(untouched) == untouched


# --- searches ---


def names_answer(*names: object) -> Answer:
    return answer({"success": True, "gpu_names": list(names)}, NAMES_URL)


def query_of(request: Request) -> dict[str, Any]:
    return json.loads(parse_qs(urlsplit(request.url).query)["q"][0])


def replied(request: Request, ids: range) -> Answer:
    """A search's answer with an ask for each number."""
    return answer({"offers": [ASK | {"id": at} for at in ids]}, request.url)


FULL, ALMOST = range(64), range(63)


def test_names_are_searched_in_groups() -> None:
    searches = source.next_requests(names_answer(*"HGFEDCBA", "A", 7), CONFIG)
    assert [query_of(search)["gpu_name"] for search in searches] == [
        {"in": list("ABCDEF")},
        {"in": ["G", "H"]},
    ]
    assert query_of(searches[0]) == {
        "gpu_name": {"in": list("ABCDEF")},
        "rentable": {"eq": True},
        "rented": {"eq": False},
        "type": "on-demand",
        "order": [["dph_total", "asc"]],
        "limit": 64,
        "allocated_storage": 8,
    }


def test_without_the_list_the_names_of_the_yaml_are_searched() -> None:
    for body in ("<html>busy</html>", {"gpu_names": []}, {"gpu_names": None}, [], {}):
        broken = answer(body, NAMES_URL)
        searches = source.next_requests(broken, CONFIG)
        assert searches == source.retry_requests(Answer(NAMES_URL, b"", broken.observed_at, "", 404), CONFIG)
        names = [name for search in searches for name in query_of(search)["gpu_name"]["in"]]
        assert names == CONFIG.settings["gpu_names"]
        warnings = [r.text for r in source.read([broken, asked(ASK)], CONFIG) if isinstance(r, ReaderWarning)]
        assert "the list of GPU names cannot be read: only names of the yaml were requested" in warnings
        assert source.retry_requests(replied(searches[0], range(0)), CONFIG) == []
    assert outcome("vast", answer([ASK], NAMES_URL), columns=KIND_AND_PRICE) == [ON_DEMAND]  # a saved file


def test_a_full_reply_is_halved_then_split_by_count_then_by_price() -> None:
    (search,) = source.next_requests(names_answer("A", "B", "C"), CONFIG)
    assert source.next_requests(replied(search, ALMOST), CONFIG) == []
    one, two = source.next_requests(replied(search, FULL), CONFIG)
    assert [query_of(half)["gpu_name"] for half in (one, two)] == [{"in": ["A"]}, {"in": ["B", "C"]}]
    per_count = source.next_requests(replied(one, FULL), CONFIG)
    counts = [*({"eq": count} for count in (1, 2, 4, 8)), {"notin": [1, 2, 4, 8]}]
    assert [query_of(each_search) for each_search in per_count] == [
        query_of(one) | {"num_gpus": count} for count in counts
    ]
    (dear,) = source.next_requests(replied(per_count[0], FULL), CONFIG)
    assert query_of(dear) == query_of(per_count[0]) | {"order": [["dph_total", "desc"]]}
    assert source.next_requests(replied(dear, FULL), CONFIG) == []


def test_asks_that_no_search_shows_are_a_reject() -> None:
    (search,) = source.next_requests(names_answer("A"), CONFIG)
    count = source.next_requests(replied(search, FULL), CONFIG)[0]
    (dear,) = source.next_requests(replied(count, FULL), CONFIG)
    unnamed = answer({"offers": [ASK | {"id": [at]} for at in FULL]}, dear.url)
    cases = [
        (replied(dear, range(100, 164)), [ON_DEMAND] * 128 + ["unread_page"]),
        (unnamed, [ON_DEMAND] * 128 + ["unread_page"]),
        (replied(dear, range(63, 127)), [ON_DEMAND] * 127 + ["duplicate"]),
        (replied(dear, range(100, 163)), [ON_DEMAND] * 127),
        (replied(dear, range(5)), [ON_DEMAND] * 64 + ["duplicate"] * 5),
    ]
    assert not misread("vast", lambda dearest: (replied(count, FULL), dearest), cases, KIND_AND_PRICE)
