"""What a refresh says before its requests, and when it is done."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from pipeline.catalog.source_config import source_config
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.contracts.outcome import Outcome, OutcomeCode, SourceResult
from pipeline.home.paths import Home
from pipeline.record.records import Records
from pipeline.refresh.report import RefreshReport, announcement
from pipeline.warehouse.build import Report
from pipeline.warehouse.checks import Check, CheckResult

DAY = date(2026, 8, 22)
FRESH: dict[str, Any] = {"status": "captured", "result": SourceResult.FRESH, "accepted": True, "reason": None}
REFUSED: dict[str, Any] = {
    **{"status": "failed", "result": SourceResult.REFUSED_BY_HOST, "code": OutcomeCode.HTTP_403},
    **{"accepted": False, "reason": "http_403: no", "error": "http_403: no"},
}
STEP = " -> try from another network: hosts refuse VPNs and data centres"


def outcome(source: str, **facts: Any) -> Outcome:
    return Outcome(day=DAY, source=source, **({"requests": 1} | facts))


def line_of(source: str, recorded: bool = True, **facts: Any) -> str:
    """The line of one source alone, which needs no heading."""
    (line,) = RefreshReport(DAY, outcomes=[outcome(source, **facts)]).source_lines(recorded=recorded)
    return line


def test_a_source_is_one_line_with_what_was_read_and_what_it_took() -> None:
    assert line_of("gcp", **FRESH, rows=39) == "gcp  accepted  39 offers"
    assert line_of("ecb", **FRESH, rows=5) == "ecb  accepted  5 exchange rates"
    read = {"rows": 39, "rejects": 2, "ambiguous": 3, "unknown": 4, "warnings": ("odd", "new")}
    partial = FRESH | {"status": "partial", "result": SourceResult.PARTIAL, "error": "http_404: x"}
    assert line_of("modal", **partial, **read) == (
        "modal  accepted  39 offers, 2 rejected, 7 with an open GPU  PARTIAL http_404: x  warning: odd; new "
        "-> refresh again later today; if it stays so, report it with the answer, which a refresh keeps in "
        "the home: archive/modal"
    )
    assert line_of("modal", **REFUSED) == f"modal  NOT ACCEPTED  http_403: no{STEP}"
    unread = {"reason": "unread", "error": "no row"}
    assert line_of("modal", **REFUSED | unread) == f"modal  NOT ACCEPTED  unread (no row){STEP}"
    measured = {"bytes": 2_500, "duration_seconds": 1.26}
    assert line_of("gcp", False, **FRESH, rows=1, **measured) == (
        "gcp  accepted  1 offers; 1 request, 2.5 kB in 1.3 s"
    )
    none = "gcp  accepted  0 offers; 0 requests, 0 bytes in 0.0 s"
    assert line_of("gcp", False, **FRESH, requests=0) == none


def test_a_source_that_was_not_asked_says_why() -> None:
    off = {"status": "disabled", "accepted": False, "requests": 0}
    gone = line_of("modal", False, **off, reason="it is gone", result=SourceResult.RETIRED)
    assert gone == "modal  not asked  it is gone"
    key = line_of("primeintellect", **off, reason="needs_key: x", result=SourceResult.NEEDS_KEY)
    assert key.startswith("primeintellect  not asked  needs a key -> set PRIME_API_KEY: ")


def test_sources_stand_under_their_result_fresh_ones_first_and_without_those_that_are_off() -> None:
    off = {"status": "needs_permission", "result": SourceResult.NEEDS_PERMISSION, "accepted": False}
    outcomes = [outcome("vast", **off, reason="off"), outcome("coreweave", **REFUSED)]
    outcomes += [outcome("modal", **FRESH, rows=2), outcome("gcp", **FRESH, rows=1)]
    report = RefreshReport(DAY, outcomes=outcomes)
    expected = [
        "fresh prices: 2 of 4 sources",
        "modal      accepted  2 offers",
        "gcp        accepted  1 offers",
        "refused by the host: 1 of 4 sources",
        f"coreweave  NOT ACCEPTED  http_403: no{STEP}",
    ]
    assert report.lines() == [
        *expected,
        "not asked: needs your permission: 1 of 4 sources",
        "vast       not asked  off",
    ]
    report.off = ["off because of their terms: vast"]
    assert report.lines() == [*expected, *report.off]
    assert [each.source for each in report.failed] == ["coreweave"]


def test_the_report_names_held_prices_incidents_and_the_publication() -> None:
    at, kind, remedy = datetime(2026, 8, 22, 7, tzinfo=UTC), IncidentKind.DAMAGED_FILE, "read again"
    paths = [f"offers/acme/{number}.parquet" for number in range(20)]
    published = Report(rows={"offers_latest": 12, "rentals": 1})
    check = Check("odd_rows", "warn", "rows are odd", "SELECT 1")
    published.checks = [CheckResult(check, ("n",), rows) for rows in ([], [(1,)])]
    report = RefreshReport(
        DAY,
        outcomes=[outcome("gcp", **FRESH, rows=1)],
        published_day=DAY,
        published=published,
        swept_files=3,
        stored="stored",
        held={"lambda": [f"from 1 to {number}" for number in range(21)], "gcp": ["from 2 to 9"]},
        incidents=[Incident(at=at, kind=kind, path=each, reason="cut", remedy=remedy) for each in paths],
        replayed="lambda (observed on 2026-08-01)",
    )
    assert report.lines() == [
        "gcp  accepted  1 offers",
        "deleted 3 half-written files of killed runs",
        "lambda: prices held until they are confirmed: 21",
        *(f"  from 1 to {number}" for number in range(20)),
        "  and 1 more",
        "gcp: prices held until they are confirmed: 1",
        "  from 2 to 9",
        "incidents, kept in the table of that name: 20",
        *(f"  {path}: cut; read again" for path in paths),
        f"warning: {published.checks[1].message}",
        "published as of 2026-08-22: 12 offers",
        "among them, replayed from saved pages and no live prices: lambda (observed on 2026-08-01)",
        "stored",
    ]
    assert report.failure() is None


def test_a_publication_without_anything_new_says_so() -> None:
    """An answer that was not accepted is no failure of the run; no answer at all is one, and is its error."""
    earlier = DAY - timedelta(days=2)
    done: dict[str, Any] = {"published": Report(rows={}), "published_day": DAY, "newest_price_day": earlier}
    unread = RefreshReport(DAY, outcomes=[outcome("modal", **REFUSED)], **done)
    assert unread.lines()[1:] == [
        "published as of 2026-08-22: 0 offers",
        "no price is recent enough to be ranked: the rankings are empty",
        f"no source was accepted (1 asked); the newest prices are of {earlier}",
    ]
    assert unread.failure() is None
    unanswered = RefreshReport(DAY, outcomes=[outcome("modal", **REFUSED, failed_requests=1)], **done)
    assert unanswered.failure() == f"no source answered (1 asked); the newest prices are of {earlier}"
    assert unanswered.lines() == unread.lines()[:-1]
    assert RefreshReport(DAY, **done).failure() is None


def test_a_run_that_published_nothing_says_why() -> None:
    def failure(**facts: Any) -> str | None:
        return RefreshReport(DAY, **facts).failure()

    none = "nothing was published: "
    assert failure() == f"{none}no source was asked"
    assert failure(publish_error="the disk is full") == f"{none}the disk is full"
    unkept = [outcome("modal", **REFUSED, requests=0)]
    assert failure(outcomes=unkept) == f"{none}no answer could be kept (1 asked)"
    some = [outcome("modal", **REFUSED, failed_requests=1), outcome("gcp", **REFUSED)]
    assert failure(outcomes=some) == f"{none}no source was accepted (2 asked)"
    assert failure(outcomes=some[:1]) == f"{none}no source answered (1 asked)"


# ------------------------------------------------------------------ before the first request


def test_the_first_refresh_names_whom_it_asks_and_what_a_key_would_add(tmp_path: Path) -> None:
    """A key that only turns its source on adds nothing; those of sources that are off are named elsewhere."""
    chosen = [source_config(name) for name in ("modal", "gcp", "primeintellect", "vast", "tensordock")]
    home, facts = Home(tmp_path), source_config("gcp").coverage
    more = f"a key would add to gcp: {facts.with_key}; set GCP_API_KEY: {facts.key_from}"
    assert announcement(chosen, home, {"GCP_API_KEY": " "}) == ["asking 2 sources without a key", more]
    keys = {"PRIME_API_KEY": "secret"}
    with_key = "asking 2 sources without a key and primeintellect with your keys"
    assert announcement(chosen, home, keys) == [with_key, more]
    assert announcement(chosen[:1], home, {}) == ["asking 1 source without a key"]
    assert announcement(chosen[2:], home, keys) == ["asking primeintellect with your keys"]
    assert announcement(chosen[3:], home, {}) == ["asking no source"]
    Records(home).write_accepted(DAY, "modal", [])
    assert announcement(chosen, home, {}) == ["asking 2 sources without a key"], "it is not the first"
