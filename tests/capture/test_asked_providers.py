"""Sources of the catalogue against hosts that answer as real ones were seen to, or as their evidence says:
refusals, other content types, lists that are gone. Each rule of one source's reader is in tests/sources."""

import json
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.visit import first_requests
from pipeline.catalog.source_config import configs, source_config
from pipeline.contracts.capture import Capture
from pipeline.contracts.outcome import Outcome
from pipeline.home.paths import Home
from pipeline.refresh.ingest import record_day
from pipeline.sources import source_module
from tests.conftest import PAGES

from .conftest import DAY, Capturing, codes, stored_bytes
from .site import Asked, Reply, Site

JSON = {"content-type": "application/json; charset=utf-8"}
PAGE = Reply(200, b"<!doctype html><html><body>Prices</body></html>", {"content-type": "text/html"})

Ask = Callable[..., Capture]
Visit = Callable[..., tuple[Capture, Outcome]]


@pytest.fixture
def ask(capture: Capturing) -> Ask:
    """Capture a source of the catalogue from ``site``."""

    def run(name: str, environment: dict[str, str] | None = None) -> Capture:
        config = source_config(name).model_copy(update={"spacing_seconds": 0})
        return capture(config, source_module(name), environment, retries=0)

    return run


@pytest.fixture
def visit(ask: Ask, archive: Archive) -> Visit:
    """Capture a source of the catalogue from ``site`` and read it into the record."""

    def run(name: str, environment: dict[str, str] | None = None) -> tuple[Capture, Outcome]:
        captured = ask(name, environment)
        assert archive.captures(name)[-1] == captured
        return captured, record_day(source_config(name), DAY, [captured], Home(archive.root.parent))

    return run


def page(source: str, name: str) -> bytes:
    return (PAGES / source / name).read_bytes()


def says(body: object, status: int = 200) -> Reply:
    return Reply(status, json.dumps(body).encode(), JSON)


def outcomes(captured: Capture) -> list[tuple[str, str]]:
    """The path of each request and how it ended."""
    return [(entry.url.split("//")[1].partition("/")[2], str(entry.outcome)) for entry in captured.entries]


def test_runpod_refuses_a_field_with_status_400(visit: Visit, site: Site, archive: Archive) -> None:
    """runpod/runpod-plugins-official#56, 2026-08-28. Everything but that field is read, and the key goes with
    every query and into no file."""
    refusal = b'{"errors": [{"message": "Cannot query field \\"clusterPrice\\" on type \\"GpuType\\"."}]}'

    def graphql(asked: Asked) -> Reply:
        if b"clusterPrice" in asked.body:
            return Reply(400, refusal.replace(b"GpuType", b"rpa_secret_key"), JSON)
        return Reply(200, page("runpod", "gpu_types.json"), JSON)

    site.route("api.runpod.io", "/graphql", graphql)
    captured, outcome = visit("runpod", {"RUNPOD_API_KEY": "rpa_secret_key"})
    assert codes(captured) == ["http_4xx", "ok"]
    first, second = site.pages_asked()
    assert b"sixMonthPrice clusterPrice lowestPrice" in first.body
    assert b"sixMonthPrice lowestPrice" in second.body
    assert first.headers["authorization"] == second.headers["authorization"] == "Bearer rpa_secret_key"
    assert (captured.status, outcome.accepted) == ("captured", True)
    assert outcome.rows > 40
    (warning,) = [text for text in outcome.warnings if "made up for by others" in text]
    assert "http_4xx" in warning
    assert "(https://api.runpod.io/graphql)" in warning
    assert refusal.replace(b"GpuType", b"${RUNPOD_API_KEY}") in stored_bytes(archive)
    assert b"rpa_secret_key" not in stored_bytes(archive)
    visit("runpod")
    assert all("authorization" not in asked.headers for asked in site.pages_asked()[2:])


CETOOLS, ORACLE = "apexapps.oracle.com", "www.oracle.com"
ESTIMATOR = "/a/ocom/docs/cloudestimator2/data/"
PRICE_LIST = "/a/ocom/docs/pricing/cloud-price-list.json"


