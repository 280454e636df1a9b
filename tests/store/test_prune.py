"""Old published files go; the newest, the last few, and those that a reader may be in the middle of stay."""

from datetime import date, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeline.cli.main import main
from pipeline.home.paths import Home
from pipeline.store.address import StoreError
from pipeline.store.prune import RETIRED, Pruned, prune
from pipeline.store.publication import newest
from tests.store.conftest import DAY, NOW, S3, bucket_at, objects, overwrite, publish, sent, tiny_home

FILES = 5
LAST = DAY + timedelta(days=FILES - 1)


@pytest.fixture
def store(s3: S3, address: str, tmp_path: Path) -> str:
    """With one published file for each of some days."""
    home = tiny_home(tmp_path / "home", sources=1)
    for number in range(FILES):
        publish(home, DAY + timedelta(days=number))
        sent(home, address)
    return address


def days(address: str) -> list[date]:
    return sorted(date.fromisoformat(name[18:28]) for name in objects(address, ".duckdb"))


def pruned(address: str, after_days: float, **options: int) -> Pruned:
    options = {"keep": 1, **options}
    return prune(bucket_at(address), NOW + timedelta(days=after_days), **options)


def test_a_file_goes_once_its_grace_is_over_and_not_the_newest(s3: S3, store: str) -> None:
    first = pruned(store, 0)
    assert (len(first.deleted), len(first.kept), len(first.waiting)) == (0, 1, FILES - 1)
    assert len(pruned(store, 6.9).waiting) == FILES - 1
    others = objects(store, "record") | objects(store, "archive") | objects(store, "pushes")
    found = pruned(store, 7)
    assert (len(found.deleted), found.waiting) == (FILES - 1, ())
    assert found.deleted_bytes > 0
    assert days(store) == [LAST]
    assert objects(store, "record") | objects(store, "archive") | objects(store, "pushes") == others
    assert pruned(store, 8).deleted == ()
    pointed = newest(bucket_at(store))
    assert pointed is not None
    assert pointed.name in objects(store)


def test_the_newest_few_stay(s3: S3, store: str) -> None:
    pruned(store, 0)
    assert len(pruned(store, 30, keep=3).deleted) == FILES - 3
    assert days(store) == [LAST - timedelta(days=2), LAST - timedelta(days=1), LAST]


def test_a_file_that_was_replaced_since_the_last_prune_waits(s3: S3, store: str, tmp_path: Path) -> None:
    """Though it is older than the days of grace: a reader may have begun with it a moment ago."""
    pruned(store, 0)
    home = Home(tmp_path / "home")
    publish(home, LAST + timedelta(days=1))
    sent(home, store)
    assert len(pruned(store, 30).deleted) == FILES - 1
    assert days(store) == [LAST, LAST + timedelta(days=1)]


def test_a_damaged_list_keeps_files_for_longer(s3: S3, store: str) -> None:
    pruned(store, 0)
    overwrite(store, RETIRED, b"{")
    assert pruned(store, 30).deleted == ()
    assert len(pruned(store, 37).deleted) == FILES - 1


def test_without_a_pointer_or_beside_a_publication_nothing_is_deleted(
    s3: S3, store: str, tmp_path: Path
) -> None:
    pruned(store, 0)
    home = Home(tmp_path / "home")
    publish(home, LAST + timedelta(days=1))
    s3.once("GET", "retired.json", lambda: sent(home, store))
    with pytest.raises(StoreError, match="somebody publishes"):
        prune(bucket_at(store), NOW + timedelta(days=30), keep=1, grace=timedelta(0))
    assert len(days(store)) == FILES + 1
    overwrite(store, "published/newest.json", b"{")
    with pytest.raises(StoreError, match="damaged"):
        pruned(store, 60)
    overwrite(store, "published/newest.json", None)
    with pytest.raises(StoreError, match="nothing is published"):
        pruned(store, 60)
    assert len(days(store)) == FILES + 1


def test_a_pruned_publication_is_sent_again_when_it_is_to_be_the_newest(
    s3: S3, store: str, tmp_path: Path
) -> None:
    home = Home(tmp_path / "home")
    publish(home, DAY)
    pruned(store, 0)
    pruned(store, 7)
    overwrite(store, "published/newest.json", b"{")
    sent(home, store, replace=True)
    pointed = newest(bucket_at(store))
    assert pointed is not None
    assert pointed.as_of_day == DAY
    assert pointed.name in objects(store)


def test_the_command(s3: S3, store: str) -> None:
    found = CliRunner().invoke(main, ["store", "prune", "--keep", "2", "--grace-days", "0"])
    assert found.output.startswith(f"deleted {FILES - 2} published files (")
    assert "2 are kept, 0 more" in found.output
    assert days(store) == [LAST - timedelta(days=1), LAST]
