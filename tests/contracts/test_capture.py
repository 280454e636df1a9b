"""A capture's status, error and warnings, and its source's result, all of which follow from its requests."""

from datetime import UTC, date, datetime
from typing import Any

from pipeline.contracts.capture import Capture, capture_status, first_error, request_warnings, source_result
from pipeline.contracts.outcome import OutcomeCode, SourceResult
from pipeline.contracts.request import Entry

DAY = date(2026, 8, 22)
ANSWERED: dict[str, Any] = {"outcome": OutcomeCode.OK, "file": "a", "status": 200}


def entry(name: str, code: str = "ok", **facts: Any) -> Entry:
    """A request; an answered one has a file."""
    answer = ANSWERED | {"sha256": name} if code == "ok" else {"status": None}
    return Entry(url=f"https://a.example/{name}", **{"outcome": code, **answer, **facts})


def key(name: str) -> str:
    return f"GET https://a.example/{name}"


OK = entry("ok")
FORBIDDEN = entry("no", "http_403", status=403, error="a reason")
GONE = entry("gone", "http_404", status=404)
KEYED = entry("keyed", "needs_key")
STOCK = entry("stock", "http_403", status=403, optional=True)
MORE = entry("more", "given_up", more_unsent=4, optional=True)
ODD = entry("odd", warning="is text")
INSTEAD = entry("a", "http_403", instead=(key("b"), key("c")))
LED_TO_D, LED_TO_A = (entry("b", "http_404", instead=(key(name),)) for name in "da")
FORBIDS = "the host forbids the request (403)"
OPTIONAL = f"optional requests failed, the first: http_403, {FORBIDS} (https://a.example/stock)"
MADE_UP = f"failed requests were made up for by others, the first: http_403, {FORBIDS} (https://a.example/a)"
AND_ONE = " (and 1 more requests failed)"

STATUSES = [
    # requests -> status, error, warnings
    ([], "failed", None, ()),
    ([OK], "captured", None, ()),
    ([OK, GONE], "partial", f"http_404: {GONE.outcome.sentence}", ()),
    ([GONE, FORBIDDEN], "failed", f"http_404: {GONE.outcome.sentence}{AND_ONE}", ()),
    ([OK, KEYED], "captured", None, ()),
    ([KEYED], "needs_key", "needs_key: needs a key", ()),
    ([KEYED, FORBIDDEN], "failed", f"http_403: a reason{AND_ONE}", ()),
    ([KEYED, STOCK], "needs_key", "needs_key: needs a key", (f"1 of 1 {OPTIONAL}",)),
    ([OK, STOCK, MORE], "captured", None, (f"6 of 6 {OPTIONAL}",)),
    ([OK, STOCK.model_copy(update=ANSWERED), STOCK], "captured", None, (f"1 of 2 {OPTIONAL}",)),
    ([STOCK], "failed", f"http_403: {FORBIDS}", (f"1 of 1 {OPTIONAL}",)),
    ([STOCK, GONE], "failed", f"http_404: {GONE.outcome.sentence}", (f"1 of 1 {OPTIONAL}",)),
    ([OK, KEYED.model_copy(update={"optional": True})], "captured", None, ()),
    # Replacements make up for a failure only if all of them are answered, themselves or by others.
    ([INSTEAD, entry("b"), entry("c", "http_404")], "partial", f"http_403: {FORBIDS}{AND_ONE}", ()),
    ([INSTEAD, entry("b"), entry("c")], "captured", None, (f"1 {MADE_UP}",)),
    ([INSTEAD, LED_TO_D, entry("c"), entry("d")], "captured", None, (f"2 {MADE_UP}",)),
    ([INSTEAD, LED_TO_A, entry("c")], "partial", f"http_403: {FORBIDS}{AND_ONE}", ()),
    ([ODD, OK], "captured", None, ("1 of 2 answers were odd, the first: is text (https://a.example/odd)",)),
]


def test_what_the_requests_of_a_capture_make_of_it() -> None:
    facts_of = (capture_status, first_error, request_warnings)
    assert [(row[0], *(fact(row[0]) for fact in facts_of)) for row in STATUSES] == STATUSES


def captured(*entries: Entry, status: Any = None) -> Capture:
    return Capture(source="acme", day=DAY, capture_id=None, status=status, entries=entries)


def test_what_a_capture_says_of_itself() -> None:
    at = [datetime(2026, 8, 22, hour, tzinfo=UTC) for hour in (5, 7, 6, 9)]
    refused = STOCK.model_copy(update={"bytes": 5, "observed_at": at[3], "sha256": "of it", "retries": 2})
    early, late = entry("c", bytes=20, observed_at=at[2]), entry("b", bytes=10, observed_at=at[1], retries=1)
    capture = captured(refused, late, early, GONE, MORE)
    assert (capture.requests, capture.failed_requests, capture.bytes, capture.retries) == (9, 7, 35, 3)
    assert (capture.sha256, capture.observed_at, capture.code) == ("b", at[1], "http_404")
    assert capture.warnings == request_warnings(capture.entries)
    empty = captured()
    assert (empty.requests, empty.sha256, empty.observed_at, empty.code) == (0, None, None, None)
    lacking = [captured(each).lacks_answers for each in (OK, KEYED, STOCK, GONE)]
    assert lacking == [False, False, True, True]


def test_the_result_of_a_source() -> None:
    cases = [
        # status, requests, whether it is accepted, whether it has changed -> result
        ("disabled", [], False, False, "retired"),
        ("needs_key", [KEYED], False, False, "needs_key"),
        ("captured", [OK], True, False, "fresh"),
        ("partial", [OK, GONE], True, False, "partial"),
        ("partial", [OK, FORBIDDEN], False, True, "refused_by_host"),
        ("captured", [OK, FORBIDDEN], False, True, "changed"),
        ("partial", [OK], False, True, "changed"),
        ("captured", [OK], False, False, "doubted"),
        ("failed", [], False, False, "failed_here"),
        (None, [GONE], False, False, "changed"),
    ]
    for status, entries, accepted, changed, result in cases:
        capture = captured(*entries, status=status)
        assert source_result(capture, accepted=accepted, changed=changed) == result, (status, entries)


def test_the_code_of_each_status_and_which_may_pass() -> None:
    codes = dict.fromkeys((204, 304, 399), "http_other") | dict.fromkeys((400, 402, 499), "http_4xx")
    codes |= {403: "http_403", 404: "http_404", 429: "http_429", 500: "http_5xx", 599: "http_5xx"}
    assert {status: OutcomeCode.of_status(status) for status in codes} == codes
    passing = """connection_refused connection_failed dns_error proxy_failed connect_timeout read_timeout
    incomplete_body protocol_error http_429 http_5xx""".split()  # noqa: SIM905
    assert [code for code in OutcomeCode if code.retryable] == passing
    not_asked = ["needs_key", "needs_permission", "retired"]
    assert [result for result in SourceResult if not result.asked] == not_asked
