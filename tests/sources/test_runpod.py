"""RunPod: a price for each tier and term, placeholders, slices, and queries that the API refuses."""

import json
import re
from dataclasses import replace
from typing import Any

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import Answer
from pipeline.sources.runpod import next_requests, retry_requests
from tests.sources.edited_pages import outcome
from tests.sources.helpers import answer

CONFIG = source_config("runpod")
FULL, SHORTEST = CONFIG.requests[0].json_body["query"], CONFIG.settings["minimal_query"]
GPU = {"id": "NVIDIA H100 80GB HBM3", "displayName": "H100 SXM", "memoryInGb": 80}
SECURE = GPU | {"secureCloud": True, "securePrice": 3.5}


def test_every_kind_of_price() -> None:
    prices = {
        "securePrice": (3.29, "secure", "on_demand", None, True),
        "communityPrice": ("2.69", "community", "on_demand", None, True),
        "secureSpotPrice": (1, "secure", "spot", None, None),
        "communitySpotPrice": (0.9, "community", "spot", None, None),
        "oneWeekPrice": (3.2, "secure", "reserved", 7, None),
        "oneMonthPrice": (3.1, "secure", "reserved", 30, None),
        "threeMonthPrice": (3, "secure", "reserved", 90, None),
        "sixMonthPrice": (2.86, "secure", "reserved", 180, None),
        "clusterPrice": (3.69, "cluster", "on_demand", None, None),
    }
    gpu = GPU | {"secureCloud": True, "communityCloud": True, "maxGpuCount": 8, "somethingNew": [1]}
    gpu |= {"lowestPrice": {"stockStatus": "Low"}, "community": {"stockStatus": "high"}}
    gpu |= {name: price for name, (price, *_) in prices.items()}
    found = outcome("runpod", [gpu], columns="native_price tier price_kind term_days available")
    assert found == [(str(price), *columns) for price, *columns in prices.values()]
    assert outcome("runpod", [gpu], columns="gpu_count min_gpu_count")[-1] == (16, 16)


def test_a_plan_at_the_on_demand_price_is_not_a_discount() -> None:
    """Seen on 2026-09-27. It casts no doubt on the on-demand price, which stays in the rankings."""
    prices = {"communityCloud": True, "securePrice": 2.99, "communityPrice": 2.39}
    plans = {"oneMonthPrice": "2.990", "threeMonthPrice": 2.98, "sixMonthPrice": 2.39}
    found = outcome("runpod", [SECURE | prices | plans], columns="term_days flag_reason")
    assert found == [(None, None)] * 2 + [(30, "reserved_at_on_demand_price"), (90, None), (180, None)]


def test_a_cluster_is_sold_whole() -> None:
    cluster = SECURE | {"securePrice": 0, "clusterPrice": 3, "maxGpuCount": 8, "maxGpuCountSecureCloud": 8}
    assert outcome("runpod", [cluster], columns="gpu_count gpu_counts") == [(16, None), "not_offered"]
    assert outcome("runpod", [GPU | {"clusterPrice": 3}]) == ["unknown_gpu_count"]


def test_a_gpu_type_without_an_id_or_a_price_is_a_reject_unless_all_are() -> None:
    priced = (GPU["id"], "3.5")
    for other in ({"securePrice": 1}, GPU | {"price": 3}):
        assert outcome("runpod", [SECURE, other]) == [priced, "missing_field"]
        assert outcome("runpod", [other])[0].startswith("changed: no GPU type of RunPod has an id and any")
    assert outcome("runpod", {"gpuTypes": [SECURE]}) == [priced]
    for body in ({"data": {"gpuTypes": None}}, {"data": {"gpus": []}}):
        assert outcome("runpod", body) == ["changed: the answer has no list under gpuTypes"]
    assert outcome("runpod", refusal("busy")) == [
        "changed: RunPod answered no GPU types: [{'message': 'busy'}]"
    ]


# --- refused queries ---


def refusal(*messages: str, query: str = FULL) -> Answer:
    """An answer that refuses a query."""
    errors = {"errors": [{"message": text} for text in messages]}
    return replace(answer(errors), status=400, request_body=json.dumps({"query": query}).encode())


def asked_instead(refused: Answer) -> str | None:
    following = retry_requests(refused, CONFIG)
    assert following == next_requests(refused, CONFIG)
    return json.loads(following[0].body or b"")["query"] if following else None


def test_a_query_is_asked_again_without_the_fields_that_it_was_refused_for() -> None:
    cases: list[tuple[list[str], set[str]]] = [
        (["clusterPrice"], {"clusterPrice"}),
        (["secureCloud", "minPodGpuCount"], {"minPodGpuCount"}),  # also the name of an argument
        (["stockStatus"], {"stockStatus"}),
        (
            ["lowestPrice"],
            {"lowestPrice", "community", "input", "gpuCount", "1", "true", "false", "stockStatus"}
            | {"minimumBidPrice", "uninterruptablePrice"},
        ),
    ]
    for unknown, lost in cases:
        messages = [f'Cannot query field "{name}" on type "GpuType".' for name in unknown]
        shorter = asked_instead(refusal(*messages)) or ""
        assert set(re.findall(r"\w+", FULL)) - set(re.findall(r"\w+", shorter)) == lost
        assert not any(re.search(rf"\b{name}\b(?!:)", shorter) for name in unknown)
        assert [shorter.count(left) for left in "{("] == [shorter.count(right) for right in "})"]


def test_a_query_refused_for_another_reason_is_the_shortest() -> None:
    of_an_argument = 'Field "secureCloud" is not defined by type "GpuLowestPriceInput".'
    for message in ("Busy.", 'Cannot query field "securePrice" on type "GpuType".', of_an_argument):
        assert asked_instead(refusal(message)) == SHORTEST
    assert asked_instead(refusal("Busy.", query=SHORTEST)) is None
    assert asked_instead(replace(refusal("Busy."), request_body=b"{")) == SHORTEST
    (again,) = retry_requests(refusal("Busy."), CONFIG)
    assert (again.url, again.method) == (CONFIG.requests[0].url, "POST")
    assert again.headers == {"content-type": "application/json"}


def test_an_answer_with_prices_or_without_errors_is_not_asked_for_again() -> None:
    mixed: dict[str, Any] = {"data": {"gpuTypes": [SECURE]}, "errors": [{"message": "stock: timeout"}]}
    for body in (mixed, [SECURE], "<html>", "[]", '{"message": "Forbidden"}', ""):
        assert next_requests(answer(body), CONFIG) == []
    assert outcome("runpod", refusal("busy"), mixed) == [(GPU["id"], "3.5")]
