"""A home, an export and the installed catalogue may lie in folders of any name."""

import os
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from pipeline.home import paths
from pipeline.home.paths import Home
from pipeline.refresh.refresh import refresh
from pipeline.warehouse.connection import connect, path_for_duckdb
from pipeline.warehouse.database import in_memory
from pipeline.warehouse.plan_grid import complete
from pipeline.warehouse.query import ask, reader
from tests.conftest import gpufare
from tests.homes import PAGES, interrupt

ODD = 'it\'s a=b "q" %41?#;é [x]* {y} \\ ~'
DAY = date(2026, 8, 22)


def test_a_home_may_have_any_path(
    small_homes: Callable[[Path], Home], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a relative one; the second publication starts from what the first kept."""
    home = small_homes(tmp_path / ODD)
    for source in ("ecb", "verda"):
        report = refresh(home, day=DAY, sources=[source], pages=str(PAGES), environment={})
        assert report.failure() is None or source == "ecb"
        assert report.incidents == []
    with pytest.raises(KeyboardInterrupt):
        complete(home, interrupt)
    monkeypatch.chdir(tmp_path)
    exported = gpufare("export", f"{ODD}.csv", "--tables", "offers_latest", home=Path(ODD))
    assert (exported.returncode, exported.stdout[:7]) == (0, "2 files"), exported.stderr
    asked = gpufare("sql", "SELECT count(*) > 9 AS n FROM offers", "--format", "csv", home=Path(ODD))
    assert asked.stdout.split() == ["n", "True"]
    assert [path.name for path in home.published.parent.iterdir()] == [home.published.name]


@pytest.mark.parametrize("name", ["?", "\\", "*", "[x]", "a=b", "'", os.fsdecode(b"\xff")])
def test_a_database_is_read_at_any_path(name: str, tmp_path: Path) -> None:
    made, folder = tmp_path / "made.duckdb", tmp_path / name
    folder.mkdir()
    with connect(made) as connection:
        connection.execute("CREATE TABLE main.t AS SELECT 7 AS a")
    made.rename(folder / "t.duckdb")
    with reader(folder / "t.duckdb", writes_files=True) as connection:
        connection.sql("FROM main.t").write_csv(path_for_duckdb(folder / "t.csv"))
        assert ask(connection, "FROM main.t").rows == [(7,)]
    assert (folder / "t.csv").read_text(encoding="utf-8") == "a\n7\n"


def test_the_catalogue_is_loaded_from_any_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = in_memory("countries").execute("FROM main.countries").fetchall()
    monkeypatch.setattr(paths, "CATALOG_DIR", Path(shutil.copytree(paths.CATALOG_DIR, tmp_path / ODD)))
    assert in_memory("countries").execute("FROM main.countries").fetchall() == expected
