"""Sources of the catalogue against hosts that answer as real ones were seen to, or as their evidence says:
refusals, other content types, lists that are gone. Each rule of one source's reader is in tests/sources."""

import json
from collections.abc import Callable
from urllib.parse import urlsplit

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

Visit = Callable[..., tuple[Capture, Outcome]]


@pytest.fixture
def visit(capture: Capturing, archive: Archive) -> Visit:
    """Capture a source of the catalogue from ``site`` and read it into the record."""

    def run(name: str, environment: dict[str, str] | None = None) -> tuple[Capture, Outcome]:
        config = source_config(name).model_copy(update={"spacing_seconds": 0})
        captured = capture(config, source_module(name), environment, retries=0)
        return captured, record_day(config, DAY, [captured], Home(archive.root.parent))

    return run


def page(source: str, name: str) -> bytes:
    return (PAGES / source / name).read_bytes()


def say_pages(site: Site, source: str, **statuses: int) -> None:
    """Answer with the sample pages, except at addresses whose last part has another status."""
    for entry in json.loads(page(source, "index.json")):
        parts = urlsplit(entry["url"])
        status = statuses.get(parts.path.rpartition("/")[2].replace("-", "_"), 200)
        whole = Reply(200, page(source, entry["file"]), entry["headers"])
        site.say(parts.netloc, parts.path, whole if status == 200 else Reply(status, b'{"code": "no"}', JSON))


def warned(outcome: Outcome, about: str) -> str:
    """The only warning about this."""
    (warning,) = [text for text in outcome.warnings if about in text]
    return warning


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
    assert (captured.status, outcome.accepted, outcome.rows > 40) == ("captured", True, True)
    assert warned(outcome, "made up for by others").endswith("(https://api.runpod.io/graphql)")
    assert refusal.replace(b"GpuType", b"${RUNPOD_API_KEY}") in stored_bytes(archive)
    assert b"rpa_secret_key" not in stored_bytes(archive)
    visit("runpod")
    assert all("authorization" not in asked.headers for asked in site.pages_asked()[2:])


ORACLE = "www.oracle.com"
ESTIMATOR = "/a/ocom/docs/cloudestimator2/data/"
PRICE_LIST = "/a/ocom/docs/pricing/cloud-price-list.json"


def oracle_prices() -> dict[str, object]:
    """The sample page's prices in the shapes of the further lists."""
    items = json.loads(page("oci", "products.json"))["items"]
    parts = [
        {"partNumber": item["partNumber"], "pricetype": "HOUR", "currencyCodeLocalizations": local}
        for item in items
        if (local := item["currencyCodeLocalizations"])
    ]
    by_part = {
        part["partNumber"]: {
            local["currencyCode"]: price["value"]
            for local in part["currencyCodeLocalizations"]
            for price in local["prices"]
        }
        for part in parts
    }
    return {f"{ESTIMATOR}products.json": parts, PRICE_LIST: by_part}


def test_oracles_products_api_answers_403(visit: Visit, site: Site) -> None:
    """A tracker's notes of 2026-09: the whole host is behind a firewall. Without any list, the first error is
    that of the list that is asked first."""
    site.say(ORACLE, f"{ESTIMATOR}shapes.json", Reply(200, page("oci", "shapes.json"), JSON))
    captured, outcome = visit("oci")
    assert (captured.status, outcome.accepted) == ("partial", False)
    assert str(outcome.error).endswith("(and 2 more requests failed)")
    for path, items in oracle_prices().items():
        site.handlers.clear()
        site.say("apexapps.oracle.com", "/pls/apex/cetools/api/v1/products/", Reply(403, b"<html>"))
        site.say(ORACLE, f"{ESTIMATOR}shapes.json", Reply(200, page("oci", "shapes.json"), JSON))
        site.say(ORACLE, path, Reply(200, json.dumps({"items": items}).encode(), JSON))
        captured, outcome = visit("oci")
        assert (captured.status, outcome.accepted, outcome.error) == ("captured", True, None)
        assert "first: http_403" in warned(outcome, "made up for by others")
        assert any("names no units" in text for text in outcome.warnings)


def test_aws_answers_some_regions_and_wraps_its_spot_prices(visit: Visit, site: Site) -> None:
    """alexei-led/spotinfo, internal/spot/data.go: plain JSON, which may be wrapped again. S3 answers 403 for
    what is not there, and a region is asked under its other name."""
    names = {"US East (N. Virginia)": "us-east-1", "Europe (Stockholm)": "eu-north-1"}

    def lists(asked: Asked) -> Reply:
        region = next((code for name, code in names.items() if name in unquoted(asked)), None)
        return (
            Reply(200, page("aws", f"on_demand_{region}.json"), JSON) if region else Reply(403, b"<Error/>")
        )

    def unquoted(asked: Asked) -> str:
        return asked.target.replace("%20", " ")

    pattern = "/pricing/2.0/meteredUnitMaps/ec2/USD/current/ec2-ondemand-without-sec-sel/"
    for name in source_config("aws").settings["regions"]:
        site.route("b0.p.awsstatic.com", f"{pattern}{name}/Linux/index.json", lists)
    spot = Reply(
        200, b"callback(%s);" % page("aws", "spot.json"), {"content-type": "application/x-javascript"}
    )
    site.say("website.spot.ec2.aws.a2z.com", "/spot.json", spot)
    captured, outcome = visit("aws")
    assert (captured.status, outcome.accepted, outcome.error) == ("captured", True, None)
    assert captured.entries[-1].usable
    assert warned(outcome, "made up for by others").endswith("EU%20(Stockholm)/Linux/index.json)")
    assert "optional requests failed, the first: http_4" in warned(outcome, "optional requests failed")
    del names["US East (N. Virginia)"]
    captured, _ = visit("aws")
    assert captured.status == "partial"  # without its largest region
    assert "US%20East%20(N.%20Virginia)" in str(captured.error)


