"""Publishing where the cache of plans is damaged or cannot be written: all plans are computed again."""

import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.replay import capture_pages
from pipeline.catalog.source_config import source_config
from pipeline.home.paths import Home
from pipeline.record.incidents import kept_incidents
from pipeline.refresh.ingest import record_day
from pipeline.refresh.publishing import publish_day
from pipeline.warehouse.plan_cache import damage_of
from tests.conftest import PAGES

DAY = date(2026, 8, 22)
NOW = datetime(2026, 8, 22, 7, tzinfo=UTC)


@pytest.fixture
def home(small_homes: Callable[[Path], Home], tmp_path: Path) -> Home:
    home = small_homes(tmp_path / "home")
    for source in ("ecb", "crusoe"):
        config, archive = source_config(source), Archive(home.archive)
        record_day(config, DAY, [capture_pages(PAGES, config, day=DAY, archive=archive)], home)
    return home


def test_a_damaged_cache_is_reported_and_made_again(home: Home) -> None:
    spoilt = sorted(home.cache.iterdir())
    for path in spoilt:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    publish_day(home, DAY, NOW)
    assert {i.path for i in kept_incidents(home)} == {str(path.relative_to(home.root)) for path in spoilt}
    assert [damage_of(path) for path in home.cache.iterdir()] == [None]
    assert not (home.damaged / "cache").exists()


def test_publishing_continues_without_optional_history(home: Home) -> None:
    for folder in (home.record / "rankings", home.cache):
        shutil.rmtree(folder, ignore_errors=True)
        folder.write_text("in the way")
    report = publish_day(home, DAY, NOW)
    assert report.rows["cheapest_gpu_per_workload"] > 0
    places = {(i.kind.value, i.path) for i in report.incidents if i.kind == "unwritable"}
    assert ("unwritable", "record/rankings/2026-08.parquet") in places
    assert {path.split("/")[0] for _, path in places if path} == {"record", "cache"}
