"""Sources of the catalogue against hosts that answer as real ones were seen to: refusals, other content
types, lists that are gone. Each test says where that was seen."""

import gzip
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

from .conftest import DAY, Capturing
from .site import Asked, Reply, Site

JSON = {"content-type": "application/json"}

Visit = Callable[..., tuple[Capture, Outcome]]


@pytest.fixture
def visit(capture: Capturing, archive: Archive) -> Visit:
    """Capture a source of the catalogue from ``site`` and read it into the record."""

    def run(name: str, environment: dict[str, str] | None = None) -> tuple[Capture, Outcome]:
        config = source_config(name).model_copy(update={"spacing_seconds": 0})
        captured = capture(config, source_module(name), environment, retries=0)
        assert archive.captures(name)[-1] == captured
        return captured, record_day(config, DAY, [captured], Home(archive.root.parent))

    return run


def page(source: str, name: str) -> bytes:
    return (PAGES / source / name).read_bytes()


def stored(archive: Archive) -> bytes:
    """All files of the archive, unpacked."""
    files = [path for path in archive.root.rglob("*") if path.is_file()]
    return b"\n".join(gzip.decompress(f.read_bytes()) if f.suffix == ".gz" else f.read_bytes() for f in files)


def test_runpod_refuses_a_field_with_status_400(visit: Visit, site: Site, archive: Archive) -> None:
    """runpod/runpod-plugins-official#56, 2026-08-28. Everything but that field is read."""
    refusal = b'{"errors": [{"message": "Cannot query field \\"clusterPrice\\" on type \\"GpuType\\"."}]}'

    def graphql(asked: Asked) -> Reply:
        if b"clusterPrice" in asked.body:
            return Reply(400, refusal, JSON)
        return Reply(200, page("runpod", "gpu_types.json"), JSON)

    site.route("api.runpod.io", "/graphql", graphql)
    captured, outcome = visit("runpod")
    assert [entry.outcome for entry in captured.entries] == ["http_4xx", "ok"]
    assert b"sixMonthPrice clusterPrice lowestPrice" in site.pages_asked()[0].body
    assert b"sixMonthPrice lowestPrice" in site.pages_asked()[1].body
    assert (captured.status, outcome.accepted) == ("captured", True)
    assert outcome.rows > 40
    (warning,) = [text for text in outcome.warnings if "asked instead" in text]
    assert "https://api.runpod.io/graphql: http_4xx" in warning
    assert refusal in stored(archive)


def test_runpod_refuses_all_but_the_shortest_query(visit: Visit, site: Site) -> None:
    """One field after the other, then without a name."""
    names = ["clusterPrice", "sixMonthPrice", "stockStatus"]

    def graphql(asked: Asked) -> Reply:
        if b"secureCloud" not in asked.body:
            return Reply(200, page("runpod", "gpu_types.json"), JSON)
        unknown = next((name for name in names if name.encode() in asked.body), None)
        message = f'Cannot query field "{unknown}" on type "GpuType".' if unknown else "Bad request"
        return Reply(400, json.dumps({"errors": [{"message": message}]}).encode(), JSON)

    site.route("api.runpod.io", "/graphql", graphql)
    captured, _ = visit("runpod")
    assert [entry.outcome for entry in captured.entries] == ["http_4xx"] * 4 + ["ok"]
    assert captured.status == "captured"


def test_a_runpod_key_goes_with_every_query_and_into_no_file(
    visit: Visit, site: Site, archive: Archive
) -> None:
    def graphql(asked: Asked) -> Reply:
        if b"clusterPrice" in asked.body:
            return Reply(400, b'{"errors": [{"message": "not for rpa_secret_key"}]}', JSON)
        return Reply(200, page("runpod", "gpu_types.json"), JSON)

    site.route("api.runpod.io", "/graphql", graphql)
    captured, _ = visit("runpod", {"RUNPOD_API_KEY": "rpa_secret_key"})
    assert captured.status == "captured"
    sent = [asked.headers["authorization"] for asked in site.pages_asked()]
    assert sent == ["Bearer rpa_secret_key"] * 2
    assert b"rpa_secret_key" not in stored(archive)
    visit("runpod")
    assert all("authorization" not in asked.headers for asked in site.pages_asked()[2:])


def test_runpod_without_any_answer_has_failed(visit: Visit, site: Site) -> None:
    site.say("api.runpod.io", "/graphql", Reply(400, b'{"errors": []}', JSON))
    captured, outcome = visit("runpod")
    assert len(site.pages_asked()) == 2
    assert (captured.status, outcome.accepted) == ("failed", False)
    assert str(outcome.error).startswith(
        "http_4xx: the host rejects the request: https://api.runpod.io/graphql"
    )


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


def oracle_site(site: Site, *paths: str, shapes: bool = True) -> None:
    """Oracle with a firewall in front of the products API, and only these further lists."""
    site.say(CETOOLS, "/pls/apex/cetools/api/v1/products/", Reply(403, b"<html>Access Denied</html>"))
    site.say(ORACLE, "/robots.txt", Reply(200, b"User-agent: *\nDisallow: /search\n"))
    for path in paths:
        site.say(ORACLE, path, Reply(200, oracle_prices()[path], JSON))
    if shapes:
        site.say(ORACLE, f"{ESTIMATOR}shapes.json", Reply(200, page("oci", "shapes.json"), JSON))


