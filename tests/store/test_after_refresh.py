"""The store beside the daily job: a refresh sends, never fails because of it, and continues elsewhere."""

import json
import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner, Result
from filelock import FileLock

from pipeline.capture.replay import PagesServer
from pipeline.cli.main import main
from pipeline.contracts.incidents import IncidentKind
from pipeline.health.doctor import examine
from pipeline.home import paths
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.orchestration.resources import GpufareHome
from pipeline.orchestration.tables import published_tables
from pipeline.record.incidents import kept_files, kept_incidents
from pipeline.refresh.demo import sample_days
from pipeline.refresh.refresh import refresh
from pipeline.refresh.storing import store_home
from pipeline.store import transfer
from pipeline.store.address import STORE_VARIABLE, StoreError, checked_address
from pipeline.store.home_files import sha256_of
from pipeline.store.publication import newest
from pipeline.store.pull import pull
from pipeline.warehouse.query import ask, reader
from tests.conftest import PAGES, shared_folder
from tests.store.conftest import DAY, NOW, S3, SECRET, bucket_at, capture, objects, record, sent, tiny_home
from tests.stress.homes import Lab
from tests.stress.market import Market


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "first"))
    return tiny_home(tmp_path / "first", sources=1)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["store", *arguments])


def store_findings(home: Home) -> list[str]:
    found = examine(home, now=datetime.now(UTC), environment=os.environ)
    return [f"{each.level} {each.what}" for each in found if each.check == "store"]


def answers(home: Home) -> list[list[tuple[object, ...]]]:
    with reader(home.published) as connection:
        return [
            sorted(ask(connection, f"FROM {table}").rows, key=str)
            for table in ("cheapest_gpu_per_workload", "offers", "source_health")
        ]


@pytest.mark.slow
def test_a_refresh_is_stored_and_the_next_publication_is_made_elsewhere(
    s3: S3,
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    lab = Lab(tmp_path, shared_folder(tmp_path_factory), Market("a store"))
    monkeypatch.setattr(paths, "CATALOG_DIR", lab.catalogue)
    first, second = lab.home("one", days=0), Home(tmp_path / "two")
    day = sample_days(PAGES)[0]
    with PagesServer(PAGES) as server:
        report = refresh(
            first, day=day, sources=["ecb", "verda"], pages=server.base_url, environment=os.environ
        )
        assert report.stored in report.lines()
        assert report.stored is not None
        assert report.stored.startswith(f"stored at {address}: 2 captures")
    assert pull(second, bucket_at(address), NOW).complete
    assert answers(second) == answers(first)

    shutil.copytree(first.cache, second.cache)
    resources = {"home": GpufareHome(root=str(second.root))}
    assert dg.materialize([published_tables], resources=resources).success
    pointed = newest(bucket_at(address))
    assert pointed is not None
    assert pointed.sha256 == sha256_of(second.published.read_bytes())
    assert pointed.as_of_day > day
    assert pull(first, bucket_at(address), NOW).complete
    assert answers(first) == answers(second)


def test_a_store_that_cannot_be_reached_is_an_incident_and_the_next_push_sends(
    s3: S3, address: str, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.store.bucket.RETRIES", 0)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:9/{SECRET}?signature={SECRET}")
    assert store_findings(home) == ["warn nothing of this home was sent to the store yet"]
    line = store_home(home, os.environ)
    assert line is not None
    assert line.startswith("warning: not stored: s3://")
    assert line.endswith("the next refresh sends it, or `gpufare store push`")
    (incident,) = [each for each in kept_incidents(kept_files(home)) if each.kind == IncidentKind.NOT_STORED]
    assert "cannot be listed" in incident.reason
    (behind,) = store_findings(home)
    assert behind.startswith("warn the store lacks 2 captures and 7 files of the record, and the published ")
    assert behind.endswith("never complete yet")

    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.url)
    assert "warning" not in str(store_home(home, os.environ))
    assert store_findings(home)[0].startswith("ok the store has everything (push 2")
    capture(home, "source0", b"more")
    record(home, "source0", DAY, "2")
    assert store_findings(home)[0].startswith("warn the store lacks 1 captures and 3 files of the record (")
    everything = [path.read_bytes() for path in home.root.rglob("*") if path.is_file()]
    assert all(SECRET.encode() not in content for content in everything)
    assert SECRET not in line


