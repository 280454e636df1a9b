"""The morning's digest: its lines, and its posting once a day."""

import json
import logging
import os
import shutil
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.health.digest import MAX_QUOTED_CHARACTERS, Digest, digest_of, harmless
from pipeline.health.webhook import WEBHOOK_VARIABLE, send_digest
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.record.incidents import kept_incidents, report_incident
from pipeline.record.journal import Journal
from pipeline.refresh.refresh import refresh
from tests.conftest import PAGES
from tests.pages_server import PagesServer

FIRST = date(2026, 8, 22)
SECOND = date(2026, 8, 23)
SEVEN = datetime(2026, 8, 23, 7, 15, tzinfo=UTC)

HOSTILE = "<img src=x onerror=alert(1)> [click](http://evil.example) @everyone <!channel> `rm` *now* \x1b[31m"


@pytest.fixture(scope="module")
def two_days(tmp_path_factory: pytest.TempPathFactory, sample_home: Home) -> Home:
    """The sample day, and a second one on which a price moved, one jumped and a page broke."""
    home, pages = Home(tmp_path_factory.mktemp("morning") / "home"), tmp_path_factory.mktemp("pages")
    shutil.copytree(sample_home.root, home.root)
    for source in ("runpod", "lambda"):
        shutil.copytree(PAGES / source, pages / source)
    prices = pages / "runpod" / "gpu_types.json"
    answer = json.loads(prices.read_text())
    for gpu in answer["data"]["gpuTypes"]:
        if gpu["id"] == "NVIDIA A100 80GB PCIe":
            gpu["securePrice"] = 1.25
        if gpu["id"] == "NVIDIA GeForce RTX 4090":
            gpu["securePrice"] *= 10
    prices.write_text(json.dumps(answer))
    for page in (pages / "lambda").glob("*.html"):
        page.write_text(f"<html><body>{HOSTILE}</body></html>")
    with PagesServer(pages) as server:
        refresh(
            home, day=SECOND, sources=["runpod", "lambda"], pages=server.base_url, environment={}, now=SEVEN
        )
    return home


def lines_of(found: Digest) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in found.lines)


def test_lines_name_moved_prices_broken_sources_and_held_prices(two_days: Home) -> None:
    found = digest_of(two_days, SEVEN)
    lines = lines_of(found)
    assert found.day == SECOND
    assert lines["Published"].startswith("2026-08-23 07:15 UTC; ")
    assert "a100-pcie-80gb on-demand at runpod 1.39 → 1.25 (-10%)" in lines["Moved"]
    assert lines["Cheapest"]
    assert "lambda" in lines["Broke"]
    assert "no pricing row" in lines["Broke"]
    assert "1 at runpod by price_jump: " in lines["Held"]
    assert lines["SAMPLE PAGES"].startswith("today's pages of lambda, runpod were replayed")
    assert len(found.lines) <= 10


@pytest.mark.parametrize(
    ("reason", "flag", "told"),
    [
        ("flagged", "older_gpu_dearer", "1 at oci by older_gpu_dearer"),
        ("price_odd_for_its_source", None, "1 at oci by price_odd_for_its_source"),
        ("flagged", "coming_soon", None),
    ],
)
def test_prices_that_a_gate_keeps_out_of_the_rankings_are_named(
    reason: str, flag: str | None, told: str | None, two_days: Home, tmp_path: Path
) -> None:
    home = Home(shutil.copytree(two_days.root, tmp_path / "home"))
    with duckdb.connect(home.published) as connection:
        connection.execute("DELETE FROM offers_latest WHERE NOT ranked")  # the line would name them, too
        connection.execute(
            "UPDATE offers_latest SET ranked = false, not_ranked_reason = ?, flag_reason = ? "
            "WHERE rowid = (SELECT min(rowid) FROM offers_latest WHERE source = 'oci' AND ranked)",
            [reason, flag],
        )
    line = lines_of(digest_of(home, SEVEN)).get("Kept out of the rankings")
    assert line == told


def test_all_of_many_broken_sources_are_named(two_days: Home) -> None:
    broke = lines_of(digest_of(two_days, SEVEN + timedelta(days=30)))["Broke"]
    assert "more: " in broke
    assert "voltagepark" in broke