@pytest.mark.parametrize("path", [f"{ESTIMATOR}products.json", PRICE_LIST])
def test_oracles_products_api_answers_403(visit: Visit, site: Site, path: str) -> None:
    """A tracker's notes of 2026-09: the whole host is behind a firewall."""
    oracle_site(site, path)
    captured, outcome = visit("oci")
    assert (captured.status, outcome.accepted, outcome.error) == ("captured", True, None)
    assert captured.entries[-1].url.endswith("shapes.json")
    refused = [
        text for text in outcome.warnings if text.startswith("request failed: https://apexapps.oracle")
    ]
    assert len(refused) == 1
    assert "http_403" in refused[0]
    assert any("names no units" in text for text in outcome.warnings)


def test_oracles_products_api_answers_with_a_page(visit: Visit, site: Site) -> None:
    """A firewall may answer with status 200, too."""
    oracle_site(site, PRICE_LIST)
    site.say(CETOOLS, "/pls/apex/cetools/api/v1/products/", Reply(200, b"<html>Access Denied</html>", JSON))
    captured, outcome = visit("oci")
    assert [entry.outcome for entry in captured.entries] == ["wrong_content_type", "http_404", "ok", "ok"]
    assert (captured.status, outcome.accepted) == ("captured", True)


def test_oracles_shapes_are_missing(visit: Visit, site: Site) -> None:
    oracle_site(site, PRICE_LIST, shapes=False)
    captured, outcome = visit("oci")
    assert (captured.status, outcome.accepted) == ("captured", True)
    assert any("shapes.json: http_404" in text for text in outcome.warnings)


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


@pytest.mark.parametrize(
    "body", [page("aws", "spot.json"), b"callback(%s);" % page("aws", "spot.json")], ids=["JSON", "JSONP"]
)
def test_awss_spot_prices_come_as_javascript(visit: Visit, site: Site, body: bytes) -> None:
    """alexei-led/spotinfo, internal/spot/data.go: plain JSON, which may be wrapped again."""
    spot = Reply(200, body, {"content-type": "application/x-javascript"})
    aws_site(site, "US East (N. Virginia)", spot=spot)
    captured, outcome = visit("aws")
    assert (captured.status, outcome.accepted, outcome.error) == ("captured", True, None)
    assert captured.entries[-1].usable
    assert not any("spot.json" in text for text in outcome.warnings)
    (missing,) = [text for text in outcome.warnings if "optional requests failed" in text]
    assert missing.startswith("41 of 42 optional requests failed, the first: https://b0.p.awsstatic.com/")


def test_awss_region_is_asked_under_its_other_name(visit: Visit, site: Site) -> None:
    aws_site(site, "US East (N. Virginia)", "Europe (Stockholm)", spot=Reply(403))
    captured, outcome = visit("aws")
    assert (captured.status, outcome.accepted) == ("captured", True)
    (instead,) = [text for text in outcome.warnings if "asked instead" in text]
    assert "EU%20(Stockholm)/Linux/index.json: http_403" in instead
    assert instead.endswith("asked instead: 1 request")


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
    (warning,) = [text for text in outcome.warnings if text.startswith("optional request failed")]
    assert "/v1/instance-availability: http_4xx" in warning


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


@pytest.mark.parametrize("status", [401, 403, 503])
def test_jarvislabs_page_is_asked_where_the_api_refuses_the_key(
    status: int, visit: Visit, site: Site
) -> None:
    (entry,) = json.loads(page("jarvislabs", "index.json"))
    api = "backendn.jarvislabs.net"
    site.say(api, "/misc/server_meta", Reply(status, b'{"detail": "Not authenticated"}', JSON))
    site.say("jarvislabs.ai", "/pricing", Reply(200, page("jarvislabs", entry["file"]), entry["headers"]))
    without_key = visit("jarvislabs")[1]
    captured, outcome = visit("jarvislabs", {"JL_API_KEY": "expired-0123456789"})
    assert (captured.status, outcome.accepted, outcome.rows) == ("captured", True, without_key.rows)
    assert any(f"{api}/misc/server_meta" in text for text in outcome.warnings)
    assert all("authorization" not in asked.headers for asked in site.pages_asked("jarvislabs.ai"))


@pytest.mark.parametrize(
    "name", [c.name for c in configs().values() if c.terms.automated == "forbidden" and c.key_variables]
)
def test_a_key_that_turns_a_source_on_goes_with_each_of_its_requests(name: str) -> None:
    """Its terms forbid automated reading without one."""
    config = configs()[name]
    for key in config.key_variables:
        place = f"${{{key}}}"
        for request in first_requests(config, source_module(name), {key: place}):
            assert place in "".join((request.url, *request.headers.values(), str(request.body)))
