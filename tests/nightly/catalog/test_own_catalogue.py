"""Builds after one with a user's own GPUs and workloads."""

import re
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline.catalog.own import OwnCatalogue, read_own_catalogue
from pipeline.home import paths
from pipeline.home.paths import Home
from pipeline.warehouse.build import build
from pipeline.warehouse.plan_cache import kept_file
from pipeline.warehouse.query import ask, reader
from tests.catalog.test_own_catalogue import DAY, LABEL, NOW, OF_LABEL, published  # noqa: F401 - a fixture


@pytest.fixture
def home(published: tuple[Home, Any], monkeypatch: pytest.MonkeyPatch) -> Home:  # noqa: F811
    """The published home, with the catalogue that it was published with."""
    home, _ = published
    monkeypatch.setattr(paths, "CATALOG_DIR", home.root.parent / "catalog")
    return home


def test_rows_that_would_stop_a_publication_are_skipped(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here by a check that forbids one of them. What the record said of its offers is then said again."""
    monkeypatch.setattr(paths, "SQL_DIR", Path(shutil.copytree(paths.SQL_DIR, tmp_path / "sql")))
    check = "-- fail: there is a bot\nFROM main.workloads WHERE workload = 'support-bot'\n"
    (tmp_path / "sql" / "checks" / "no_bots.sql").write_text(check)
    later = Home(Path(shutil.copytree(home.root, tmp_path / "later")))
    report = build(tmp_path / "without.duckdb", later, DAY, NOW)
    said = "\n".join(incident.line() for incident in report.incidents)
    assert re.search("models.csv, gpus.csv, workloads.csv: nothing of it can be used:.*there is a bot", said)
    with reader(tmp_path / "without.duckdb") as connection:
        assert ask(connection, "FROM workloads WHERE workload = 'support-bot'").rows == []
        ((gpu_id, status, _),) = ask(connection, OF_LABEL, [LABEL]).rows
    assert (gpu_id, status) == (None, "unknown")


def test_a_next_build_begins_where_this_one_ended(home: Home, tmp_path: Path) -> None:
    kept = kept_file(home, read_own_catalogue(home))
    assert kept is not None
    assert kept_file(home, OwnCatalogue()) is None
    build(tmp_path / "again.duckdb", home, DAY, NOW + timedelta(hours=1))
    assert kept_file(home, read_own_catalogue(home)) == kept
