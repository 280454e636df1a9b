"""The next step for a failed source, and the cause that many failed sources share."""

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Client, Limits, ReplayServer
from pipeline.capture.visit import capture_all
from pipeline.catalog.source_config import SourceConfig, configs, source_config
from pipeline.contracts.outcome import Outcome, OutcomeCode, SourceResult
from pipeline.home.paths import Home
from pipeline.refresh.advice import diagnosis, key_text, next_step, next_step_of
from pipeline.refresh.ingest import record_day
from pipeline.refresh.inputs import capture_sources
from pipeline.refresh.report import RefreshReport
from tests.capture.conftest import module, source
from tests.capture.site import Reply, Site
from tests.conftest import gpufare
from tests.homes import PAGES
from tests.refresh.faulty_server import FaultyServer, refusing

DAY = date(2026, 8, 22)
LIMITS = Limits(backoff_seconds=0.01, backoff_max_seconds=0.02)
NOT_YET_VALID = Path(__file__).parents[1] / "capture" / "not_yet_valid.pem"
WITHOUT_STEP = {SourceResult.FRESH, SourceResult.NEEDS_PERMISSION, SourceResult.RETIRED}
ANOTHER_NETWORK = "try from another network: hosts refuse VPNs and data centres"


def test_each_result_that_needs_something_has_its_next_step_and_some_codes_have_their_own() -> None:
    modal = source_config("modal")
    steps = {result: next_step(result, None, modal) for result in SourceResult}
    assert {result for result, step in steps.items() if step is None} == WITHOUT_STEP
    assert steps[SourceResult.DOUBTED] == (
        "compare with https://modal.com/pricing; where the page says what was refused, confirm it in "
        "catalog/sources/modal.yaml (reviewed_prices, or expect)"
    )
    own = {code for code in OutcomeCode if next_step(code.result, code, modal) != steps[code.result]}
    assert own == {
        *(OutcomeCode.HTTP_403, OutcomeCode.HTTP_404, OutcomeCode.HTTP_429, OutcomeCode.HTTP_4XX),
        *(OutcomeCode.ROBOTS_DISALLOWED, OutcomeCode.ADDRESS_REFUSED, OutcomeCode.TLS_ERROR),
        *(OutcomeCode.PROXY_FAILED, OutcomeCode.PROXY_REFUSED, OutcomeCode.DNS_ERROR),
        *(OutcomeCode.REQUEST_LIMIT, OutcomeCode.SOURCE_TIMEOUT),
    }
    templates = [next_step(code.result, code, modal) or "" for code in OutcomeCode] + list(steps.values())
    assert [step for step in templates if step and "{" in step] == []


def test_a_code_that_did_not_decide_the_result_gives_no_step() -> None:
    modal = source_config("modal")
    assert next_step(SourceResult.FRESH, OutcomeCode.HTTP_403, modal) is None
    partial = next_step(SourceResult.PARTIAL, None, modal)
    assert next_step(SourceResult.PARTIAL, OutcomeCode.HTTP_403, modal) == partial


def test_the_step_for_a_key_names_its_variables_and_origin() -> None:
    gcp = source_config("gcp")
    assert key_text(gcp) == f"GCP_API_KEY: {gcp.coverage.key_from}"
    assert next_step(SourceResult.NEEDS_KEY, OutcomeCode.NEEDS_KEY, gcp) == f"set {key_text(gcp)}"
    keyed = source(key_variables=["ACME_ID", "ACME_KEY"])
    assert key_text(keyed) == "ACME_ID and ACME_KEY"
    assert next_step(SourceResult.REFUSED_BY_HOST, OutcomeCode.HTTP_4XX, keyed) == (
        "check the key in ACME_ID and ACME_KEY, where it is set; else the request has to change: "
        "report it with the answer, which a refresh keeps in the home: archive/acme"
    )


# ------------------------------------------------------------------ many that fail alike


def made_up(code: OutcomeCode | None, error: str = "", number: int = 3, first: int = 0) -> list[Outcome]:
    """Attempts of that many sources that ended so."""
    result = code.result if code else SourceResult.FAILED_HERE
    names = [name for name, config in configs().items() if config.disabled is None][first : first + number]
    facts: dict[str, Any] = {"status": "failed", "accepted": False, "reason": "failed", "result": result}
    return [Outcome(day=DAY, source=name, error=error.format(name), code=code, **facts) for name in names]


