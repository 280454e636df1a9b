"""The morning's digest: its lines, and its posting once a day."""

import logging
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from pipeline.catalog.source_config import configs, source_config
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.contracts.outcome import OutcomeCode, SourceResult
from pipeline.health.digest import (
    MAX_QUOTED_CHARACTERS,
    SHOWN_SOURCES,
    Digest,
    Problem,
    digest_of,
    harmless,
)
from pipeline.health.webhook import WEBHOOK_VARIABLE, send_digest
from pipeline.home.paths import Home
from pipeline.record.incidents import kept_incidents, report_incident
from pipeline.record.journal import Journal
from pipeline.refresh.advice import REFRESH_AGAIN, next_step
from pipeline.refresh.permissions import off_sources
from tests.conftest import gpufare
from tests.health.test_source_states import asked, write
from tests.scenario import BAD, GOOD, HOSTILE, MENDED, Scenario, noon

HERE = Path(__file__).parent
NEXT = MENDED + timedelta(days=1)


def test_a_digest_of_each_day_is_a_few_lines_of_plain_text(scenario: Scenario) -> None:
    """But for what a change of the model, or one more source in the catalogue, changes in it."""
    told = [digest_of(scenario.home(day), noon(day)) for day in (GOOD, BAD, MENDED)]
    assert [digest.day for digest in told] == [GOOD, BAD, MENDED]
    text = "\n\n".join(digest.text() for digest in told)
    for changing in (r"[\d.]+ → [\d.]+ USD \([^)]*\)", r"(?<=from 10 of )\d+", r"(?<=cloudrift and )\d+"):
        text = re.sub(changing, "…", text)
    assert text == (HERE / "digests.txt").read_text(encoding="utf-8").rstrip("\n")
    assert re.search(r"[<\[\]*@\x1b]", text) is None
    assert set(re.findall(r"\w+://[^\s;]+", text)) <= {config.homepage for config in configs().values()}


def test_a_digest_after_a_night_without_a_publication_begins_with_that(
    scenario: Scenario, tmp_path: Path
) -> None:
    late = digest_of(scenario.home(MENDED), noon(NEXT))
    people_see = f"people see the file of {MENDED}, built {MENDED} 12:00 UTC"
    unpublished = Problem("publication", "NOT PUBLISHED TODAY", "", people_see, "gpufare refresh")
    assert late.problems[0] == unpublished
    assert late.lines()[1:3] == ["publication: NOT PUBLISHED TODAY", f"  {people_see}. -> gpufare refresh"]
    assert late.published[0].startswith(f"Published: {MENDED} 12:00 UTC; ")
    damaged = Home(tmp_path / "damaged")
    damaged.published.parent.mkdir(parents=True)
    damaged.published.write_text("not a database")
    (first, *_) = digest_of(damaged, noon(NEXT)).problems
    assert (first.subject, first.what, first.step) == ("publication", "NOT PUBLISHED", "gpufare refresh")
    assert "cannot be read" in first.why


def test_a_morning_without_a_run_is_told(tmp_path: Path) -> None:
    """Even if the night's publication took place."""
    home, morning = Home(tmp_path), noon(NEXT)
    for at, accepted in ((morning - timedelta(days=1, hours=2), True), (morning - timedelta(days=1), False)):
        write(home, asked("lambda", at, accepted=accepted))
    write(home, asked("linode", morning - timedelta(days=1)))
    _, *before = digest_of(home, morning - timedelta(hours=3)).problems  # the first: nothing is published
    _, *late = digest_of(home, morning + timedelta(hours=1)).problems
    stay = f"its prices of {MENDED} stay in the rankings until 2026-08-31"
    failed = f"{SourceResult.CHANGED.sentence} (since {MENDED})"
    step = next_step(SourceResult.CHANGED, None, source_config("lambda"))
    broken = Problem("lambda", failed, "no table", stay, str(step))
    assert before == [broken]
    unasked = f"not asked since {MENDED}"
    assert late == [
        Problem("all sources", "NOT ASKED TODAY: linode", step="see whether the run began; gpufare refresh"),
        replace(broken, what=f"{unasked}, when it failed: {failed}"),
        Problem("linode", unasked, "", stay, f"{REFRESH_AGAIN}: gpufare refresh --source linode"),
    ]


def test_a_morning_without_any_prices_is_told(tmp_path: Path) -> None:
    home, morning = Home(tmp_path), noon(NEXT)
    names = ("lambda", "linode")
    write(home, *(asked(name, morning - timedelta(days=1)) for name in names))
    write(home, *(asked(name, morning, accepted=False) for name in names))
    silence = "NO PRICES TODAY: none of 2 sources gave any"
    assert silence in {problem.what for problem in digest_of(home, morning).problems}
    write(home, asked("verda", morning))
    assert silence not in {problem.what for problem in digest_of(home, morning).problems}


