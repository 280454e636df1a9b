"""``gpufare doctor --live`` on servers that behave and misbehave: what it says, and what it leaves alone."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline.contracts.outcome import SourceResult
from pipeline.health.doctor.live import examine_live, outcomes_table
from pipeline.home.paths import Home
from tests.conftest import gpufare
from tests.homes import PAGES
from tests.refresh.faulty_server import FaultyServer, refusing, says
from tests.scenario import BAD, LIMITS, Scenario, noon


def test_each_source_has_its_outcome_and_what_it_took_and_the_home_stays_as_it_was(
    scenario: Scenario,
) -> None:
    """Prices are judged as on a first day, but converted with the rates that the home has."""
    home = scenario.home(BAD)
    before = {path: path.read_bytes() for path in home.root.rglob("*") if path.is_file()}
    names = ["coreweave", "hyperstack", "modal", "primeintellect", "scaleway"]
    with FaultyServer(PAGES, {"coreweave": says(403)}) as server:
        options: dict[str, Any] = {"names": names, "environment": {}, "pages": server.base_url}
        report = examine_live(home, now=noon(BAD), limits=LIMITS, **options)
    assert {path: path.read_bytes() for path in home.root.rglob("*") if path.is_file()} == before
    rows = {row["source"]: row for row in outcomes_table(report).dicts()}
    facts = ("result", "accepted", "requests", "failed_requests", "code")
    assert {name: tuple(rows[name][fact] for fact in facts) for name in names} == {
        "coreweave": (SourceResult.REFUSED_BY_HOST, False, 1, 1, "http_403"),
        "hyperstack": (SourceResult.FRESH, True, 1, 0, None),
        "modal": (SourceResult.FRESH, True, 1, 0, None),
        "primeintellect": (SourceResult.NEEDS_KEY, False, 1, 1, "needs_key"),
        "scaleway": (SourceResult.FRESH, True, 18, 0, None),
    }
    assert rows["modal"]["bytes"] == (PAGES / "modal" / "pricing.html").stat().st_size
    step = "try from another network: hosts refuse VPNs and data centres"
    assert (rows["modal"]["next_step"], rows["coreweave"]["next_step"]) == (None, step)
    assert [each.source for each in report.failed] == ["coreweave"]


def test_many_that_fail_alike_are_one_line(tmp_path: Path) -> None:
    with refusing() as url:
        options: dict[str, Any] = {"names": ["modal", "ecb", "civo", "primeintellect"], "environment": {}}
        report = examine_live(Home(tmp_path), now=noon(BAD), limits=LIMITS, pages=url, **options)
    (shared,) = report.source_lines(recorded=False)
    assert shared.startswith(f"all 3 sources asked failed alike: {url} does not answer (connection_refused)")
    assert shared.endswith("; --format json has each error")
    assert (len(report.failed), len(report.asked)) == (3, 3)


def test_a_source_that_is_off_is_not_asked(tmp_path: Path) -> None:
    """With live pages and the choices in the home, nothing is sent."""
    home, names = Home(tmp_path), ["vast", "modal", "tensordock", "primeintellect"]
    assert gpufare("sources", "disable", "modal", home=home).returncode == 0
    report = examine_live(home, names=names, now=datetime.now(UTC), environment={})
    assert report.asked == []
    assert [line.split(";")[0] for line in report.off] == [
        "off because of their terms: vast",
        "off because you disabled them: modal",
        "off without a key: primeintellect",
        "retired: tensordock",
    ]


def test_the_command_fails_when_a_source_does(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with FaultyServer(PAGES, {"linode": says(404)}) as server:
        options = ("doctor", "--live", "--pages", server.base_url, "--source", "modal")
        answer = gpufare(*options, "--source", "linode", home=home)
        well = gpufare(*options, "--format", "jsonl", home=home)
    assert (answer.returncode, answer.stderr.splitlines()[-1]) == (1, "Error: 1 of 2 sources asked failed")
    (row,) = (json.loads(line) for line in well.stdout.splitlines())
    assert (well.returncode, row["source"], row["result"]) == (0, "modal", "fresh")
    assert not home.exists()
    for words in (("--source", "modal"), ("--live", "--all"), ("--live", "--pages", "folder")):
        refused = gpufare("doctor", *words, home=home)
        assert (refused.returncode != 0, "--live" in refused.stderr) == (True, True)
