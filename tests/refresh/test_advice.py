"""The next step for a failed source, and the cause that many failed sources share."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import configs, source_config
from pipeline.contracts.outcome import Outcome, OutcomeCode, SourceResult
from pipeline.home.paths import Home
from pipeline.refresh.advice import diagnosis, key_text, next_step, next_step_of
from pipeline.refresh.ingest import record_day
from pipeline.refresh.inputs import capture_sources
from pipeline.refresh.report import RefreshReport
from tests.capture.conftest import source
from tests.capture.site import Site
from tests.conftest import gpufare
from tests.refresh.faulty_server import refusing

DAY = date(2026, 8, 22)
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
    # A code that did not decide the result gives no step.
    assert next_step(SourceResult.FRESH, OutcomeCode.HTTP_403, modal) is None
    assert next_step(SourceResult.PARTIAL, OutcomeCode.HTTP_403, modal) == steps[SourceResult.PARTIAL]


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
    ecb = source_config("ecb")
    expected = {
        OutcomeCode.CONNECT_TIMEOUT: "host names are resolved but no connection is made: a firewall blocks "
        "all but a proxy -> set GPUFARE_PROXY to the proxy's address",
        OutcomeCode.HTTP_403: f"the hosts forbid the requests (403) -> {ANOTHER_NETWORK}",
        OutcomeCode.HTTP_404: "there is nothing at this address (404) -> begin with akash: look for its new "
        "address, from https://akash.network/pricing/gpus/, and report it",
        OutcomeCode.TLS_ERROR: "no host could be verified over TLS: a proxy on the way opens TLS with its "
        f"own certificate -> {next_step(SourceResult.UNREACHABLE, OutcomeCode.TLS_ERROR, ecb)}",
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


def test_a_wrong_clock_is_recognized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a certificate that is trusted, but valid from 2090 on."""
    home, chosen = Home(tmp_path), [source_config(name) for name in ("crusoe", "lambda", "modal")]
    monkeypatch.setenv("SSL_CERT_FILE", str(NOT_YET_VALID))
    with Site(NOT_YET_VALID) as site:
        captures = capture_sources(chosen, DAY, Archive(home.archive), {}, pages=site.base_url)
    outcomes = [record_day(each, DAY, [captures[each.name]], home) for each in chosen]
    assert {each.code for each in outcomes} == {OutcomeCode.TLS_ERROR}
    assert one_line(outcomes) == (
        "every certificate is out of date or not yet valid: this machine's clock is wrong -> set the clock"
    )


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