def oracle_prices() -> dict[str, bytes]:
    """The sample page's prices in the shapes of the further lists."""
    items = json.loads(page("oci", "products.json"))["items"]
    parts = [
        {"partNumber": i["partNumber"], "pricetype": "HOUR", "currencyCodeLocalizations": local}
        for i in items
        if (local := i["currencyCodeLocalizations"])
    ]
    by_part = {
        part["partNumber"]: {
            local["currencyCode"]: price["value"]
            for local in part["currencyCodeLocalizations"]
            for price in local["prices"]
        }
        for part in parts
    }
    return {
        f"{ESTIMATOR}products.json": json.dumps({"items": parts}).encode(),
        PRICE_LIST: json.dumps({"items": by_part}).encode(),
    }


def oracle_site(site: Site, *paths: str) -> None:
    """Oracle with a firewall in front of the products API, and only these further lists."""
    site.say(CETOOLS, "/pls/apex/cetools/api/v1/products/", Reply(403, b"<html>Access Denied</html>"))
    site.say(ORACLE, "/robots.txt", Reply(200, b"User-agent: *\nDisallow: /search\n"))
    for path in paths:
        site.say(ORACLE, path, Reply(200, oracle_prices()[path], JSON))
    site.say(ORACLE, f"{ESTIMATOR}shapes.json", Reply(200, page("oci", "shapes.json"), JSON))


@pytest.mark.parametrize("path", [f"{ESTIMATOR}products.json", PRICE_LIST])
def test_oracles_products_api_answers_403(visit: Visit, site: Site, path: str) -> None:
    """A tracker's notes of 2026-09: the whole host is behind a firewall."""
    oracle_site(site, path)
    captured, outcome = visit("oci")
    assert (captured.status, outcome.accepted, outcome.error) == ("captured", True, None)
    assert captured.entries[-1].url.endswith("shapes.json")
    (refused,) = [text for text in outcome.warnings if "made up for by others" in text]
    assert "http_403" in refused
    assert "(https://apexapps.oracle" in refused
    assert any("names no units" in text for text in outcome.warnings)


def test_oracle_without_any_list_has_failed(visit: Visit, site: Site) -> None:
    """Before, it was "no offers"; the first error is that of the list that is asked first."""
    oracle_site(site)
    captured, outcome = visit("oci")
    assert (captured.status, outcome.accepted) == ("partial", False)
    assert str(outcome.error).startswith(f"http_403: the host forbids the request (403): https://{CETOOLS}")
    assert "(and 2 more requests failed)" in str(outcome.error)


AWS_LISTS = "/pricing/2.0/meteredUnitMaps/ec2/USD/current/ec2-ondemand-without-sec-sel/"
SPOT_HOST = "website.spot.ec2.aws.a2z.com"


def aws_site(site: Site, *regions: str, spot: Reply) -> None:
    """AWS with these regions' lists (page by region name) and spot prices; S3 answers 403 for all else."""
    pages = {"US East (N. Virginia)": "us-east-1", "Europe (Stockholm)": "eu-north-1"}
    for name in AWS_REGIONS:
        site.say("b0.p.awsstatic.com", f"{AWS_LISTS}{name}/Linux/index.json", Reply(403, b"<Error/>"))
    for name in regions:
        body = page("aws", f"on_demand_{pages[name]}.json")
        site.say("b0.p.awsstatic.com", f"{AWS_LISTS}{name}/Linux/index.json", Reply(200, body, JSON))
    site.say(SPOT_HOST, "/spot.json", spot)


AWS_REGIONS = list(source_config("aws").settings["regions"])


def test_awss_spot_prices_come_as_javascript(visit: Visit, site: Site) -> None:
    """alexei-led/spotinfo, internal/spot/data.go: plain JSON, which may be wrapped again."""
    body = b"callback(%s);" % page("aws", "spot.json")
    aws_site(
        site, "US East (N. Virginia)", spot=Reply(200, body, {"content-type": "application/x-javascript"})
    )
    captured, outcome = visit("aws")
    assert (captured.status, outcome.accepted, outcome.error) == ("captured", True, None)
    assert captured.entries[-1].usable
    assert not any("spot.json" in text for text in outcome.warnings)
    (missing,) = [text for text in outcome.warnings if "optional requests failed" in text]
    assert missing.startswith("41 of 42 optional requests failed, the first: http_4")
    assert "(https://b0.p.awsstatic.com/" in missing


