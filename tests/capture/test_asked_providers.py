"""Sources of the catalogue against hosts that refuse, as real ones were seen to or as their evidence says.
How each list is read is in tests/sources."""

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
    (warning,) = [text for text in outcome.warnings if "made up for by others" in text]
    assert warning.endswith("(https://api.runpod.io/graphql)")
    assert refusal.replace(b"GpuType", b"${RUNPOD_API_KEY}") in stored_bytes(archive)
    assert b"rpa_secret_key" not in stored_bytes(archive)
    visit("runpod")
    assert all("authorization" not in asked.headers for asked in site.pages_asked()[2:])


VERDA, PERIODS = "api.verda.com/v1", "long-term/periods"
EARLIER = {
    "api.datacrunch.io/v1/instance-types": "instance_types.json",
    f"{VERDA}/{PERIODS}": "long_term_periods.json",
    f"{VERDA}/{PERIODS}/instances": 404,
}
NO_THUNDER = {f"api.thundercompute.com:8443/v2/{name}": 401 for name in ("pricing", "specs", "status")}
VOLTAGE = "cloud-api.voltagepark.com/api/v1"
SCALEWAYS = {
    facts.url[8:].partition("?")[0] for facts in source_config("scaleway").requests if facts.optional
}
REFUSALS = [
    # a source, answers other than its sample pages: a status or a page -> the status, and whether it is read
    ("verda", {f"{VERDA}/instance-availability": 401}, "captured", True),
    ("verda", {f"{VERDA}/instance-types": 403}, "partial", True),  # its page alone is enough
    ("verda", {f"{VERDA}/instance-types": 403, **EARLIER}, "captured", True),
    ("jarvislabs", {"backendn.jarvislabs.net/misc/server_meta": 401}, "captured", True),
    ("thundercompute", {}, "captured", True),
    ("thundercompute", NO_THUNDER, "captured", True),
    ("thundercompute", {**NO_THUNDER, "www.thundercompute.com/pricing": 403}, "failed", False),
    ("voltagepark", {f"{VOLTAGE}/instant-deploy-presets/": 401}, "captured", True),
    ("voltagepark", {f"{VOLTAGE}/bare-metal/locations": 403}, "partial", True),
    ("scaleway", dict.fromkeys(SCALEWAYS, 403), "captured", True),
    ("oci", {"apexapps.oracle.com/pls/apex/cetools/api/v1/products/": 403}, "partial", False),
]


def test_sources_are_complete_without_what_others_make_up_for(visit: Visit, site: Site) -> None:
    found = []
    for source, answers, *_ in REFUSALS:
        site.handlers.clear()
        for entry in json.loads(page(source, "index.json")):
            parts = urlsplit(entry["url"])
            site.say(parts.netloc, parts.path, Reply(200, page(source, entry["file"]), entry["headers"]))
        for place, answer in answers.items():
            host, _, path = place.partition("/")
            status, body = (answer, b"{}") if isinstance(answer, int) else (200, page(source, answer))
            site.say(host, f"/{path}", Reply(status, body, JSON))
        captured, outcome = visit(source, {"JL_API_KEY": "expired-0123456789"})
        found.append((source, answers, captured.status, outcome.accepted))
    assert found == REFUSALS
    assert all("authorization" not in asked.headers for asked in site.pages_asked("jarvislabs.ai"))


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