def test_of_many_broken_sources_the_first_are_explained_and_the_others_named(tmp_path: Path) -> None:
    """A source without accepted prices has none that stand in, and a host that failed is asked again."""
    home = Home(tmp_path)
    off = off_sources(configs().values(), home, {})
    of_prices = [
        name for name, config in configs().items() if config.kind == "prices" and not config.disabled
    ]
    open_to_all = [name for name in of_prices if name not in off and not configs()[name].needs_key]
    names, more = open_to_all[:SHOWN_SOURCES], open_to_all[SHOWN_SOURCES:][:2]
    for name in names:
        outcome = asked(name, noon(NEXT), accepted=False)
        write(home, replace(outcome, result=SourceResult.UNREACHABLE, code=OutcomeCode.READ_TIMEOUT))
    _, _, *told = digest_of(home, noon(NEXT)).problems  # after: not published, no prices today
    assert [problem.subject for problem in told] == names
    assert {problem.meanwhile for problem in told} == {"none of its prices was ever accepted"}
    assert told[0].step == f"{REFRESH_AGAIN}: gpufare refresh --source {names[0]}"
    for name in more:
        write(home, asked(name, noon(NEXT), accepted=False))
    *told, others = digest_of(home, noon(NEXT)).problems
    assert [problem.subject for problem in told[2:]] == names
    assert others == Problem("2 more", ", ".join(more), step="gpufare sources")


def test_a_quiet_morning_says_that_nothing_broke() -> None:
    assert Digest(MENDED, published=["Published: now"], changed=["Moved: x"]).text() == (
        f"gpufare {MENDED}\nBROKE: nothing\nPublished: now\nMoved: x"
    )


def test_prices_kept_out_of_the_rankings_are_counted_by_reason(copy_of: Callable[..., Home]) -> None:
    home = copy_of(MENDED)
    with duckdb.connect(home.published) as connection:
        connection.execute(
            """UPDATE main.offers_latest SET
                not_ranked_reason = CASE source
                    WHEN 'lambda' THEN 'flagged' WHEN 'cudo' THEN 'stale' ELSE 'price_outlier'
                END,
                flag_reason = 'conflicting_prices'"""
        )
        of = "count(*) FILTER (source = '{}')".format
        counts = f"SELECT count(*), {of('lambda')}, {of('cudo')} FROM main.offers_latest"
        rows, flagged, stale = connection.execute(counts).fetchone() or (0, 0, 0)
    (line,) = (line for line in digest_of(home, noon(MENDED)).changed if line.startswith("Kept out"))
    assert stale
    assert line.startswith(f"Kept out of the rankings: {rows - flagged - stale} at crusoe, ")
    assert line.endswith(f" more by price_outlier; {flagged} at lambda by conflicting_prices")


def test_incidents_of_the_last_day_are_named(tmp_path: Path) -> None:
    home, now = Home(tmp_path / "home"), noon(NEXT)
    for hours in (24, 23, *range(6)):
        at, path = now - timedelta(hours=hours), None if hours else "x.parquet"
        facts: dict[str, Any] = {"source": f"s{hours}" if hours > 1 else None, "path": path, "remedy": "look"}
        report_incident(home, Incident(at=at, kind=IncidentKind.RUN_FAILED, reason=f"<{hours}>", **facts))
    _, *told, others = digest_of(home, now).problems  # the first: nothing is published
    sentence = "A run ended with an error"
    subjects = ["x.parquet", "run_failed", *(f"s{hours}" for hours in (2, 3, 4))]
    assert told == [
        Problem(subject, sentence, f"&lt;{hours}&gt;", step="look") for hours, subject in enumerate(subjects)
    ]
    assert others == Problem("2 more", "incidents in the last day", step='gpufare sql "FROM incidents"')


