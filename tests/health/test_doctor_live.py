"""``gpufare doctor --live`` on servers that behave and misbehave: what it says, and what it leaves alone."""

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from pipeline.capture.http.client import Limits
from pipeline.contracts.outcome import SourceResult
from pipeline.health.doctor.live import examine_live, outcomes_table
from pipeline.home.paths import Home
from pipeline.refresh.refresh import refresh
from tests.conftest import PAGES, gpufare
from tests.pages_server import PagesServer
from tests.refresh.faulty_server import FaultyServer, redirects_to, refusing, says

NOW = datetime(2026, 8, 22, 12, tzinfo=UTC)
DAY = date(2026, 8, 22)
LIMITS = Limits(read_seconds=2, body_bytes=2**21, backoff_seconds=0.01, backoff_max_seconds=0.02)
NAMES = ("verda", "scaleway", "ecb", "modal")


def test_each_source_has_its_outcome_and_what_it_took_and_the_home_stays_as_it_was(tmp_path: Path) -> None:
    """The home has a day's prices and rates already."""
    home = Home(tmp_path)
    with PagesServer(PAGES) as server:
        refresh(home, day=DAY, sources=["ecb"], pages=server.base_url, environment={}, now=NOW)
        before = {path: path.read_bytes() for path in home.root.rglob("*") if path.is_file()}
        report = examine_live(home, names=NAMES, now=NOW, environment={}, pages=server.base_url)
    assert {path: path.read_bytes() for path in home.root.rglob("*") if path.is_file()} == before
    assert not report.failed
    (modal,) = (row for row in outcomes_table(report).dicts() if row["source"] == "modal")
    assert (modal["result"], modal["accepted"], modal["requests"]) == (SourceResult.FRESH, True, 1)
    assert modal["next_step"] is None
    assert modal["bytes"] == (PAGES / "modal" / "pricing.html").stat().st_size
    (line,) = (line for line in report.source_lines(recorded=False) if line.startswith("modal"))
    assert f"accepted  {modal['rows']} offers, {modal['rejects']} rejected; 1 request, " in line
    assert line.endswith(f" kB in {modal['duration_seconds']:.1f} s")


def test_failure_names_its_reason_and_what_to_do(tmp_path: Path) -> None:
    faults = {
        "coreweave": says(403, b"<h1>Forbidden</h1>", content_type="text/html"),
        "cudo": says(200, b"<html>", content_type="text/html"),
        "hyperstack": redirects_to("http://elsewhere.invalid/"),
        "gcp": says(200, b"", content_type="text/html"),
    }
    names = [*faults, "primeintellect", "modal"]
    with FaultyServer(PAGES, faults) as server:
        asked = {"names": names, "environment": {}, "pages": server.base_url}
        report = examine_live(Home(tmp_path), now=NOW, limits=LIMITS, **asked)  # type: ignore[arg-type]
    assert {outcome.source for outcome in report.failed} == set(faults)
    lines = {line.split()[0]: line for line in report.source_lines(recorded=False)}
    assert "NOT ACCEPTED  http_403: " in lines["coreweave"]
    assert " -> try from another network" in lines["coreweave"]
    assert "sent an HTML page as text/html, expected application/json" in lines["cudo"]
    assert "elsewhere.invalid" in lines["hyperstack"]
    assert "; 1 request, 0 bytes in " in lines["gcp"]
    assert "not asked  needs a key -> set PRIME_API_KEY" in lines["primeintellect"]


def test_many_that_fail_alike_are_one_line(tmp_path: Path) -> None:
    with refusing() as url:
        asked = {"names": ["modal", "ecb", "civo", "primeintellect"], "environment": {}, "pages": url}
        report = examine_live(Home(tmp_path), now=NOW, limits=LIMITS, **asked)  # type: ignore[arg-type]
    shared = report.source_lines(recorded=False)[0]
    assert shared.startswith(f"all 3 sources asked failed alike: {url} does not answer")
    assert shared.endswith("; --format json has each error")
    assert (len(report.failed), len(report.asked)) == (3, 3)


def test_a_source_that_is_off_is_not_asked(tmp_path: Path) -> None:
    """With live pages and the choices in the home, nothing is sent."""
    home, now = Home(tmp_path), datetime.now(UTC)
    assert gpufare("sources", "disable", "modal", home=home).returncode == 0
    names = ["vast", "modal", "tensordock", "primeintellect"]
    report = examine_live(home, names=names, now=now, environment={})
    assert report.asked == []
    assert [line.split(";")[0] for line in report.off[:2]] == [
        "off because of their terms: vast",
        "off because you disabled them: modal",
    ]


# ------------------------------------------------------------------ the command


def test_the_command_fails_when_a_source_does(tmp_path: Path) -> None:
    with FaultyServer(PAGES, {"linode": says(404)}) as server:
        ask = ("doctor", "--live", "--pages", server.base_url, "--source", "modal")
        home = tmp_path / "home"
        answer = gpufare(*ask, "--source", "linode", home=home)
        well = gpufare(*ask, "--format", "jsonl", home=home)
    assert answer.returncode == 1
    assert answer.stderr.splitlines()[-1] == "Error: 1 of 2 sources asked failed"
    assert well.returncode == 0
    (row,) = (json.loads(line) for line in well.stdout.splitlines())
    assert (row["source"], row["result"]) == ("modal", "fresh")
    assert not home.exists()


@pytest.mark.parametrize(
    "arguments",
    [("--source", "modal"), ("--live", "--all"), ("--live", "--pages", "folder")],
)
def test_options_that_do_not_go_together(arguments: tuple[str, ...], tmp_path: Path) -> None:
    answer = gpufare("doctor", *arguments, home=tmp_path)
    assert answer.returncode != 0
    assert "--live" in answer.stderr
