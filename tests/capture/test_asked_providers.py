"""What the sources ask, of a server on loopback that answers as their evidence says."""

import json
from urllib.parse import parse_qs, unquote, urlsplit

from pipeline.catalog.source_config import source_config
from pipeline.contracts.capture import Capture
from pipeline.sources import azure, scaleway, thundercompute, vast, verda, voltagepark

from .conftest import Capturing
from .site import Asked, Reply, Site

JSON = {"content-type": "application/json; charset=utf-8"}


def says(body: object, status: int = 200) -> Reply:
    return Reply(status, json.dumps(body).encode(), JSON)


PAGE = Reply(200, b"<!doctype html><html><body>Prices</body></html>", {"content-type": "text/html"})


def outcomes(capture: Capture) -> list[tuple[str, str]]:
    """The path of each request and how it ended."""
    return [(entry.url.split("//")[1].partition("/")[2], str(entry.outcome)) for entry in capture.entries]


def test_azure_is_asked_by_family_and_goes_on_where_a_full_page_has_no_link(
    site: Site, capture: Capturing
) -> None:
    full = [{"armSkuName": "Standard_NC24ads_A100_v4"}] * 1000
    link = "https://prices.azure.com:443/api/retail/prices?$filter=more&$skip=2"
    pages = {
        ("Standard_NC", 0): {"Items": full, "NextPageLink": ""},
        ("Standard_NC", 1000): {"Items": full, "NextPageLink": None},
        ("Standard_NC", 2000): {"Items": [], "NextPageLink": None},
        ("Standard_ND", 0): {"Items": full[:2], "NextPageLink": link},
        ("more", 2): {"Items": full[:1], "NextPageLink": None},
        ("Standard_NV", 0): {"Items": full[:999], "NextPageLink": ""},
        ("Standard_NG", 0): {"Items": full[:1], "NextPageLink": ""},
    }
    asked: list[tuple[str, int]] = []

    def answer(request: Asked) -> Reply:
        query = unquote(request.target)
        asked.append(
            next(key for key in sorted(pages, reverse=True) if key[0] in query and f"skip={key[1]}" in query)
            if "$skip" in query
            else next(key for key in pages if key[0] in query and not key[1])
        )
        assert "more" in query or "api-version=2023-01-01-preview&currencyCode='USD'&$filter=" in query
        return says(pages[asked[-1]])

    site.route("prices.azure.com", "/api/retail/prices", answer)
    site.route("prices.azure.com:443", "/api/retail/prices", answer)
    assert capture(source_config("azure"), azure).status == "captured"
    assert asked == list(pages)


def test_azures_own_header_says_how_long_to_wait(site: Site, capture: Capturing) -> None:
    busy = Reply(429, b"{}", {**JSON, "x-ms-ratelimit-retailprices-retry-after": "1"})
    site.say("prices.azure.com", "/api/retail/prices", busy, says({"Items": []}))
    assert capture(source_config("azure"), azure).status == "captured"
    first, second = site.pages_asked()[:2]
    assert second.at - first.at >= 1


def test_verda_is_complete_without_the_availability_that_needs_a_key(site: Site, capture: Capturing) -> None:
    site.say("api.verda.com", "/v1/instance-types", says([{}]))
    site.say("api.verda.com", "/v1/instance-availability", says({"code": "unauthorized_request"}, 401))
    site.say("api.verda.com", "/v1/long-term/periods/instances", says([{}]))
    site.say("verda.com", "/pricing", PAGE)
    captured = capture(source_config("verda"), verda)
    assert captured.status == "captured"
    assert sorted(outcomes(captured)) == [
        ("pricing", "ok"),
        ("v1/instance-availability", "http_4xx"),
        ("v1/instance-types", "ok"),
        ("v1/long-term/periods/instances", "ok"),
    ]


def test_verda_is_asked_at_its_earlier_host_where_the_new_one_fails(site: Site, capture: Capturing) -> None:
    site.say("api.datacrunch.io", "/v1/instance-types", says([{}]))
    site.say("verda.com", "/pricing", PAGE)
    captured = capture(source_config("verda"), verda)
    assert captured.status == "captured"
    hosts = [entry.url.split("/")[2] for entry in captured.entries if "instance-types" in entry.url]
    assert hosts == ["api.verda.com", "api.datacrunch.io"]
    site.say("api.datacrunch.io", "/v1/instance-types", says({}, 404))
    assert capture(source_config("verda"), verda).status == "partial"


