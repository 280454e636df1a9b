"""Prices of saved pages beside live ones, and of sources that are off: who reads a ranking learns which."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.index import read_body
from pipeline.capture.permissions import Choices, why_off
from pipeline.capture.replay import page_entries
from pipeline.catalog.source_config import configs, source_config
from pipeline.home.paths import Home
from pipeline.refresh.inputs import ARCHIVE
from pipeline.refresh.permissions import disable, enable
from pipeline.refresh.refresh import refresh
from tests.conftest import gpufare
from tests.homes import PAGES
from tests.scenario import BAD, GOOD

NOW = datetime.now(UTC)
TODAY = NOW.date()
JOB = ("cheapest", "--model", "llama-3.1-8b", "--method", "qlora", "--tokens", "100M")
REPLAYED = "among them, replayed from saved pages and no live prices: "


@pytest.fixture
def mixed(copy_of: Callable[..., Home], monkeypatch: pytest.MonkeyPatch) -> Home:
    """RunPod's prices came from the provider today; those of the others were replayed in August."""
    for name in {name for config in configs().values() for name in config.key_variables}:
        monkeypatch.delenv(name, raising=False)
    home = copy_of(BAD)
    writer = Archive(home.archive).start("runpod", TODAY)
    for entry in page_entries(PAGES / "runpod", source_config("runpod")):
        body = read_body(PAGES / "runpod", entry)
        writer.add(entry.model_copy(update={"observed_at": NOW, "file": None}), body)
    writer.finish()
    return home


def test_people_learn_which_prices_were_replayed_and_which_sources_are_off(mixed: Home) -> None:
    before = gpufare(*JOB, home=mixed).stdout
    assert "replayed" not in before, "saved pages alone, of their own day, are what they say"
    report = refresh(mixed, day=TODAY, sources=["runpod"], pages=ARCHIVE, environment={}, now=NOW)
    good = f"crusoe, hyperstack, lambda, linode, salad, together (observed on {GOOD})"
    assert report.lines()[-1] == f"{REPLAYED}{good}, cudo, scaleway, vast (observed on {BAD})"
    assert report.published_day == TODAY

    sources = " ".join(gpufare("sources", home=mixed).stdout.split())
    assert f"omit them; its prices were replayed from saved pages (observed on {GOOD})" in sources

    # RunPod's price is live, and its terms forbid to ask it again; saved pages need no permission.
    off = [each.name for each in configs().values() if why_off(each, Choices(), {}) and not each.disabled]
    forbidden = [name for name in off if name not in ("crusoe", "vast")]
    asked = gpufare(*JOB, home=mixed)
    trust = asked.stdout.splitlines()[-1]
    assert (f"Price seen {TODAY} at https://api.runpod.io" in trust, "replayed" in trust) == (True, False)
    assert f"not asked because of their terms: {', '.join(forbidden)} (see gpufare sources)" in asked.stderr
    assert "not asked" not in gpufare(*JOB, "--format", "json", home=mixed).stderr
    enable(forbidden, mixed, TODAY, {})
    disable(["runpod", "akash"], mixed, TODAY)
    note = gpufare(*JOB, home=mixed).stderr
    assert "not asked because you disabled them: runpod (" in note, "Akash never had a price"


def test_the_cheapest_says_that_its_price_was_replayed(mixed: Home) -> None:
    """A page observed in August, filed under today."""
    refresh(mixed, day=TODAY, sources=["lambda"], pages=str(PAGES), environment={}, now=NOW)
    trust = gpufare(*JOB, home=mixed).stdout.splitlines()[-1]
    assert f"Price seen {GOOD} at" in trust
    assert "CAREFUL: the price was replayed from a saved page" in trust