def one_line(outcomes: list[Outcome], replay_url: str | None = None) -> str:
    """The report of a day on which every source failed alike: the diagnosis alone."""
    (line,) = RefreshReport(DAY, outcomes=outcomes, replay_url=replay_url).lines()
    begin, end = f"all {len(outcomes)} sources asked failed alike: ", "; `gpufare sources` has each error"
    assert line.startswith(begin)
    assert line.endswith(end)
    return line.removeprefix(begin).removesuffix(end)


def test_a_cause_common_to_all_sources_is_one_line() -> None:
    """With the step for many, or else for one, which may differ between the sources."""
    expected = {
        OutcomeCode.CONNECT_TIMEOUT: "host names are resolved but no connection is made: a firewall blocks "
        "all but a proxy -> set GPUFARE_PROXY to the proxy's address",
        OutcomeCode.HTTP_403: f"the hosts forbid the requests (403) -> {ANOTHER_NETWORK}",
        OutcomeCode.HTTP_404: "there is nothing at this address (404) -> begin with akash: look for its new "
        "address, from https://akash.network/pricing/gpus/, and report it",
        OutcomeCode.PROXY_REFUSED: "the proxy refuses the requests -> put the proxy's name and password in "
        "its address (docs/how-to/networks.md), or ask whoever runs it to allow the hosts",
        OutcomeCode.READ_TIMEOUT: "the host stopped sending -> refresh again later today",
    }
    told = {code: one_line(made_up(code, f"{code}: /{{}}/x")) for code in expected}
    assert [(code, told[code]) for code in expected if told[code] != expected[code]] == []
    here = "the archive cannot be written: /home/{}/x: No space left"
    doctor = "`gpufare doctor` examines this machine and its data"
    assert one_line(made_up(None, here)) == f"{here.format('akash')} -> {doctor}"
    url = "http://127.0.0.1:8000"
    down = f"{url} does not answer (dns_error) -> start the replay server, or correct --pages"
    assert one_line(made_up(OutcomeCode.DNS_ERROR), url) == down
    assert one_line(made_up(OutcomeCode.HTTP_403), url) == expected[OutcomeCode.HTTP_403]


def test_only_more_than_half_and_at_least_three_share_a_cause() -> None:
    alike, others = made_up(OutcomeCode.HTTP_403), made_up(OutcomeCode.EMPTY_BODY, first=3)
    assert diagnosis([*alike, *others]) is None, "half is not most"
    assert diagnosis(alike[:2]) is None, "two may be chance"
    found = diagnosis([*alike, *others[:2]])
    assert found is not None
    assert found.line(5, "look") == (
        "3 of 5 sources asked failed alike: the hosts forbid the requests (403) "
        f"({', '.join(each.source for each in alike)}) -> {ANOTHER_NETWORK}; look"
    )
    off = [replace(each, result=SourceResult.NEEDS_KEY, code=OutcomeCode.NEEDS_KEY) for each in others]
    assert getattr(diagnosis([*alike, *off]), "all_asked", None), "the others were not asked"
    accepted = [replace(each, accepted=True, result=SourceResult.PARTIAL) for each in alike]
    assert diagnosis(accepted) is None
    doubted = [replace(each, result=SourceResult.DOUBTED, code=None) for each in alike]
    assert diagnosis(doubted) is None, "each was doubted for its own prices"
    assert diagnosis([replace(each, result=SourceResult.CHANGED, code=None) for each in alike]) is None


def test_a_shared_cause_is_reported_once_before_the_other_sources() -> None:
    alike, other = made_up(OutcomeCode.DNS_ERROR), made_up(OutcomeCode.HTTP_403, first=3, number=1)
    lines = RefreshReport(DAY, outcomes=[*alike, *other]).lines()
    assert lines[0].startswith("3 of 4 sources asked failed alike: no host name could be resolved")
    assert lines[1] == "refused by the host: 1 of 4 sources"
    assert [line.split()[0] for line in lines[2:]] == [other[0].source]
    assert next_step_of(other[0]) == ANOTHER_NETWORK


