"""RunPod: queries that the API refuses."""

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
FULL, (MIDDLE, SHORTEST) = CONFIG.requests[0].json_body["query"], CONFIG.settings["shorter_queries"]
SECURE = {"id": "NVIDIA L4", "secureCloud": True, "securePrice": 3.5}


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


def test_a_query_refused_for_another_reason_is_followed_by_shorter_ones() -> None:
    of_an_argument = 'Field "secureCloud" is not defined by type "GpuLowestPriceInput".'
    for message in ("Busy.", 'Cannot query field "securePrice" on type "GpuType".', of_an_argument):
        refused = [FULL, MIDDLE, MIDDLE.replace(" oneWeekPrice", ""), SHORTEST]
        following = [asked_instead(refusal(message, query=query)) for query in refused]
        assert following == [MIDDLE, SHORTEST, SHORTEST, None]
    assert next_requests(replace(refusal("Forbidden"), url=CONFIG.requests[1].url), CONFIG) == []
    assert asked_instead(replace(refusal("Busy."), request_body=b"{")) == SHORTEST
    (again,) = retry_requests(refusal("Busy."), CONFIG)
    assert (again.url, again.method) == (CONFIG.requests[0].url, "POST")
    assert again.headers == {"content-type": "application/json"}


def test_an_answer_with_prices_or_without_errors_is_not_asked_for_again() -> None:
    mixed: dict[str, Any] = {"data": {"gpuTypes": [SECURE]}, "errors": [{"message": "stock: timeout"}]}
    for body in (mixed, [SECURE], "<html>", "[]", '{"message": "Forbidden"}', ""):
        assert next_requests(answer(body), CONFIG) == []
    assert outcome("runpod", refusal("busy"), mixed) == [("NVIDIA L4", "3.5")]
