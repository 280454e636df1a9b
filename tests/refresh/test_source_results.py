"""The result of each source, in one class with one next step, and the common cause of many failures."""

import gzip
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Client, Limits, ReplayServer
from pipeline.capture.replay import capture_pages
from pipeline.capture.visit import capture_all
from pipeline.catalog.source_config import SourceConfig, configs, source_config
from pipeline.contracts.outcome import Outcome, OutcomeCode, SourceResult
from pipeline.home.paths import Home
from pipeline.refresh.advice import diagnosis, next_step
from pipeline.refresh.ingest import read_again, record_day
from pipeline.refresh.inputs import capture_sources
from pipeline.refresh.report import RefreshReport
from pipeline.warehouse.query import ask, reader
from tests.capture.conftest import module, source
from tests.capture.site import Reply, Site
from tests.conftest import PAGES, gpufare
from tests.refresh.faulty_server import (
    Fault,
    FaultyServer,
    breaks_off,
    falls_silent,
    first,
    redirects_to,
    redirects_to_untrusted_tls,
    refusing,
    says,
    sends_200_mb,
)
from tests.refresh.test_faults import Edit, each_dollar_price, edited

DAY = date(2026, 8, 22)
LIMITS = Limits(read_seconds=0.5, body_bytes=2**21, backoff_seconds=0.01, backoff_max_seconds=0.02)
THREE = ("crusoe", "lambda", "modal")


def of_host(name: str, fault: Fault) -> Fault:
    """The fault of one of a source's hosts."""
    return lambda host: fault(host) if host.headers["Host"] == name else host.say_as_ever()  # type: ignore[attr-defined]


FAULTS: dict[str, tuple[Fault, SourceResult]] = {
    "coreweave": (says(403), SourceResult.REFUSED_BY_HOST),
    "together": (says(429, retry_after="3600"), SourceResult.REFUSED_BY_HOST),
    "jarvislabs": (says(401, b"{}"), SourceResult.REFUSED_BY_HOST),
    "hyperstack": (redirects_to("http://elsewhere.invalid/"), SourceResult.REFUSED_BY_US),
    "cudo": (says(200, b"<html>", content_type="text/html"), SourceResult.REFUSED_BY_US),
    "replicate": (sends_200_mb, SourceResult.REFUSED_BY_US),
    "baseten": (says(500), SourceResult.UNREACHABLE),
    "crusoe": (redirects_to_untrusted_tls, SourceResult.UNREACHABLE),
    "linode": (breaks_off, SourceResult.UNREACHABLE),
    "digitalocean": (falls_silent, SourceResult.UNREACHABLE),
    "gcp": (says(200, b"", content_type="text/html"), SourceResult.CHANGED),
    "salad": (says(404), SourceResult.CHANGED),
    "exoscale": (first(3, says(500)), SourceResult.UNREACHABLE),
    "ovh": (of_host("api.us.ovhcloud.com", says(500)), SourceResult.PARTIAL),
}
EDITS: dict[tuple[str, str], tuple[Edit, SourceResult]] = {
    ("nebius", "prices.html"): (lambda page: "<html><p>We moved.</p></html>", SourceResult.CHANGED),
    ("lambda", "pricing.html"): (each_dollar_price("10"), SourceResult.DOUBTED),
    ("massedcompute", "pricing.html"): (each_dollar_price("1000"), SourceResult.DOUBTED),
}
OTHERS = {
    "modal": SourceResult.FRESH,
    "primeintellect": SourceResult.NEEDS_KEY,
    "vultr": SourceResult.FAILED_HERE,
    "voltagepark": SourceResult.RETIRED,
}
EXPECTED = (
    {name: result for name, (_, result) in FAULTS.items()}
    | {name: result for (name, _), (_, result) in EDITS.items()}
    | OTHERS
)


def config_of(name: str) -> SourceConfig:
    config = source_config(name)
    return config.model_copy(update={"disabled": "the company is gone"}) if name == "voltagepark" else config


@pytest.fixture(scope="module")
def bad_day(tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, dict[str, Outcome]]:
    """A day on which sources end in every way; nothing is published."""
    folder = tmp_path_factory.mktemp("results")
    home = Home(folder / "home")
    (home.archive).mkdir(parents=True)
    (home.archive / "vultr").write_text("a file in the way")
    pages = edited(folder / "pages", {place: edit for place, (edit, _) in EDITS.items()})
    chosen = [config_of(name) for name in EXPECTED]
    with FaultyServer(pages, {name: fault for name, (fault, _) in FAULTS.items()}) as server:
        captures = capture_sources(
            chosen, DAY, Archive(home.archive), {}, pages=server.base_url, limits=LIMITS
        )
    return home, {each.name: record_day(each, DAY, [captures[each.name]], home) for each in chosen}