# ------------------------------------------------------------------ with real errors


def outcomes_of(folder: Path, url: str) -> list[Outcome]:
    """Three sources asked at an address."""
    home, chosen = Home(folder), [source_config(name) for name in ("crusoe", "lambda", "modal")]
    captures = capture_sources(chosen, DAY, Archive(home.archive), {}, pages=url, limits=LIMITS)
    return [record_day(each, DAY, [captures[each.name]], home) for each in chosen]


def test_networks_that_fail_are_recognized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that cannot be resolved, a closed port, a proxy that opens TLS, and a wrong clock: a certificate
    that is trusted, but valid from 2090 on."""
    found = {"dns": outcomes_of(tmp_path / "dns", "http://nowhere.invalid")}
    with refusing() as url:
        found["port"] = outcomes_of(tmp_path / "port", url)
    with FaultyServer(PAGES, {}) as server:
        found["tls"] = outcomes_of(tmp_path / "tls", server.tls_url)
    monkeypatch.setenv("SSL_CERT_FILE", str(NOT_YET_VALID))
    with Site(NOT_YET_VALID) as site:
        found["clock"] = outcomes_of(tmp_path / "clock", site.base_url)
    codes = {name: {each.code for each in outcomes} for name, outcomes in found.items()}
    assert codes == {
        "dns": {OutcomeCode.DNS_ERROR},
        "port": {OutcomeCode.CONNECTION_REFUSED},
        "tls": {OutcomeCode.TLS_ERROR},
        "clock": {OutcomeCode.TLS_ERROR},
    }
    assert one_line(found["tls"]).startswith("no host could be verified over TLS")
    assert one_line(found["clock"]) == (
        "every certificate is out of date or not yet valid: this machine's clock is wrong -> set the clock"
    )


def asked_of(config: SourceConfig, client: Client, home: Home, day: date) -> Outcome:
    """The outcome of a made-up source, which has no module."""
    captures = capture_all(
        [config],
        environment={},
        day=day,
        archive=Archive(home.archive),
        client=client,
        module_of=lambda _: module(),
    )
    return record_day(config, day, [captures[config.name]], home)


def test_a_host_with_an_address_that_is_not_public_is_refused_unasked(tmp_path: Path) -> None:
    today = datetime.now(UTC).date()
    for address in ("198.18.0.7", "100.64.1.2", "10.0.0.1"):
        config = source(requests=[{"url": f"https://{address}/gpus"}], api_hosts=[address])
        with Client(limits=LIMITS) as client:
            outcome = asked_of(config, client, Home(tmp_path / address), today)
        assert (outcome.result, outcome.code) == (SourceResult.REFUSED_BY_US, OutcomeCode.ADDRESS_REFUSED)
        assert f"resolves to {address}, which is not a public address" in (outcome.error or "")
        assert "GPUFARE_PROXY" not in (outcome.error or ""), "the step is given once"


def test_robots_txt_is_the_hosts_refusal(tmp_path: Path) -> None:
    with Site() as site, Client(limits=LIMITS, replay=ReplayServer(site.base_url)) as client:
        site.say("prices.acme.example", "/robots.txt", Reply(200, b"User-agent: *\nDisallow: /"))
        outcome = asked_of(source(), client, Home(tmp_path), DAY)
    assert (outcome.result, outcome.code) == (SourceResult.REFUSED_BY_HOST, OutcomeCode.ROBOTS_DISALLOWED)


def test_a_proxy_that_does_not_answer_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The live job at the command line: nothing leaves this machine."""
    names = [word for name in ("lambda", "modal", "nebius") for word in ("--source", name)]
    with refusing() as url:
        monkeypatch.setenv("GPUFARE_PROXY", url)
        answer = gpufare("refresh", *names, home=tmp_path)
    assert answer.returncode == 1
    assert answer.stdout == (
        "all 3 sources asked failed alike: the proxy could not be used -> check the proxy's address, and "
        "whether the proxy runs; `gpufare sources` has each error\n"
    )
    assert answer.stderr.splitlines()[-1] == "Error: nothing was published: no source answered (3 asked)"
    assert answer.stderr.startswith("asking 3 sources without a key\n")
