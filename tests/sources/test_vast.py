"""Vast.ai's asks: which GPU, how many, on demand or by bid, and no host's address kept."""

import json
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import Answer, ReaderWarning, Request
from pipeline.sources import vast as source
from tests.sources.edited_pages import changed, each, misread, outcome
from tests.sources.helpers import answer, page

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


# --- asks and bids ---


def test_an_ask_in_a_search_for_bids_must_be_marked_as_a_bid() -> None:
    cases = [(True, [("spot", "2"), ON_DEMAND]), *each([None, False, 1], ON_DEMAND, "unknown_price_kind")]
    made = lambda is_bid: (asked(BID | {"is_bid": is_bid}, type="bid"), asked(ASK))  # noqa: E731
    assert not misread("vast", made, cases, KIND_AND_PRICE)


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
    for body in ("<html>busy</html>", {"gpu_names": []}, [], {}):
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
        (replied(dear, range(1, 6)), [ON_DEMAND] * 64 + ["duplicate"] * 5),
    ]
    assert not misread("vast", lambda dearest: (replied(count, FULL), dearest), cases, KIND_AND_PRICE)
