"""Homes that tests share: of the sample pages, and with the few workloads of a small catalogue."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import duckdb
import pytest
import yaml
from filelock import FileLock

from pipeline.catalog.own import OwnCatalogue
from pipeline.home import paths
from pipeline.home.paths import Home
from pipeline.refresh.demo import sample_days
from pipeline.refresh.refresh import refresh
from pipeline.warehouse import plan_cache as prepared
from tests.pages_server import PagesServer

TESTS = Path(__file__).parent
PAGES = TESTS / "pages"
CATALOGUE = TESTS.parent / "catalog"

KEPT_WORKLOADS = 3

EXAMPLES_ASK_FOR = {
    "models": ["llama-3.1-8b"],
    "methods": ["lora", "qlora"],
    "tokens": ["100M"],
    "seq_len": 2048,
}
"""Workloads whose plans some of sql/examples look up."""


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """A folder of this run that all of its workers share."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def made_once(made: Path, make: Callable[[Path], object]) -> Path:
    """A file or folder that processes share: the first that asks makes it, under another name until it is
    whole."""
    new = made.with_name(f"{made.name}.new")
    with FileLock(made.with_name(f"{made.name}.lock")):
        if not made.exists():
            shutil.rmtree(new, ignore_errors=True)
            make(new)
            new.rename(made)
    return made


def make_sample_home(root: Path) -> None:
    """Capture the sample pages over HTTP on loopback, read and publish them."""
    with PagesServer(PAGES) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "CATALOG_DIR", CATALOGUE)
        report = refresh(Home(root), day=sample_days(PAGES)[0], pages=server.base_url, environment={})
    assert report.published, report.failure()


def interrupt(line: str) -> NoReturn:
    """A progress report at which a person presses Ctrl-C."""
    raise KeyboardInterrupt(line)


def with_double_prices_before(root: Path, sample_home: Home) -> Home:
    """A home under ``root`` with the sample home's published file, to which a day before is added on which
    every price per GPU-hour was double."""
    home = Home(root)
    home.published.parent.mkdir(parents=True)
    shutil.copy(sample_home.published, home.published)
    with duckdb.connect(home.published) as connection:
        connection.execute(
            "INSERT INTO main.offers SELECT * REPLACE"
            " (day - 1 AS day, 2 * usd_per_gpu_hour AS usd_per_gpu_hour) FROM main.offers"
        )
    return home


def small_catalogue(folder: Path) -> Path:
    """The catalogue with a few workloads and no claims, so that a day is published in a second or two."""
    shutil.copytree(CATALOGUE, folder)
    jobs = yaml.safe_load((folder / "workloads.yaml").read_text(encoding="utf-8"))
    few = jobs | {"grid": [EXAMPLES_ASK_FOR], "scenarios": jobs["scenarios"][:KEPT_WORKLOADS]}
    (folder / "workloads.yaml").write_text(yaml.safe_dump(few), encoding="utf-8")
    for name, lines in {"claims.csv": 1, "measured_runs.csv": 30}.items():
        kept = (folder / name).read_text(encoding="utf-8").splitlines()[:lines]
        (folder / name).write_text("\n".join(kept) + "\n", encoding="utf-8")
    return folder


def planned_home(shared: Path, root: Path) -> Home:
    """A home without a day, for which the plans of the small catalogue are computed: once for all that share
    the folder."""

    def plan(folder: Path) -> None:
        folder.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(paths, "CATALOG_DIR", made_once(shared / "catalog", small_catalogue))
            prepared.start(folder / "prepared.duckdb", Home(folder), OwnCatalogue())
        (folder / "prepared.duckdb").unlink()

    shutil.copytree(made_once(shared / "planned", plan), root)
    return Home(root)


if __name__ == "__main__":
    made_once(Path(sys.argv[1]), make_sample_home)
