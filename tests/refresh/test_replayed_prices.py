"""Prices of saved pages beside live ones: the same ranking, and everybody who reads it learns which they are;
and the sources that are off while people still see their prices."""

import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pipeline.capture.archive import Archive
from pipeline.capture.index import read_body
from pipeline.capture.permissions import Choices, why_off
from pipeline.capture.replay import page_entries
from pipeline.catalog.source_config import configs, source_config
from pipeline.cli.main import main
from pipeline.health.source_states import source_states
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.record.records import Records
from pipeline.refresh.inputs import ARCHIVE
from pipeline.refresh.permissions import disable, enable
from pipeline.refresh.refresh import refresh
from pipeline.refresh.report import RefreshReport
from tests.conftest import PAGES
from tests.pages_server import PagesServer

OBSERVED = date(2026, 8, 22)
NOW = datetime.now(UTC)
TODAY = NOW.date()
JOB = ("cheapest", "--model", "llama-3.1-8b", "--method", "qlora", "--tokens", "100M")


def live(home: Home, *names: str) -> RefreshReport:
    """The report of a refresh whose answers, those of the sample pages, came from the providers today."""
    for name in names:
        writer = Archive(home.archive).start(name, TODAY)
        for entry in page_entries(PAGES / name, source_config(name)):
            body = read_body(PAGES / name, entry) if entry.file else None
            writer.add(entry.model_copy(update={"observed_at": NOW, "file": None}), body)
        writer.finish()
    return refresh(home, day=TODAY, sources=names, pages=ARCHIVE, environment={}, now=NOW)


def replayed(home: Home, *names: str, day: date = TODAY) -> RefreshReport:
    with PagesServer(PAGES) as server:
        return refresh(home, day=day, sources=names, pages=server.base_url, environment={}, now=NOW)


def said(report: RefreshReport) -> list[str]:
    return [line for line in report.lines() if "replayed from saved pages" in line]


@pytest.fixture(scope="module")
def mixed(
    tmp_path_factory: pytest.TempPathFactory, small_homes: Callable[[Path], Home]
) -> tuple[Home, RefreshReport]:
    """RunPod's live prices, then Lambda's and Hyperstack's of August under today's date."""
    home = small_homes(tmp_path_factory.mktemp("mixed") / "home")
    assert said(live(home, "runpod")) == []
    return home, replayed(home, "lambda", "hyperstack")


@pytest.fixture
def mixed_home(mixed: tuple[Home, RefreshReport], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    home = Home(Path(shutil.copytree(mixed[0].root, tmp_path / "home")))
    monkeypatch.setenv(HOME_VARIABLE, str(home.root))
    for name in {name for config in configs().values() for name in config.key_variables}:
        monkeypatch.delenv(name, raising=False)
    return home


def gpufare(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_a_refresh_says_what_was_replayed_beside_live_prices(mixed: tuple[Home, RefreshReport]) -> None:
    (line,) = said(mixed[1])
    assert line.endswith(f": hyperstack, lambda (observed on {OBSERVED})")
    assert mixed[1].published_day == TODAY


def test_a_live_refresh_says_what_was_replayed_before(mixed_home: Home) -> None:
    (line,) = said(live(mixed_home, "lambda"))
    assert line.endswith(f": hyperstack (observed on {OBSERVED})")


def test_saved_pages_alone_of_their_own_day_are_what_they_say(small_home: Home) -> None:
    home = small_home
    assert said(replayed(home, "lambda", day=OBSERVED)) == []
    assert all("replayed" not in (row["why"] or "") for row in source_states(home, TODAY, {}).dicts())


def test_the_sources_say_which_were_replayed(mixed_home: Home) -> None:
    rows = {row["source"]: row["why"] or "" for row in source_states(mixed_home, TODAY, {}).dicts()}
    assert [name for name, why in rows.items() if "replayed" in why] == ["hyperstack", "lambda"]
    assert f"replayed from saved pages (observed on {OBSERVED})" in rows["lambda"]
    assert "lambda: its prices were replayed" in gpufare("sources").output


def test_the_cheapest_says_when_its_price_was_replayed(mixed_home: Home) -> None:
    trust = gpufare(*JOB).stdout.splitlines()[-1]
    assert f"Price seen {TODAY} at https://api.runpod.io" in trust
    assert "replayed" not in trust
    Records(mixed_home).remove("runpod")
    refresh(mixed_home, day=TODAY, sources=["lambda"], pages=ARCHIVE, environment={}, now=NOW)
    trust = gpufare(*JOB).stdout.splitlines()[-1]
    assert f"Price seen {OBSERVED} at" in trust
    assert "CAREFUL: the price was replayed from a saved page" in trust


def test_the_cheapest_says_which_sources_are_off(mixed_home: Home) -> None:
    forbidden = [c.name for c in configs().values() if why_off(c, Choices(), {}) and c.disabled is None]
    asked = gpufare(*JOB)
    assert f"not asked because of their terms: {', '.join(forbidden)} (see gpufare sources)" in asked.stderr
    assert "not asked" not in asked.stdout
    assert "not asked" not in gpufare(*JOB, "--format", "json").stderr
    enable(forbidden, mixed_home, TODAY, {})
    disable(["runpod", "linode"], mixed_home, TODAY)
    note = gpufare(*JOB).stderr
    assert "not asked because you disabled them: runpod (" in note, "Linode never had a price"
    enable(["runpod"], mixed_home, TODAY, {})
    assert "not asked" not in gpufare(*JOB).stderr
