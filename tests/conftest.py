"""Shared by all tests: the sample pages, and one home in which they were refreshed through real HTTP."""

import base64
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner
from filelock import FileLock

from pipeline.cli.main import main
from pipeline.home import paths
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.page.write import write_report
from pipeline.refresh.demo import sample_days
from pipeline.refresh.refresh import refresh
from pipeline.store.address import STORE_VARIABLE
from pipeline.warehouse.query import ask, reader
from tests.nightly.stress.homes import made_once, planned_home, small_catalogue
from tests.pages_server import PagesServer

PAGES = Path(__file__).parent / "pages"
CATALOGUE = paths.CATALOG_DIR

WRITTEN = datetime(2026, 8, 23, 7, 30, tzinfo=UTC)
"""The morning after the sample prices: the page is written."""

# Parallel workers inherit the width of the terminal that started them, and some output depends on it.
os.environ.pop("COLUMNS", None)


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test touches the data of whoever runs it."""
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    monkeypatch.delenv(STORE_VARIABLE, raising=False)


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """A folder of this run that all of its workers share."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def sample_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The sample pages, captured over HTTP on loopback, read and published once for all workers.

    Read only: a test that writes takes a copy.
    """
    root = shared_folder(tmp_path_factory) / "sample-home"
    home = Home(root)
    with FileLock(root.with_suffix(".lock")):
        if not home.published.exists():
            with PagesServer(PAGES) as server, pytest.MonkeyPatch.context() as patch:
                patch.setattr(paths, "CATALOG_DIR", CATALOGUE)
                report = refresh(home, day=sample_days(PAGES)[0], pages=server.base_url, environment={})
            assert report.published, report.failure()
    return home


@pytest.fixture(scope="session")
def page_file(sample_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the sample home, written once for all workers."""
    folder = shared_folder(tmp_path_factory) / "sample-report"
    with FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            write_report(sample_home, folder, WRITTEN)
    return folder / "index.html"


def facts_of(page_file: Path) -> dict[str, Any]:
    """What the page shows, as its scripts unpack it."""
    packed = re.search(r'id="data">([^<]*)<', page_file.read_text(encoding="utf-8"))
    assert packed is not None
    facts: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    return facts


def with_plans(root: Path, sample_home: Home) -> Home:
    """A home under ``root`` that need not compute the plans again, which takes a quarter of a minute."""
    shutil.copytree(sample_home.cache, root / "cache")
    return Home(root)


@pytest.fixture(scope="module")
def small_homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path], Home]]:
    """Makes homes without a day that are published in a second or two: with the few workloads of the small
    catalogue, for tests that ask nothing of the others. Processes of their own do not know that catalogue."""
    shared = shared_folder(tmp_path_factory)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "CATALOG_DIR", made_once(shared / "catalog", small_catalogue))
        yield lambda root: planned_home(shared, root)


@pytest.fixture
def small_home(small_homes: Callable[[Path], Home], tmp_path: Path) -> Home:
    """Such a home, for one test."""
    return small_homes(tmp_path / "home")


@contextmanager
def reader_on(published: Path, today: date) -> Iterator[duckdb.DuckDBPyConnection]:
    """A reader of the published file for whom it is ``today``: ages count from there."""
    with reader(published) as connection:
        ask(connection, f"SET VARIABLE today = DATE '{today}'")
        yield connection


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("this user may not mount a disk")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def gpufare(*arguments: str, home: Home | Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line in this process, with pipes for its output: a process of its own takes longer to
    start than most commands to answer. What no command should let through is raised."""
    root = home.root if isinstance(home, Home) else home
    environment = {HOME_VARIABLE: str(root)} if root else {}
    result = CliRunner().invoke(main, arguments, env=environment)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)


def gpufare_process(*arguments: str, home: Home | Path | None = None) -> subprocess.CompletedProcess[str]:
    """The same in a separate process, for what depends on that."""
    root = home.root if isinstance(home, Home) else home
    environment = os.environ | ({HOME_VARIABLE: str(root)} if root else {})
    environment.pop("COLUMNS", None)  # a pipe, whatever the shell of these tests exports
    return subprocess.run(
        [sys.executable, "-m", "pipeline.cli", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