def test_verda_is_asked_at_its_earlier_addresses_where_the_new_ones_fail(visit: Visit, site: Site) -> None:
    """Reading notes of about 2026-09: 401 without a key, for the availability only."""
    say_pages(site, "verda", instance_availability=401)
    captured, outcome = visit("verda")
    assert (captured.status, outcome.accepted, outcome.error) == ("captured", True, None)
    assert warned(outcome, "optional requests failed").endswith("/v1/instance-availability)")
    say_pages(site, "verda", instance_types=403)
    captured, outcome = visit("verda")  # the page alone is enough
    assert (captured.status, outcome.accepted, outcome.rows) == ("partial", True, 14)
    types = Reply(200, page("verda", "instance_types.json"), JSON)
    site.say("api.datacrunch.io", "/v1/instance-types", types)
    site.say("api.verda.com", "/v1/long-term/periods/instances", Reply(404, b"{}", JSON))
    site.say("api.verda.com", "/v1/long-term/periods", Reply(200, b"[]", JSON))
    captured, outcome = visit("verda")
    assert captured.status == "captured"
    assert warned(outcome, "made up for by others").startswith("2 failed requests")


def test_jarvislabs_page_is_asked_where_the_api_refuses_the_key(visit: Visit, site: Site) -> None:
    say_pages(site, "jarvislabs")
    api = "backendn.jarvislabs.net"
    without_key = visit("jarvislabs")[1]
    for status in (401, 503):
        site.say(api, "/misc/server_meta", Reply(status, b'{"detail": "Not authenticated"}', JSON))
        captured, outcome = visit("jarvislabs", {"JL_API_KEY": "expired-0123456789"})
        assert (captured.status, outcome.accepted, outcome.rows) == ("captured", True, without_key.rows)
        assert f"{api}/misc/server_meta" in warned(outcome, "made up for by others")
    assert all("authorization" not in asked.headers for asked in site.pages_asked("jarvislabs.ai"))


THUNDER = "api.thundercompute.com:8443"
VOLTAGE = "cloud-api.voltagepark.com"


def test_what_a_visit_is_complete_without(visit: Visit, site: Site) -> None:
    """Availability and presets; Thunder Compute's API at its port, or else its page."""
    scaleways = [facts.url[8:] for facts in source_config("scaleway").requests if not facts.optional]
    thunders = [f"{THUNDER}/v2/{name}" for name in ("pricing", "specs", "status")]
    cases = [
        ("thundercompute", dict.fromkeys(thunders, 200), "captured"),
        ("thundercompute", {f"{THUNDER}/v2/pricing": 401, "www.thundercompute.com/pricing": 200}, "captured"),
        ("thundercompute", {f"{THUNDER}/v2/pricing": 401, "www.thundercompute.com/pricing": 403}, "failed"),
        ("voltagepark", {f"{VOLTAGE}/api/v1/bare-metal/locations": 200}, "captured"),
        ("voltagepark", {f"{VOLTAGE}/api/v1/bare-metal/locations": 403}, "failed"),
        ("scaleway", dict.fromkeys(scaleways, 200), "captured"),
    ]
    found = []
    for name, statuses, _ in cases:
        site.handlers.clear()
        for place, status in statuses.items():
            host, _, path = place.partition("/")
            is_page = path == "pricing"
            body = b"<!doctype html><html>" if is_page else b"{}"
            headers = {"content-type": "text/html"} if is_page else JSON
            site.say(host, f"/{path.partition('?')[0]}", Reply(status, body, headers))
        found.append((name, statuses, visit(name)[0].status))
    assert found == cases


def test_a_key_that_turns_a_source_on_goes_with_each_of_its_requests() -> None:
    """Its terms forbid automated reading without one."""
    sent = {
        (name, key): [
            f"${{{key}}}" in "".join((request.url, *request.headers.values(), str(request.body)))
            for request in first_requests(config, source_module(name), {key: f"${{{key}}}"})
        ]
        for name, config in configs().items()
        for key in config.key_variables
        if config.terms.automated == "forbidden"
    }
    assert {place: found for place, found in sent.items() if not all(found)} == {}
    assert sum(map(len, sent.values())) > 0