def test_a_region_of_aws_is_asked_under_its_other_name(visit: Visit, site: Site) -> None:
    aws_site(site, "US East (N. Virginia)", "Europe (Stockholm)", spot=Reply(403))
    captured, outcome = visit("aws")
    assert (captured.status, outcome.accepted) == ("captured", True)
    (instead,) = [text for text in outcome.warnings if "made up for by others" in text]
    assert "http_403" in instead
    assert instead.endswith("EU%20(Stockholm)/Linux/index.json)")


def test_aws_without_its_largest_region_is_partial(visit: Visit, site: Site) -> None:
    aws_site(site, "Europe (Stockholm)", spot=Reply(200, page("aws", "spot.json"), JSON))
    captured, _ = visit("aws")
    assert captured.status == "partial"
    assert "US%20East%20(N.%20Virginia)" in str(captured.error)


def test_verdas_availability_needs_a_login(visit: Visit, site: Site) -> None:
    """Reading notes of about 2026-09: 401 without a key, for the availability only."""
    config = source_config("verda")
    for entry in json.loads(page("verda", "index.json")):
        parts = urlsplit(entry["url"])
        reply = Reply(200, page("verda", entry["file"]), entry["headers"])
        if parts.path.endswith("/instance-availability"):
            reply = Reply(
                401, b'{"code": "unauthorized_request", "message": "Access token is missing"}', JSON
            )
        site.say(parts.netloc, parts.path, reply)
    captured, outcome = visit("verda")
    assert any(facts.optional for facts in config.requests)
    assert (captured.status, outcome.accepted, outcome.error) == ("captured", True, None)
    (warning,) = [text for text in outcome.warnings if "optional requests failed" in text]
    assert "http_4xx" in warning
    assert warning.endswith("/v1/instance-availability)")


def test_verdas_page_alone_is_enough(visit: Visit, site: Site) -> None:
    """The API refuses under its new name, and the older host has nothing there any more."""
    (facts,) = [facts for facts in source_config("verda").requests if facts.host == "verda.com"]
    index = json.loads(page("verda", "index.json"))
    (entry,) = [entry for entry in index if entry["url"] == facts.url]
    site.say("api.verda.com", "/v1/instance-types", Reply(403, b'{"code": "forbidden"}', JSON))
    site.say("verda.com", "/pricing", Reply(200, page("verda", entry["file"]), entry["headers"]))
    captured, outcome = visit("verda")
    assert "api.datacrunch.io" in {asked.host for asked in site.pages_asked()}
    assert (captured.status, outcome.accepted, outcome.rows) == ("partial", True, 14)


def test_verda_is_asked_at_its_earlier_host_where_the_new_one_fails(site: Site, ask: Ask) -> None:
    site.say("api.datacrunch.io", "/v1/instance-types", says([{}]))
    site.say("verda.com", "/pricing", PAGE)
    captured = ask("verda")
    assert captured.status == "captured"
    hosts = [entry.url.split("/")[2] for entry in captured.entries if "instance-types" in entry.url]
    assert hosts == ["api.verda.com", "api.datacrunch.io"]
    site.say("api.datacrunch.io", "/v1/instance-types", says({}, 404))
    assert ask("verda").status == "partial"


def test_verdas_periods_are_asked_at_their_earlier_address_where_the_new_one_fails(
    site: Site, ask: Ask
) -> None:
    site.say("api.verda.com", "/v1/instance-types", says([{}]))
    site.say("api.verda.com", "/v1/long-term/periods/instances", says({}, 404))
    site.say("api.verda.com", "/v1/long-term/periods", says([{}]))
    site.say("verda.com", "/pricing", PAGE)
    captured = ask("verda")
    assert captured.status == "captured"
    assert ("v1/long-term/periods", "ok") in outcomes(captured)


def test_jarvislabs_page_is_asked_where_the_api_refuses_the_key(visit: Visit, site: Site) -> None:
    (entry,) = json.loads(page("jarvislabs", "index.json"))
    api = "backendn.jarvislabs.net"
    site.say("jarvislabs.ai", "/pricing", Reply(200, page("jarvislabs", entry["file"]), entry["headers"]))
    without_key = visit("jarvislabs")[1]
    for status in (401, 403, 503):
        site.say(api, "/misc/server_meta", Reply(status, b'{"detail": "Not authenticated"}', JSON))
        captured, outcome = visit("jarvislabs", {"JL_API_KEY": "expired-0123456789"})
        assert (captured.status, outcome.accepted, outcome.rows) == ("captured", True, without_key.rows)
        assert any(f"{api}/misc/server_meta" in text for text in outcome.warnings)
    assert all("authorization" not in asked.headers for asked in site.pages_asked("jarvislabs.ai"))