def test_each_conflict_is_an_incident(s3: S3, address: str, home: Home, tmp_path: Path) -> None:
    other = tiny_home(tmp_path / "other", sources=1)
    record(other, "source0", DAY, "2")
    sent(other, address)
    line = store_home(home, os.environ)
    assert "warning: not stored: offers/source0/" in str(line)
    (incident,) = [each for each in kept_incidents(kept_files(home)) if each.kind == IncidentKind.NOT_STORED]
    assert incident.path == f"offers/source0/{DAY}.parquet"
    assert "--replace" in incident.remedy


def test_without_a_store_nothing_is_sent_or_said(home: Home) -> None:
    assert store_home(home, {}) is None
    assert not home.store.exists()


def test_a_second_push_of_one_home_waits_and_says_so(
    s3: S3, address: str, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "LOCK_SECONDS", 0.0)
    home.store.mkdir()
    with FileLock(home.store / "push.lock"), pytest.raises(StoreError, match="another push or pull"):
        sent(home, address)


@pytest.mark.parametrize(
    "text",
    [
        "bucket/prefix",
        "https://bucket.example/prefix",
        "ftp://bucket/prefix",
        "s3://",
        f"s3://user:{SECRET}@bucket/prefix",
        f"s3://bucket/prefix?secret={SECRET}",
        "s3://bucket/../other",
        "s3://bucket/a b",
        "file://relative/folder",
        "file:///srv/../etc",
        "s3://[bucket/prefix",
    ],
)
def test_an_address_that_is_none_is_refused_without_repeating_it(text: str, home: Home) -> None:
    with pytest.raises(StoreError) as refused:
        checked_address(text)
    assert SECRET not in str(refused.value)
    assert "s3://BUCKET/PREFIX" in str(refused.value)
    assert "warning: not stored" in str(store_home(home, {STORE_VARIABLE: text}))


def test_a_slash_at_the_end_is_the_same_store() -> None:
    assert checked_address("s3://bucket/gpu/fare/") == checked_address("s3://bucket/gpu/fare")


def test_the_command_pushes_pulls_and_points(s3: S3, address: str, home: Home, tmp_path: Path) -> None:
    assert "4 objects" not in run("push").output
    assert run("push").output.startswith(f"stored at {address}: 0 captures and 0 files of the record are new")
    (row,) = json.loads(run("newest", "--format", "json").output)
    (published,) = objects(address, "duckdb")
    assert row["url"] == f"{address}/{published}"
    assert row["sha256"][:16] in published
    assert row["as_of_day"] == str(DAY)
    reader_home = tmp_path / "reader"
    assert "published as of" in run("pull", "--published-only", str(reader_home)).output
    assert (reader_home / "published" / "gpufare.duckdb").read_bytes() == home.published.read_bytes()
    disk = f"file://{tmp_path}/disk"
    assert f"stored at {disk}" in run("--store", disk, "push").output


def test_the_command_fails_where_something_was_left_out(s3: S3, home: Home) -> None:
    (home.root / "rankings").symlink_to(home.offers)
    pushed = run("push")
    assert pushed.exit_code == 1
    assert "not stored: rankings: a link" in pushed.output
    assert "Error: 1 not stored" in pushed.output


def test_the_command_says_what_is_missing(s3: S3, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = run("newest")
    assert nothing.exit_code == 1
    assert "nothing is published at s3://" in nothing.output
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    assert "install gpufare[store]" in run("push").output
    monkeypatch.delenv(STORE_VARIABLE)
    assert "no store is named: set GPUFARE_STORE" in run("push").output
