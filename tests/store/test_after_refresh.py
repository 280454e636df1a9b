"""The bucket beside the daily job: a refresh sends what it published, and never fails because of that."""

import json
import os
import sys
from pathlib import Path
from urllib.parse import quote

import dagster as dg
import duckdb
import pytest

from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.home import paths
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.orchestration.resources import GpufareHome
from pipeline.orchestration.tables import published_tables
from pipeline.record.incidents import kept_incidents
from pipeline.refresh.demo import sample_days
from pipeline.refresh.publishing import store_published
from pipeline.refresh.refresh import refresh
from pipeline.store.address import STORE_VARIABLE, StoreError, checked_address
from pipeline.store.publication import bucket_at, newest
from tests.conftest import PAGES, gpufare, shared_folder
from tests.nightly.stress.homes import Lab
from tests.nightly.stress.market import Market
from tests.pages_server import PagesServer
from tests.store.conftest import DAY, S3, SECRET, objects, overwrite, sent


def not_stored(home: Home) -> list[Incident]:
    return [each for each in kept_incidents(home) if each.kind == IncidentKind.NOT_STORED]


@pytest.mark.slow
def test_a_refresh_and_a_publication_of_dagster_are_sent(
    s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    address = os.environ[STORE_VARIABLE]
    lab = Lab(tmp_path, shared_folder(tmp_path_factory), Market("a store"))
    monkeypatch.setattr(paths, "CATALOG_DIR", lab.catalogue)
    home = lab.home("one", days=0)
    day = sample_days(PAGES)[0]
    with PagesServer(PAGES) as server:
        report = refresh(
            home, day=day, sources=["ecb", "verda"], pages=server.base_url, environment=os.environ
        )
    assert report.stored in report.lines()
    assert str(report.stored).startswith(f"stored at {address}: database as of {day}")

    resources = {"home": GpufareHome(root=str(home.root))}
    assert dg.materialize([published_tables], resources=resources).success
    pointed = newest(bucket_at(address))
    assert pointed is not None
    assert pointed.as_of_day > day
    assert objects(address)[pointed.database.name] == home.published.read_bytes()


def test_a_bucket_that_cannot_be_reached_is_an_incident_and_the_next_refresh_sends(
    s3: S3, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.store.bucket.RETRIES", 0)
    quoted = quote(SECRET, safe="")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:9/{SECRET}/{quoted}?signature={SECRET}")
    line = store_published(home, os.environ)
    assert line is not None
    assert line.startswith("warning: not stored: s3://")
    assert line.endswith("the next refresh sends it, or `gpufare store publish`")
    (incident,) = not_stored(home)
    assert "newest.json cannot be read" in incident.reason
    assert "/${AWS_SECRET_ACCESS_KEY}/${AWS_SECRET_ACCESS_KEY} in " in incident.reason

    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.url)
    assert "warning" not in str(store_published(home, os.environ))
    everything = [path.read_bytes() for path in home.root.rglob("*") if path.is_file()]
    assert all(SECRET.encode() not in content for content in everything)
    assert SECRET not in line


def test_a_damaged_pointer_is_an_incident_that_says_what_to_do(s3: S3, home: Home) -> None:
    sent(home, os.environ[STORE_VARIABLE])
    overwrite(os.environ[STORE_VARIABLE], "newest.json", b"{")
    assert "warning: not stored: s3://" in str(store_published(home, os.environ))
    (incident,) = not_stored(home)
    assert "newest.json is damaged: delete it, and run `gpufare store publish`" in incident.reason


def test_a_damaged_published_file_is_not_sent(s3: S3, home: Home) -> None:
    home.published.write_bytes(b"no database")
    assert "warning: not stored: " in str(store_published(home, os.environ))
    assert objects(os.environ[STORE_VARIABLE]) == {}


def test_without_a_bucket_or_a_published_file_nothing_is_sent_or_said(
    s3: S3, home: Home, tmp_path: Path
) -> None:
    assert store_published(home, {}) is None
    empty = Home(tmp_path / "empty")
    assert store_published(empty, os.environ) is None
    assert not empty.root.exists()


@pytest.mark.parametrize(
    "text",
    [
        "bucket/prefix",
        "https://bucket.example/prefix",
        "ftp://bucket/prefix",
        "s3://",
        f"s3://user:{SECRET}@bucket/prefix",
        f"s3://bucket/prefix?secret={SECRET}",
        f"s3://bucket/prefix#{SECRET}",
        "s3://bucket/../other",
        "s3://bucket//other",
        "s3://bucket/a b",
        "file://relative/folder",
        "file:///srv/../etc",
        "file:///srv/..",
        "file:///",
        "s3://[bucket/prefix",
    ],
)
def test_an_address_that_is_none_is_refused_without_repeating_it(text: str, home: Home) -> None:
    with pytest.raises(StoreError) as refused:
        checked_address(text)
    assert SECRET not in str(refused.value)
    assert "s3://BUCKET/PREFIX" in str(refused.value)
    assert "warning: not stored" in str(store_published(home, {STORE_VARIABLE: text}))


@pytest.mark.parametrize("text", ["s3://bucket", "gs://b.u-c_ket/gpu/fare", "az://c/p", "file:///srv/a b/.c"])
def test_a_slash_at_the_end_is_the_same_bucket(text: str) -> None:
    assert checked_address(f"{text}/") == checked_address(text) == text


def test_the_command_sends_page_and_export_and_says_where_they_are(
    s3: S3, sample_home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    address = os.environ[STORE_VARIABLE]
    told = gpufare("store", "publish", "--page", "--export", "parquet", home=sample_home)
    assert told.stdout.startswith(f"stored at {address}: database, page, parquet as of "), told.stderr
    rows = json.loads(gpufare("store", "newest", "--format", "json").stdout)
    stored = objects(address)
    found = {row["part"]: stored[row["url"].removeprefix(f"{address}/")] for row in rows}
    assert found["database"] == sample_home.published.read_bytes()
    assert found["page"].startswith(b"<!doctype html>")
    folder = next(row["url"] for row in rows if row["part"] == "parquet").removesuffix("/datapackage.json")
    for resource in json.loads(found["parquet"])["resources"]:
        content = stored[f"{folder}/{resource['path']}".removeprefix(f"{address}/")]
        assert len(content) == resource["bytes"]
    assert "has what is published here" in gpufare("store", "publish", "--page", home=sample_home).stdout


def test_the_command_writes_where_it_is_told(s3: S3, home: Home, tmp_path: Path) -> None:
    disk = f"file://{tmp_path}/disk"
    assert f"stored at {disk}" in gpufare("store", "--store", disk, "publish", home=home).stdout
    assert objects(os.environ[STORE_VARIABLE]) == {}
    (row,) = json.loads(gpufare("store", "--store", disk, "newest", "--format", "json").stdout)
    assert row["as_of_day"] == str(DAY)
    with duckdb.connect(row["url"].removeprefix("file://"), read_only=True) as connection:
        assert connection.sql("SELECT as_of_day FROM publication").fetchall() == [(DAY,)]


def test_the_command_says_what_is_missing(s3: S3, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(home.root))
    nothing = gpufare("store", "newest")
    assert nothing.returncode == 1
    assert "nothing is published at s3://" in nothing.stderr
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "pipeline.store.bucket", raising=False)
        patch.setitem(sys.modules, "obstore", None)
        assert "install gpufare[store]" in gpufare("store", "publish").stderr
    monkeypatch.delenv(STORE_VARIABLE)
    assert "no bucket is named: set GPUFARE_STORE" in gpufare("store", "publish").stderr
