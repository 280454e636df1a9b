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

from pipeline.cli.main import main
from pipeline.home import paths
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.page.write import write_report
from pipeline.store.address import STORE_VARIABLE
from pipeline.warehouse.query import ask, reader
from tests.homes import PAGES, made_once, make_sample_home, planned_home, shared_folder, small_catalogue
from tests.scenario import Scenario, make_scenario

WRITTEN = datetime(2026, 8, 23, 7, 30, tzinfo=UTC)
"""The morning after the sample prices: the page is written."""

# Parallel workers inherit the width of the terminal that started them, and some output depends on it.
os.environ.pop("COLUMNS", None)


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test touches the data of whoever runs it."""
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    monkeypatch.delenv(STORE_VARIABLE, raising=False)


@pytest.fixture(scope="session", autouse=True)
def _sample_home_begun(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Begin to make the sample home, in a process of its own, while tests run that do not need it."""
    is_asked = any(map(_needs_sample_home, request.session.items))
    if not is_asked or os.environ.get("PYTEST_XDIST_WORKER", "gw0") != "gw0":
        yield
        return
    root = shared_folder(tmp_path_factory) / "sample-home"
    command = [sys.executable, "-m", "tests.homes", str(root)]
    with subprocess.Popen(command, cwd=PAGES.parents[1], stderr=subprocess.DEVNULL) as begun:
        yield  # should it fail, the first test that needs the home fails likewise, and says why
        begun.terminate()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the files that need the sample home last: it is made meanwhile."""
    waiting = {item.path for item in items if _needs_sample_home(item)}
    items.sort(key=lambda item: item.path in waiting)


def _needs_sample_home(item: pytest.Item) -> bool:
    return "sample_home" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def sample_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The sample pages, captured over HTTP on loopback, read and published once for all workers.

    Read only: a test that writes takes a copy.
    """
    return Home(made_once(shared_folder(tmp_path_factory) / "sample-home", make_sample_home))


@pytest.fixture(scope="session")
def page_file(sample_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the sample home, written once for all workers."""
    folder = shared_folder(tmp_path_factory) / "sample-report"
    return made_once(folder, lambda new: write_report(sample_home, new, WRITTEN)) / "index.html"


def facts_of(page_file: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What the page shows and the arrays of its plans, as its scripts unpack them."""
    packed = re.search(r'id="data">([^<]*)<', page_file.read_text(encoding="utf-8"))
    assert packed is not None
    whole = gzip.decompress(base64.b64decode(packed[1]))
    end = 4 + int.from_bytes(whole[:4], "little")
    facts: dict[str, Any] = json.loads(whole[4:end])
    arrays = {}
    for name, size in facts.pop("arrays"):
        arrays[name] = whole[end : end + size]
        end += size
    assert end == len(whole)
    return facts, arrays


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


@pytest.fixture(scope="session")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """Three refreshed days, made once for all workers. Read only: a test that writes takes a copy."""
    return Scenario(made_once(shared_folder(tmp_path_factory) / "scenario", make_scenario))


@pytest.fixture
def copy_of(scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Home]:
    """Copies the home of a day of the scenario, for a test to change and to publish again."""
    monkeypatch.setattr(paths, "CATALOG_DIR", scenario.catalogue)

    def copy(day: date, name: str = "copy") -> Home:
        return Home(Path(shutil.copytree(scenario.home(day).root, tmp_path / name)))

    return copy


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
    if not shutil.which("mount") or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a disk")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def gpufare(*arguments: str, home: Home | Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line in this process, with pipes for its output: a process of its own takes longer to
    start than most commands to answer. What no command should let through is raised."""
    result = CliRunner().invoke(main, arguments, env=_environment(home))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)


def gpufare_process(*arguments: str, home: Home | Path | None = None) -> subprocess.CompletedProcess[str]:
    """The same in a separate process, for what depends on that."""
    command = [sys.executable, "-m", "pipeline.cli", *arguments]
    environment = os.environ | _environment(home)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def _environment(home: Home | Path | None) -> dict[str, str]:
    root = home.root if isinstance(home, Home) else home
    return {HOME_VARIABLE: str(root)} if root else {}