def test_a_key_that_turns_a_source_on_goes_with_each_of_its_requests() -> None:
    """Its terms forbid automated reading without one."""
    checked = 0
    for name, config in configs().items():
        if config.terms.automated == "forbidden":
            for key in config.key_variables:
                for request in first_requests(config, source_module(name), {key: f"${{{key}}}"}):
                    sent = "".join((request.url, *request.headers.values(), str(request.body)))
                    assert f"${{{key}}}" in sent, name
                    checked += 1
    assert checked


THUNDER = "api.thundercompute.com:8443"


def test_thunder_computes_api_is_asked_at_its_port(site: Site, ask: Ask) -> None:
    for name in ("pricing", "specs", "status"):
        site.say(THUNDER, f"/v2/{name}", says({}))
    captured = ask("thundercompute")
    assert captured.status == "captured"
    assert [entry.url for entry in captured.entries] == [
        f"https://{THUNDER}/v2/{name}" for name in ("pricing", "specs", "status")
    ]


def test_thunder_computes_page_is_asked_where_the_api_wants_a_key(site: Site, ask: Ask) -> None:
    for name in ("pricing", "specs", "status"):
        site.say(THUNDER, f"/v2/{name}", says({"error": "unauthorized"}, 401))
    site.say("www.thundercompute.com", "/pricing", PAGE)
    captured = ask("thundercompute")
    assert captured.status == "captured"
    assert ("pricing", "ok") in outcomes(captured)
    assert len(site.pages_asked("www.thundercompute.com")) == 1
    site.say("www.thundercompute.com", "/pricing", Reply(403, b"no"))
    assert ask("thundercompute").status == "failed"


def test_vast_is_searched_for_the_names_that_it_lists_with_the_users_key(site: Site, ask: Ask) -> None:
    searched: list[list[str]] = []

    def search(request: Asked) -> Reply:
        query = json.loads(parse_qs(urlsplit(request.target).query)["q"][0])
        searched.append(query["gpu_name"]["in"])
        full = len(searched[-1]) > 1 and "A" in searched[-1]
        return says({"offers": [{"id": at} for at in range(64 if full else 1)]})

    site.say("console.vast.ai", "/api/v0/gpu_names/unique/", says({"gpu_names": list("ABCDEFGH")}))
    site.route("console.vast.ai", "/api/v0/bundles/", search)
    captured = ask("vast", {"VAST_API_KEY": "s3cret"})
    assert captured.status == "captured"
    assert searched == [list("ABCDEF"), list("ABC"), ["A"], ["B", "C"], list("DEF"), ["G", "H"]]
    assert {asked.headers.get("authorization") for asked in site.pages_asked()} == {"Bearer s3cret"}
    assert "s3cret" not in str(captured.entries)


def test_voltage_park_is_complete_without_its_presets(site: Site, ask: Ask) -> None:
    nodes = "/api/v1/bare-metal/locations"
    site.say("cloud-api.voltagepark.com", nodes, says({"results": []}))
    site.say("cloud-api.voltagepark.com", "/api/v1/instant-deploy-presets/", says({"detail": "no"}, 401))
    captured = ask("voltagepark")
    assert captured.status == "captured"
    site.say("cloud-api.voltagepark.com", nodes, says({"detail": "no"}, 403))
    assert ask("voltagepark").status == "failed"


def test_scaleway_is_complete_without_what_is_available(site: Site, ask: Ask) -> None:
    config = source_config("scaleway")
    for facts in config.requests:
        path = urlsplit(facts.url).path
        is_optional = path.endswith("/availability")
        site.say(facts.host, path, says({"message": "no"}, 403) if is_optional else says({"servers": {}}))
    captured = ask("scaleway")
    assert captured.status == "captured"
    assert sorted({outcome for _, outcome in outcomes(captured)}) == ["http_403", "ok"]
