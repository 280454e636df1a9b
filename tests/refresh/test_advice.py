"""The next step for a failed source, and the cause that many failed sources share."""

from dataclasses import replace
from datetime import date
from typing import Any

from pipeline.catalog.source_config import configs, source_config
from pipeline.contracts.outcome import Outcome, OutcomeCode, SourceResult
from pipeline.refresh.advice import diagnosis, next_step
from pipeline.refresh.report import RefreshReport

DAY = date(2026, 8, 22)
WITHOUT_STEP = {SourceResult.FRESH, SourceResult.NEEDS_PERMISSION, SourceResult.RETIRED}
ANOTHER_NETWORK = "try from another network: hosts refuse VPNs and data centres"


def test_each_result_that_needs_something_has_its_next_step_and_some_codes_have_their_own() -> None:
    modal = source_config("modal")
    steps = {result: next_step(result, None, modal) for result in SourceResult}
    assert {result for result, step in steps.items() if step is None} == WITHOUT_STEP
    assert steps[SourceResult.DOUBTED] == (
        "compare with https://modal.com/pricing; if the page says what was refused: gpufare confirm modal"
    )
    assert next_step(SourceResult.REFUSED_BY_HOST, OutcomeCode.HTTP_403, modal) == ANOTHER_NETWORK
    templates = [next_step(code.result, code, modal) for code in OutcomeCode] + list(steps.values())
    assert [
        step for step in filter(None, templates) if "{" in step or "check the key in" in step
    ] == []  # it has no key
    keyed = next_step(OutcomeCode.HTTP_4XX.result, OutcomeCode.HTTP_4XX, source_config("lambda")) or ""
    assert keyed.startswith("check the key in LAMBDA")
    # A code that did not decide the result gives no step.
    assert next_step(SourceResult.FRESH, OutcomeCode.HTTP_403, modal) is None
    assert next_step(SourceResult.PARTIAL, OutcomeCode.HTTP_403, modal) == steps[SourceResult.PARTIAL]


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
    clock = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate is not yet valid"
    assert one_line(made_up(OutcomeCode.TLS_ERROR, clock)) == (
        "every certificate is out of date or not yet valid: this machine's clock is wrong -> set the clock"
    )


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