def test_a_part_that_fails_is_a_problem_and_silences_no_other(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    Journal(home).write("incident", "", GOOD, "deep", "[" * 100_000)
    problems = {problem.subject: problem for problem in digest_of(home, noon(NEXT)).problems}
    assert problems["incidents"].what == "unknown"
    assert problems["incidents"].why.startswith("RecordError: ")
    assert problems["publication"].what == "NOT PUBLISHED"


def test_text_of_a_page_becomes_no_markup_no_link_and_no_mention() -> None:
    assert harmless(HOSTILE) == (
        "&lt;img src=x onerror=alert(1)&gt; (click)(http:∕∕evil.example) ＠everyone &lt;!channel&gt; 'rm' "
        "∗now∗ \ufffd(31m"
    )
    assert harmless("a|b\nc~d\\e") == "a¦b c∼d∖e"
    assert harmless("see WWW.evil.example") == "see www․evil.example", "a chat makes a link of it"
    assert harmless("x" * MAX_QUOTED_CHARACTERS) == "x" * MAX_QUOTED_CHARACTERS
    assert harmless("x" * (MAX_QUOTED_CHARACTERS + 1)) == "x" * (MAX_QUOTED_CHARACTERS - 1) + "…"
    assert (harmless("<" * 9, 3), harmless(7)) == ("&lt;&lt;…", "7")


# The digest.

QUIET = Digest(MENDED)


def hook(httpserver: HTTPServer) -> dict[str, str]:
    return {WEBHOOK_VARIABLE: httpserver.url_for("/hooks/SECRET")}


def test_a_digest_is_posted_once_per_morning(httpserver: HTTPServer, tmp_path: Path) -> None:
    received = []

    def handle(request: Request) -> Response:
        received.append(request.get_json())
        return Response("ok")

    httpserver.expect_request("/hooks/SECRET", method="POST").respond_with_handler(handle)
    home = Home(tmp_path / "home")
    assert send_digest(home, QUIET, hook(httpserver)) == "the digest of 2026-08-24 was posted"
    assert received == [{"text": "gpufare 2026-08-24\nBROKE: nothing"}]
    assert "already" in send_digest(home, QUIET, hook(httpserver))
    send_digest(home, Digest(MENDED + timedelta(days=1)), hook(httpserver))
    assert len(received) == 2
    assert kept_incidents(home) == []
    tuesday = Digest(MENDED + timedelta(days=2))
    assert send_digest(home, tuesday, {}) == f"no webhook is set in {WEBHOOK_VARIABLE}"
    assert send_digest(home, tuesday, hook(httpserver)).endswith("was posted"), "nothing was noted"


def test_a_digest_that_is_only_printed_writes_nothing(copy_of: Callable[..., Home]) -> None:
    home = copy_of(MENDED)
    for lock in home.root.rglob("*lock"):
        lock.unlink()
    before = sorted(home.root.rglob("*"))
    answer = gpufare("digest", home=home)
    assert answer.stdout.startswith("gpufare "), answer.stderr
    assert sorted(home.root.rglob("*")) == before


@pytest.mark.parametrize("status", [500, 302])
def test_a_failing_webhook_is_an_incident_without_its_address(
    status: int, httpserver: HTTPServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A redirect is not followed; the next attempt may post it."""
    caplog.set_level(logging.DEBUG)
    elsewhere = {"location": httpserver.url_for("/elsewhere")}
    httpserver.expect_request("/hooks/SECRET").respond_with_data("no", status, headers=elsewhere)
    home = Home(tmp_path / "home")
    reason = f"the webhook answered {status}"
    assert send_digest(home, QUIET, hook(httpserver)) == f"the digest was not posted: {reason}"
    assert len(httpserver.log) == 1
    (incident,) = kept_incidents(home)
    assert (incident.kind, incident.day, incident.reason) == ("digest_not_sent", MENDED, reason)
    assert incident.remedy == f"check {WEBHOOK_VARIABLE}, then run `gpufare digest`"
    logged = [record.getMessage() for record in caplog.records if record.name != "werkzeug"]
    assert [text for text in logged if "SECRET" in text] == []
    assert not home.digests.exists()


def test_an_address_that_cannot_be_used_is_not_shown(tmp_path: Path) -> None:
    https = f"{WEBHOOK_VARIABLE} must begin with https://"
    addresses = {
        "http://10.0.0.1/hooks/SECRET": https,
        "http://localhost:x@chat.example/hooks/SECRET": https,
        "ftp://127.0.0.1/hooks/SECRET": https,
        "https://[::SECRET": "the webhook could not be reached: InvalidURL",
        "http://127.0.0.1:9/hooks/SECRET": "the webhook could not be reached: ConnectError",
        "http://localhost:9/hooks/SECRET": "the webhook could not be reached: ConnectError",
    }
    told = {each: send_digest(Home(tmp_path), QUIET, {WEBHOOK_VARIABLE: f" {each}"}) for each in addresses}
    assert told == {each: f"the digest was not posted: {reason}" for each, reason in addresses.items()}


def test_the_command_writes_nothing_unless_it_posts(copy_of: Callable[..., Home], tmp_path: Path) -> None:
    """Not even into a home with damage, which a refresh would mend, or with none of its folders."""
    home = copy_of(MENDED)
    next(home.record.rglob("*.parquet")).write_bytes(b"cut")
    report_incident(home, Incident(kind=IncidentKind.RUN_FAILED, reason="no", remedy="look"))
    for each in (home, Home(tmp_path / "empty")):
        before = {path: (path.stat(), path.is_dir() or path.read_bytes()) for path in each.root.rglob("*")}
        assert gpufare("digest", home=each).returncode == 0
        after = {path: (path.stat(), path.is_dir() or path.read_bytes()) for path in each.root.rglob("*")}
        assert {path: (found[0].st_mtime_ns, found[1]) for path, found in after.items()} == {
            path: (found[0].st_mtime_ns, found[1]) for path, found in before.items()
        }
    assert not (tmp_path / "empty").exists()


def test_the_command_prints_the_digest_and_posts_it(
    httpserver: HTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    httpserver.expect_request("/hooks/SECRET").respond_with_data("ok")
    monkeypatch.setenv(WEBHOOK_VARIABLE, hook(httpserver)[WEBHOOK_VARIABLE])
    run, today = gpufare("digest", home=tmp_path / "home"), datetime.now(UTC).date()
    assert run.stdout.startswith(f"gpufare {today}\nBROKE: publication\npublication: NOT PUBLISHED: ")
    assert run.stderr == f"the digest of {today} was posted\n"
    assert httpserver.log[0][0].get_json() == {"text": run.stdout.rstrip("\n")}
