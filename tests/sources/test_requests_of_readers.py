"""What readers ask for with and without a key, and which page follows another."""

from dataclasses import replace
from typing import Any

from pipeline.capture.visit import first_requests
from pipeline.catalog.source_config import source_config
from pipeline.sources import source_module
from tests.sources.helpers import answer, following, page

LINODE = "https://api.linode.com/v4/linode/types?page_size=500"
PRIME = "https://api.primeintellect.ai/api/v1/availability/gpus?page=1&page_size=100"
SCALEWAY = "https://api.scaleway.com/instance/v1/zones/fr-par-2/products/servers?per_page=100&page={}"
OFFERS: dict[str, Any] = {"items": [{}], "totalCount": 150}
VULTR = "https://api.vultr.com/v2/plans?type=all&per_page=500"


def test_a_key_is_a_header_of_the_requests_that_it_adds() -> None:
    keyed = {
        "gcp": ("GCP_API_KEY", {"X-Goog-Api-Key": "${GCP_API_KEY}"}, False),
        "hyperstack": ("HYPERSTACK_API_KEY", {"api_key": "${HYPERSTACK_API_KEY}"}, True),
        "lambda": ("LAMBDA_API_KEY", {"authorization": "Bearer ${LAMBDA_API_KEY}"}, False),
        "vast": ("VAST_API_KEY", {"Authorization": "Bearer ${VAST_API_KEY}"}, False),
    }
    for name, (variable, headers, optional) in keyed.items():
        config, module = source_config(name), source_module(name)
        without = first_requests(config, module, {})
        *others, asked = first_requests(config, module, {variable: "secret-of-the-test"})
        assert (asked.headers, asked.optional) == (headers, optional), name
        assert "secret" not in repr([*others, asked])
        assert all(variable not in repr(request) for request in without)
        asked_anyway = others if name != "vast" else [asked]
        assert [request.url for request in without] == [request.url for request in asked_anyway]


def test_the_page_that_follows_another() -> None:
    servers: dict[str, Any] = {"servers": {str(at): {} for at in range(100)}}
    hundred = answer(servers, SCALEWAY.format(1))
    counted = [replace(hundred, headers={"x-total-count": str(count)}) for count in (100, 101)]
    cursor = {"plans": [{}], "meta": {"links": {"next": "bmV4dA==", "prev": ""}}}
    second = f"{VULTR}&cursor=bmV4dA%3D%3D"
    pages = [
        ("gcp", answer({"skus": [], "nextPageToken": ""}, "https://a.example/skus"), None),
        ("linode", answer({"data": [{}], "pages": 2}, LINODE), f"{LINODE}&page=2"),
        ("primeintellect", answer(OFFERS, PRIME), PRIME.replace("page=1", "page=2")),
        ("primeintellect", answer(OFFERS, PRIME.replace("page=1", "page=2")), None),
        ("scaleway", counted[0], None),
        ("scaleway", counted[1], SCALEWAY.format(2)),
        ("vultr", answer(cursor, VULTR), second),
        ("vultr", answer(cursor, second), second),
        ("vultr", answer(page("vultr", "plans_vcg.json"), VULTR), None),
    ]
    assert [source_config(name).requests[0].url for name in ("linode", "vultr")] == [LINODE, VULTR]
    wrong = [(name, shown.url, url) for name, shown, url in pages if following(name, shown) != url]
    assert wrong == []