def outcomes_of_made_up(chosen: list[SourceConfig], client: Client, home: Home, day: date) -> list[Outcome]:
    """Ask sources that have no module."""
    options = {"environment": {}, "day": day, "archive": Archive(home.archive), "client": client}
    captures = capture_all(chosen, module_of=lambda name: module(), **options)  # type: ignore[arg-type]
    return [record_day(each, day, [captures[each.name]], home) for each in chosen]


@pytest.mark.parametrize("name", EXPECTED)
def test_each_source_ends_in_one_class(name: str, bad_day: tuple[Home, dict[str, Outcome]]) -> None:
    outcome = bad_day[1][name]
    assert outcome.result is EXPECTED[name], (outcome.reason, outcome.error)
    if name not in FAULTS or outcome.result is SourceResult.PARTIAL:
        return
    assert outcome.code is not None
    assert outcome.code.result is outcome.result


@pytest.mark.parametrize("name", sorted(set(EXPECTED) - {"vultr", "voltagepark"}))
def test_a_day_read_again_gives_the_same_class(name: str, bad_day: tuple[Home, dict[str, Outcome]]) -> None:
    home, outcomes = bad_day
    again = read_again(name, DAY, home)
    assert again is not None
    assert (again.result, again.code) == (outcomes[name].result, outcomes[name].code)


def test_a_failed_request_explains_more_than_the_readers_result_on_the_rest(
    bad_day: tuple[Home, dict[str, Outcome]],
) -> None:
    outcome = bad_day[1]["exoscale"]
    assert outcome.status == "partial"
    assert (outcome.error or "").startswith("http_5xx: ")