def test_verdas_periods_are_asked_at_their_earlier_address_where_the_new_one_fails(
    site: Site, capture: Capturing
) -> None:
    site.say("api.verda.com", "/v1/instance-types", says([{}]))
    site.say("api.verda.com", "/v1/long-term/periods/instances", says({}, 404))
    site.say("api.verda.com", "/v1/long-term/periods", says([{}]))
    site.say("verda.com", "/pricing", PAGE)
    captured = capture(source_config("verda"), verda)
    assert captured.status == "captured"
    assert ("v1/long-term/periods", "ok") in outcomes(captured)


THUNDER = "api.thundercompute.com:8443"


def test_thunder_computes_api_is_asked_at_its_port(site: Site, capture: Capturing) -> None:
    for name in ("pricing", "specs", "status"):
        site.say(THUNDER, f"/v2/{name}", says({}))
    captured = capture(source_config("thundercompute"), thundercompute)
    assert captured.status == "captured"
    assert [entry.url for entry in captured.entries] == [
        f"https://{THUNDER}/v2/{name}" for name in ("pricing", "specs", "status")
    ]


def test_thunder_computes_page_is_asked_where_the_api_wants_a_key(site: Site, capture: Capturing) -> None:
    for name in ("pricing", "specs", "status"):
        site.say(THUNDER, f"/v2/{name}", says({"error": "unauthorized"}, 401))
    site.say("www.thundercompute.com", "/pricing", PAGE)
    captured = capture(source_config("thundercompute"), thundercompute)
    assert captured.status == "captured"
    assert ("pricing", "ok") in outcomes(captured)
    assert len(site.pages_asked("www.thundercompute.com")) == 1
    site.say("www.thundercompute.com", "/pricing", Reply(403, b"no"))
    assert capture(source_config("thundercompute"), thundercompute).status == "failed"


def test_vast_is_searched_for_the_names_that_it_lists_with_the_users_key(
    site: Site, capture: Capturing
) -> None:
    searched: list[list[str]] = []

    def search(request: Asked) -> Reply:
        query = json.loads(parse_qs(urlsplit(request.target).query)["q"][0])
        searched.append(query["gpu_name"]["in"])
        full = len(searched[-1]) > 1 and "A" in searched[-1]
        return says({"offers": [{"id": at} for at in range(64 if full else 1)]})

    site.say("console.vast.ai", "/api/v0/gpu_names/unique/", says({"gpu_names": list("ABCDEFGH")}))
    site.route("console.vast.ai", "/api/v0/bundles/", search)
    captured = capture(source_config("vast"), vast, {"VAST_API_KEY": "s3cret"})
    assert captured.status == "captured"
    assert searched == [list("ABCDEF"), list("ABC"), ["A"], ["B", "C"], list("DEF"), ["G", "H"]]
    assert {asked.headers.get("authorization") for asked in site.pages_asked()} == {"Bearer s3cret"}
    assert "s3cret" not in str(captured.entries)


def test_vast_is_searched_for_known_names_where_the_list_wants_a_key(site: Site, capture: Capturing) -> None:
    site.say("console.vast.ai", "/api/v0/gpu_names/unique/", says({"error": "unauthorized"}, 401))
    site.say("console.vast.ai", "/api/v0/bundles/", says({"offers": []}))
    captured = capture(source_config("vast"), vast)
    assert captured.status == "captured"
    searches = [asked for asked in site.pages_asked() if "/bundles/" in asked.target]
    known = source_config("vast").settings["gpu_names"]
    assert all(any(name in unquote(search.target) for search in searches) for name in known)
    assert not any("authorization" in asked.headers for asked in site.pages_asked())


def test_voltage_park_is_complete_without_its_presets(site: Site, capture: Capturing) -> None:
    nodes = "/api/v1/bare-metal/locations"
    site.say("cloud-api.voltagepark.com", nodes, says({"results": []}))
    site.say("cloud-api.voltagepark.com", "/api/v1/instant-deploy-presets/", says({"detail": "no"}, 401))
    captured = capture(source_config("voltagepark"), voltagepark)
    assert captured.status == "captured"
    site.say("cloud-api.voltagepark.com", nodes, says({"detail": "no"}, 403))
    assert capture(source_config("voltagepark"), voltagepark).status == "failed"


def test_scaleway_is_complete_without_what_is_available(site: Site, capture: Capturing) -> None:
    config = source_config("scaleway")
    for facts in config.requests:
        path = urlsplit(facts.url).path
        is_optional = path.endswith("/availability")
        site.say(facts.host, path, says({"message": "no"}, 403) if is_optional else says({"servers": {}}))
    captured = capture(config, scaleway)
    assert captured.status == "captured"
    assert sorted({outcome for _, outcome in outcomes(captured)}) == ["http_403", "ok"]