def test_a_file_in_the_place_of_the_incidents_is_told(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.record.write_text("")
    assert lines_of(digest_of(home, SEVEN))["Incidents"].startswith("none can be read")


def test_it_is_plain_text(two_days: Home) -> None:
    found = digest_of(two_days, SEVEN)
    assert found.text().splitlines() == ["gpufare 2026-08-23", *found.lines]


def test_a_file_of_yesterday_and_a_missing_one_are_the_first_line(two_days: Home, tmp_path: Path) -> None:
    late = digest_of(two_days, SEVEN + timedelta(days=1))
    assert late.lines[0].startswith("NOT PUBLISHED TODAY: what people see is of 2026-08-23")
    nothing = digest_of(Home(tmp_path / "empty"), SEVEN)
    assert nothing.lines[0].startswith("NOT PUBLISHED: nothing is published at")
    damaged = Home(tmp_path / "damaged")
    damaged.published.parent.mkdir(parents=True)
    damaged.published.write_text("not a database")
    assert "cannot be read" in digest_of(damaged, SEVEN).lines[0]


def test_digest_reports_unreadable_incidents(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    Journal(home).write("incident", "", FIRST, "deep", "[" * 100_000)
    lines = lines_of(digest_of(home, SEVEN))
    assert lines["Incidents"].startswith("none can be read")
    assert {"NOT PUBLISHED", "Broke"} <= lines.keys()


def test_incidents_of_the_last_day_are_named(two_days: Home, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    for at, reason in ((SEVEN - timedelta(days=2), "too old"), (SEVEN - timedelta(hours=1), HOSTILE)):
        report_incident(
            home, Incident(at=at, kind=IncidentKind.RUN_FAILED, source="aws", reason=reason, remedy="look")
        )
    lines = lines_of(digest_of(home, SEVEN))
    assert lines["Incidents"].startswith("1 in the last day")
    assert "too old" not in lines["Incidents"]
    assert_harmless(lines["Incidents"])


def assert_harmless(text: str) -> None:
    for mark in ("<", "[", "](", "@everyone", "`", "*", "\x1b", "://"):
        assert mark not in text


def test_text_of_a_page_becomes_no_markup_no_link_and_no_mention() -> None:
    assert_harmless(harmless(HOSTILE))
    assert harmless("a|b\nc") == "a¦b c"
    assert len(harmless("x" * 500)) == MAX_QUOTED_CHARACTERS


# The digest.

QUIET = Digest(SECOND, ("Broke: no source",))


def hook(httpserver: HTTPServer) -> dict[str, str]:
    return {WEBHOOK_VARIABLE: httpserver.url_for("/hooks/SECRET")}


def test_a_digest_is_posted_once_per_morning(httpserver: HTTPServer, tmp_path: Path) -> None:
    received = []

    def handle(request: Request) -> Response:
        received.append(request.get_json())
        return Response("ok")

    httpserver.expect_request("/hooks/SECRET", method="POST").respond_with_handler(handle)
    home = Home(tmp_path / "home")
    assert send_digest(home, QUIET, hook(httpserver)) == "the digest of 2026-08-23 was posted"
    assert received == [{"text": "gpufare 2026-08-23\nBroke: no source"}]
    assert "already" in send_digest(home, QUIET, hook(httpserver))
    send_digest(home, Digest(SECOND + timedelta(days=1), ()), hook(httpserver))
    assert len(received) == 2
    assert kept_incidents(home) == []


def test_without_a_webhook_nothing_is_posted_or_noted(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    assert send_digest(home, QUIET, {}) == f"no webhook is set in {WEBHOOK_VARIABLE}"
    assert not (home.digests / "2026-08-23.txt").exists()


def test_a_home_that_cannot_be_written_does_not_silence_the_digest(
    httpserver: HTTPServer, tmp_path: Path
) -> None:
    httpserver.expect_request("/hooks/SECRET").respond_with_data("ok")
    (tmp_path / "home").write_text("a file where the home belongs")
    assert send_digest(Home(tmp_path / "home"), QUIET, hook(httpserver)).endswith("was posted")
    assert len(httpserver.log) == 1


@pytest.mark.parametrize("status", [500, 429, 404, 302])
def test_a_failing_webhook_is_an_incident_without_its_address(
    status: int, httpserver: HTTPServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    elsewhere = {"location": httpserver.url_for("/elsewhere")}
    httpserver.expect_request("/hooks/SECRET").respond_with_data("no", status, headers=elsewhere)
    home = Home(tmp_path / "home")
    done = send_digest(home, QUIET, hook(httpserver))
    assert done.startswith("the digest was not posted")
    assert str(status) in done
    assert len(httpserver.log) == 1
    (incident,) = kept_incidents(home)
    assert incident.kind == "digest_not_sent"
    logged = [record.getMessage() for record in caplog.records if record.name != "werkzeug"]
    for text in (done, incident.line(), *logged):
        assert "SECRET" not in text
    assert not (home.digests / "2026-08-23.txt").exists()  # the next attempt may post it


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://chat.example/hooks/SECRET", "https://"),
        ("http://10.0.0.1/hooks/SECRET", "https://"),
        ("http://localhost:x@chat.example/hooks/SECRET", "https://"),
        ("ftp://127.0.0.1/hooks/SECRET", "https://"),
        ("https://[::SECRET", "InvalidURL"),
        ("SECRET", "https://"),
        ("http://127.0.0.1:9/hooks/SECRET", "ConnectError"),
    ],
)
def test_an_address_that_cannot_be_used_is_not_shown(address: str, reason: str, tmp_path: Path) -> None:
    done = send_digest(Home(tmp_path / "home"), QUIET, {WEBHOOK_VARIABLE: address})
    assert done.startswith("the digest was not posted")
    assert reason in done
    assert "SECRET" not in done


def test_the_command_prints_the_digest_and_posts_it(httpserver: HTTPServer, tmp_path: Path) -> None:
    httpserver.expect_request("/hooks/SECRET").respond_with_data("ok")
    environment = os.environ | {HOME_VARIABLE: str(tmp_path / "home")} | hook(httpserver)
    run = subprocess.run(
        [sys.executable, "-m", "pipeline.cli", "digest"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    today = datetime.now(UTC).date()
    assert run.stdout.startswith(f"gpufare {today}\nNOT PUBLISHED: ")
    assert run.stderr == f"the digest of {today} was posted\n"
    assert httpserver.log[0][0].get_json() == {"text": run.stdout.rstrip("\n")}