def test_robots_txt_is_the_hosts_refusal(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with Site() as site, Client(limits=LIMITS, replay=ReplayServer(site.base_url)) as client:
        site.say("prices.acme.example", "/robots.txt", Reply(200, b"User-agent: *\nDisallow: /"))
        (outcome,) = outcomes_of_made_up([source()], client, home, DAY)
    assert (outcome.result, outcome.code) == (SourceResult.REFUSED_BY_HOST, OutcomeCode.ROBOTS_DISALLOWED)


@pytest.mark.parametrize("damaged", ["answer", "index.json"])
def test_a_damaged_archive_is_this_machines_failure(damaged: str, tmp_path: Path) -> None:
    """Nothing of the source is doubted: what was kept of it is gone."""
    config, home = source_config("modal"), Home(tmp_path)
    capture = capture_pages(PAGES, config, day=DAY, archive=Archive(home.archive))
    folder = Archive(home.archive).folder(capture)
    file = folder / (capture.entries[0].file or "" if damaged == "answer" else damaged)
    file.chmod(0o644)
    file.write_bytes(gzip.compress(b"something else"))
    outcome = record_day(config, DAY, Archive(home.archive).captures("modal", DAY), home)
    assert (outcome.accepted, outcome.result, outcome.code) == (False, SourceResult.FAILED_HERE, None)
    assert next_step(SourceResult.FAILED_HERE, None, config) == (
        "`gpufare doctor` examines this machine and its data"
    )


def test_a_source_that_lacks_a_permission_was_not_asked(tmp_path: Path) -> None:
    """Refresh from the providers themselves, since a replay needs no permission."""
    terms = {"automated": "forbidden", "url": "https://acme.example/terms", "read_on": DAY, "note": "read"}
    config = source(terms=terms)
    today = datetime.now(UTC).date()
    captures = capture_sources([config], today, Archive(tmp_path / "archive"), {})
    outcome = record_day(config, today, [captures["acme"]], Home(tmp_path))
    assert outcome.result is SourceResult.NEEDS_PERMISSION
    assert "gpufare sources enable acme" in (outcome.reason or "")


@pytest.mark.parametrize("name", sorted(set(EXPECTED) - {"modal", "voltagepark"}))
def test_each_class_names_one_thing_to_do(name: str, bad_day: tuple[Home, dict[str, Outcome]]) -> None:
    outcome = bad_day[1][name]
    assert outcome.result is not None
    step = next_step(outcome.result, outcome.code, source_config(name))
    assert step
    (line,) = (line for line in RefreshReport(DAY, outcomes=[outcome]).lines() if line.startswith(name))
    assert line.endswith(f" -> {step}")


def test_the_report_has_a_line_per_source_under_its_class_fresh_ones_first(
    bad_day: tuple[Home, dict[str, Outcome]],
) -> None:
    lines = RefreshReport(DAY, outcomes=list(bad_day[1].values())).lines()
    first_words = [line.split()[0] for line in lines]
    assert all(first_words.count(name) == 1 for name in EXPECTED)
    headings = [line for line in lines if line.endswith(f" of {len(EXPECTED)} sources")]
    assert headings[0] == f"fresh prices: 1 of {len(EXPECTED)} sources"
    assert len(headings) == len(set(EXPECTED.values()))
    assert lines.index(headings[0]) + 1 == first_words.index("modal")


def test_offers_and_exchange_rates_are_counted() -> None:
    fresh = {"day": DAY, "status": "captured", "result": SourceResult.FRESH, "accepted": True, "reason": None}
    seen = Outcome(**fresh, source="gcp", rows=39)  # type: ignore[arg-type]
    (line,) = RefreshReport(DAY, outcomes=[seen]).lines()
    assert line == "gcp  accepted  39 offers"
    rates = Outcome(**fresh, source="ecb", rows=5)  # type: ignore[arg-type]
    (line,) = RefreshReport(DAY, outcomes=[rates]).lines()
    assert line == "ecb  accepted  5 exchange rates"


def test_the_published_outcomes_have_their_class(sample_home: Home) -> None:
    query = "SELECT result, code, regions FROM main.capture_outcomes WHERE source = ?"
    with reader(sample_home.published) as connection:
        assert ask(connection, query, ["gcp"]).rows == [("fresh", None, 1)]
        assert ask(connection, query, ["primeintellect"]).rows == [("needs_key", "needs_key", 0)]


# ------------------------------------------------------------------ many that fail alike


def outcomes_of(home: Home, url: str, names: tuple[str, ...] = THREE) -> list[Outcome]:
    chosen = [source_config(name) for name in names]
    captures = capture_sources(chosen, DAY, Archive(home.archive), {}, pages=url, limits=LIMITS)
    return [record_day(each, DAY, [captures[each.name]], home) for each in chosen]


def one_line(outcomes: list[Outcome], replay_url: str | None = None) -> str:
    """The report of a day on which everything failed: the diagnosis alone."""
    report = RefreshReport(DAY, outcomes=outcomes, replay_url=replay_url)
    lines = report.lines()
    assert len(lines) == 1, lines
    (line,) = lines
    assert line.startswith(f"all {len(report.asked)} sources asked failed alike: ")
    return line


def test_no_network(tmp_path: Path) -> None:
    assert "no network, or no resolver" in one_line(outcomes_of(Home(tmp_path), "http://nowhere.invalid"))


def test_a_firewall(tmp_path: Path) -> None:
    with refusing() as url:
        outcomes = outcomes_of(Home(tmp_path), url)
    assert "set GPUFARE_PROXY" in one_line(outcomes)
    assert f"{url} does not answer (connection_refused) -> start the replay server" in one_line(outcomes, url)


def test_a_proxy_that_opens_tls(tmp_path: Path) -> None:
    with FaultyServer(Path(__file__).parents[1] / "pages", {}) as server:
        outcomes = outcomes_of(Home(tmp_path), server.tls_url)
    assert "set SSL_CERT_FILE" in one_line(outcomes)


def test_a_clock_that_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The certificate is trusted, and valid from 2090 on."""
    certificate = Path(__file__).parents[1] / "capture" / "not_yet_valid.pem"
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with Site(certificate) as site:
        outcomes = outcomes_of(Home(tmp_path), site.base_url)
    assert "not yet valid" in (outcomes[0].error or "")
    assert one_line(outcomes).endswith("-> set the clock; `gpufare sources` has each error")


@pytest.mark.parametrize("address", ["198.18.0.7", "100.64.1.2", "10.0.0.1"])
def test_a_host_with_an_address_that_is_not_public_is_refused(address: str, tmp_path: Path) -> None:
    """Nothing is sent: the address is refused before a connection is made."""
    facts = {"requests": [{"url": f"https://{address}/gpus"}], "api_hosts": [address]}
    chosen = [source(name, **facts) for name in THREE]
    home, today = Home(tmp_path), datetime.now(UTC).date()
    with Client(limits=LIMITS) as client:
        outcomes = outcomes_of_made_up(chosen, client, home, today)
    assert {outcome.code for outcome in outcomes} == {OutcomeCode.ADDRESS_REFUSED}
    assert {outcome.result for outcome in outcomes} == {SourceResult.REFUSED_BY_US}
    assert f"resolves to {address}, which is not a public address" in (outcomes[0].error or "")
    assert "a captive portal, a resolver that blocks them, or a VPN" in one_line(outcomes)
    step = next_step(SourceResult.REFUSED_BY_US, outcomes[0].code, chosen[0]) or ""
    assert "GPUFARE_PROXY" in step
    assert "GPUFARE_PROXY" not in (outcomes[0].error or ""), "the step is given once"


def test_a_proxy_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The live job at the command line: nothing leaves this machine."""
    names = [word for name in ("lambda", "modal", "nebius") for word in ("--source", name)]
    with refusing() as url:
        monkeypatch.setenv("GPUFARE_PROXY", url)
        answer = gpufare("refresh", *names, home=tmp_path)
    assert answer.returncode == 1
    (line,) = answer.stdout.splitlines()
    assert line.startswith(
        "all 3 sources asked failed alike: the proxy could not be used -> check the proxy's address"
    )
    # The cause is said once.
    assert answer.stderr.splitlines()[-1] == "Error: nothing was published: no source answered (3 asked)"
    assert answer.stderr.startswith("asking 3 sources without a key\n")


def test_common_cause_is_reported_once_before_the_others(
    bad_day: tuple[Home, dict[str, Outcome]], tmp_path: Path
) -> None:
    alike = outcomes_of(Home(tmp_path), "http://nowhere.invalid")
    others = [bad_day[1][name] for name in ("coreweave", "primeintellect")]
    lines = RefreshReport(DAY, outcomes=[*alike, *others]).lines()
    assert lines[0].startswith("3 of 4 sources asked failed alike: no host name could be resolved")
    assert "(crusoe, lambda, modal)" in lines[0]
    assert [line.split()[0] for line in lines[1:]] == ["refused", "coreweave", "not", "primeintellect"]


def made_up(code: OutcomeCode | None, error: str, number: int = 3, first: int = 0) -> list[Outcome]:
    """Attempts of that many sources that ended so."""
    result = code.result if code else SourceResult.FAILED_HERE
    names = [name for name, config in configs().items() if config.disabled is None][first : first + number]
    facts = {"status": "failed", "accepted": False, "reason": "failed", "result": result, "code": code}
    return [Outcome(day=DAY, source=name, error=error.format(name), **facts) for name in names]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "error", "says"),
    [
        (OutcomeCode.HTTP_403, "http_403: {}", "forbid the requests (403) -> try from another network"),
        (OutcomeCode.WRONG_CONTENT_TYPE, "wrong_content_type: {}", "-> try from another network"),
        (OutcomeCode.READ_TIMEOUT, "read_timeout: {}", "the host stopped sending -> refresh again later"),
        (OutcomeCode.RESPONSE_TIMEOUT, "response_timeout: {}", "than one answer may take -> refresh again"),
        (OutcomeCode.HTTP_404, "http_404: {}", "nothing at this address (404) -> begin with akash: look for"),
        (
            None,
            "the archive cannot be written: /home/{}/x: No space left",
            "No space left -> `gpufare doctor`",
        ),
    ],
)
def test_cause_common_to_all_sources_is_one_line(code: OutcomeCode | None, error: str, says: str) -> None:
    alike = made_up(code, error)
    assert says in one_line(alike)
    others = made_up(OutcomeCode.EMPTY_BODY, "empty_body: {}", number=3, first=3)
    assert diagnosis([*alike, *others]) is None, "half is not most"
    assert diagnosis([*alike, *others[:2]]) is not None
    assert diagnosis(alike[:2]) is None


def test_disbelieved_readings_share_no_cause() -> None:
    facts = {"result": SourceResult.DOUBTED, "code": None}
    assert diagnosis([replace(each, **facts) for each in made_up(None, "rows_min")]) is None  # type: ignore[arg-type]


def test_few_failures_give_no_diagnosis(tmp_path: Path) -> None:
    two = outcomes_of(Home(tmp_path), "http://nowhere.invalid", THREE[:2])
    assert diagnosis(two) is None
