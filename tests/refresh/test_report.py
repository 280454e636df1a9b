"""What a refresh says before its requests, and when it is done."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

from pipeline.catalog.source_config import source_config
from pipeline.contracts.outcome import Outcome, OutcomeCode, SourceResult
from pipeline.home.paths import Home
from pipeline.record.records import Records
from pipeline.refresh.report import RefreshReport, announcement
from pipeline.warehouse.build import Report

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
    unread = {"reason": "unread", "error": "no row"}
    assert line_of("modal", **REFUSED | unread) == f"modal  NOT ACCEPTED  unread (no row){STEP}"
    read = FRESH | {"rows": 39, "ambiguous": 3, "unknown": 4, "warnings": ("odd", "new")}
    told = "gcp  accepted  39 offers, 7 with an open GPU"
    assert line_of("gcp", **read) == f"{told}  warning: odd; new"
    measured = read | {"bytes": 2_500, "duration_seconds": 1.26, "warnings": ()}
    for number, requests in ((1, "1 request"), (2, "2 requests")):
        took = line_of("gcp", False, **measured, requests=number)
        assert took == f"{told}; {requests}, 2.5 kB in 1.3 s"


def test_only_some_held_prices_are_named_of_each_source() -> None:
    held = {"lambda": [f"from 1 to {number}" for number in range(21)], "gcp": ["from 2 to 9"]}
    report = RefreshReport(DAY, outcomes=[outcome("gcp", **FRESH, rows=1)], held=held, swept_files=3)
    assert report.lines()[:25] == [
        "gcp  accepted  1 offers",
        "deleted 3 half-written files of killed runs",
        "lambda: prices held until they are confirmed: 21",
        *(f"  from 1 to {number}" for number in range(20)),
        "  and 1 more",
        "gcp: prices held until they are confirmed: 1",
    ]


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
    with_key = "asking 2 sources without a key and primeintellect with your keys"
    assert announcement(chosen, home, {"PRIME_API_KEY": "secret"}) == [with_key, more]
    Records(home).write_accepted(DAY, "modal", [])
    assert announcement(chosen, home, {}) == ["asking 2 sources without a key"], "it is not the first"
