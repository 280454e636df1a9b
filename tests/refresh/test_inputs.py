"""The sources, the day and the answers of a refresh; what is refused, and that nothing is kept then."""

import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline.catalog.source_config import asked_configs, source_config
from pipeline.contracts.errors import GpufareError
from pipeline.home.paths import Home
from pipeline.refresh.inputs import chosen_sources, day_to_read
from pipeline.refresh.refresh import refresh
from tests.homes import PAGES
from tests.pages_server import PagesServer

DAY = date(2026, 8, 22)
NEXT_DAY = DAY + timedelta(days=1)


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """Crusoe's saved page, in a folder with a folder of no source."""
    shutil.copytree(PAGES / "crusoe", tmp_path / "pages" / "crusoe")
    (tmp_path / "pages" / "notes").mkdir()
    return tmp_path / "pages"


def refusal(*arguments: Any, **options: Any) -> str:
    """The error of a refresh of Crusoe, as of the morning of the day."""
    now = datetime(2026, 8, 22, 6, tzinfo=UTC)
    with pytest.raises(GpufareError) as refused:
        refresh(*arguments, **({"sources": ("crusoe",), "environment": {}, "now": now} | options))
    return str(refused.value)


def test_a_day_after_today_is_refused_wherever_the_answers_come_from(tmp_path: Path, pages: Path) -> None:
    home = Home(tmp_path / "home")
    refused = f"--day {NEXT_DAY} is after today ({DAY} UTC); check it, and the clock of this machine"
    with PagesServer(pages) as server:
        for origin in (None, str(pages), server.base_url, "archive"):
            assert refusal(home, day=NEXT_DAY, pages=origin) == refused
    yesterday = datetime(2026, 8, 21, 23, 59, tzinfo=UTC)
    assert f"observed_at of a saved answer, {DAY} is after" in refusal(home, pages=str(pages), now=yesterday)
    assert not home.root.exists()


def test_a_day_is_that_of_the_saved_answers_or_today(pages: Path) -> None:
    crusoe, other = source_config("crusoe"), pages / "other"
    other.mkdir()
    assert day_to_read(None, [crusoe], str(pages), NEXT_DAY) == DAY
    assert day_to_read(NEXT_DAY, [crusoe], str(pages), NEXT_DAY) == NEXT_DAY
    for origin in (None, "archive", "http://127.0.0.1:8000", "https://localhost"):
        assert day_to_read(None, [crusoe], origin, NEXT_DAY) == NEXT_DAY
    assert day_to_read(None, [], str(pages), NEXT_DAY) == NEXT_DAY


def test_sources_are_the_named_ones_or_those_with_pages_or_all_that_may_be_asked(pages: Path) -> None:
    assert chosen_sources([], None) == list(asked_configs().values())
    assert "imported" not in asked_configs()
    named = ["modal", "tensordock"]
    assert chosen_sources(named, None) == [source_config(name) for name in named]
    assert chosen_sources([], str(pages)) == [source_config("crusoe")]
    assert chosen_sources(["imported"], "archive") == [source_config("imported")]
    no, none = f"{pages / 'no'}", f"{pages / 'notes'}"
    refused = [
        ("imported", None, "imported has no pages to ask: gpufare import FILE.csv brings its prices"),
        ("modal", no, f"--pages {no}: no such folder"),
        ("crusoe modal vast", f"{pages}", f"--pages {pages} has no folder for modal, vast"),
        ("", none, f"--pages {none}: none of its folders has the name of a source"),
    ]
    for names, origin, message in refused:
        with pytest.raises(GpufareError) as error:
            chosen_sources(names.split(), origin)
        assert str(error.value) == message
