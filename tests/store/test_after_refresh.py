"""The bucket beside the daily job: a refresh sends what it published, and never fails because of that."""

import json
import sys
from pathlib import Path
from urllib.parse import quote

import duckdb
import pytest

from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.record.incidents import kept_incidents
from pipeline.refresh.demo import sample_days
from pipeline.refresh.publishing import store_published
from pipeline.refresh.refresh import refresh
from pipeline.store.address import STORE_VARIABLE, StoreError, checked_address
from tests.conftest import PAGES, gpufare
from tests.pages_server import PagesServer
from tests.store.conftest import DAY, SECRET, objects


def not_stored(home: Home) -> list[Incident]:
    return [each for each in kept_incidents(home) if each.kind == IncidentKind.NOT_STORED]


def test_a_refresh_sends_what_it_published(small_home: Home, address: str) -> None:
    day = sample_days(PAGES)[0]
    environment = {STORE_VARIABLE: address}
    with PagesServer(PAGES) as server:
        report = refresh(
            small_home, day=day, sources=["ecb", "verda"], pages=server.base_url, environment=environment
        )
    assert report.stored in report.lines()
    assert str(report.stored).startswith(f"stored at {address}: database as of {day}")
    assert small_home.published.read_bytes() in objects(address).values()


def test_a_bucket_that_cannot_be_reached_is_an_incident_and_the_next_refresh_sends(
    address: str, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.store.bucket.RETRIES", 0)
    quoted = quote(SECRET, safe="")
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ENDPOINT_URL", f"http://127.0.0.1:9/{SECRET}/{quoted}?signature={SECRET}"),
    ):
        monkeypatch.setenv(name, value)
    line = store_published(home, {STORE_VARIABLE: "s3://bucket/gpu/fare"})
    assert line is not None
    assert line.startswith("warning: not stored: s3://bucket/gpu/fare/newest.json cannot be read")
    assert line.endswith("the next refresh sends it, or `gpufare store publish`")
    (incident,) = not_stored(home)
    assert "/${AWS_SECRET_ACCESS_KEY}/${AWS_SECRET_ACCESS_KEY} in " in incident.reason
    everything = [path.read_bytes() for path in home.root.rglob("*") if path.is_file()]
    assert all(SECRET.encode() not in content for content in everything)
    assert SECRET not in line
    assert str(store_published(home, {STORE_VARIABLE: f" {address}/ "})).startswith(f"stored at {address}: ")


def test_what_is_not_published_is_not_sent(address: str, home: Home, tmp_path: Path) -> None:
    """Without a bucket or a published file nothing is said; a damaged file is an incident."""
    assert store_published(home, {}) is None
    empty = Home(tmp_path / "empty")
    assert store_published(empty, {STORE_VARIABLE: address}) is None
    assert not empty.root.exists()
    home.published.write_bytes(b"no database")
    assert "warning: not stored: " in str(store_published(home, {STORE_VARIABLE: address}))
    assert objects(address) == {}


def test_an_address_that_is_none_is_refused_without_repeating_it(home: Home) -> None:
    addresses = [
        "bucket/prefix", "https://bucket.example/prefix", "ftp://bucket/prefix", "s3://",
        f"s3://user:{SECRET}@bucket/prefix", f"s3://bucket/prefix?secret={SECRET}",
        f"s3://bucket/prefix#{SECRET}", "s3://bucket/../other", "s3://bucket//other", "s3://bucket/a b",
        "s3://[bucket/prefix", "file://relative/folder", "file:///srv/../etc", "file:///srv/..", "file:///",
    ]  # fmt: skip
    for text in addresses:
        with pytest.raises(StoreError, match="it must be s3://BUCKET/PREFIX, gs://BUCKET/PREFIX") as refused:
            checked_address(text)
        assert SECRET not in str(refused.value)
        assert "warning: not stored" in str(store_published(home, {STORE_VARIABLE: text}))
    for text in ("s3://bucket", "gs://b.u-c_ket/gpu/fare", "az://c/p", "file:///srv/a b/.c"):
        assert checked_address(f"{text}/") == checked_address(text) == text


def test_the_command_writes_where_it_is_told(home: Home, tmp_path: Path, address: str) -> None:
    assert f"stored at {address}" in gpufare("store", "--store", address, "publish", home=home).stdout
    (row,) = json.loads(gpufare("store", "--store", address, "newest", "--format", "json").stdout)
    assert row["as_of_day"] == str(DAY)
    with duckdb.connect(row["url"].removeprefix("file://"), read_only=True) as connection:
        assert connection.sql("SELECT as_of_day FROM publication").fetchall() == [(DAY,)]


def test_the_command_says_what_is_missing(address: str, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(home.root))
    assert "no bucket is named: set GPUFARE_STORE" in gpufare("store", "publish").stderr
    monkeypatch.setenv(STORE_VARIABLE, address)
    assert "nothing is published at file://" in gpufare("store", "newest").stderr
    monkeypatch.delitem(sys.modules, "pipeline.store.bucket", raising=False)
    monkeypatch.setitem(sys.modules, "obstore", None)
    assert "which is not installed: make .venv/.ready" in gpufare("store", "publish").stderr
