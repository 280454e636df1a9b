"""Each example of the page on exports runs, in the environment that has its packages, on one export."""

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from pipeline.export.folder import ExportError
from pipeline.export.layouts import check_republishable, write
from pipeline.home.paths import Home
from pipeline.warehouse.query import reader
from tests.conftest import gpufare
from tests.documentation.pages import blocks

PAGE = "docs/how-to/export.md"
PYTHON = [block.text for block in blocks("python") if block.page == PAGE]
OF_OTHERS = ("pandas", "sqlalchemy", "gpuhunt")
"""Packages that gpufare does not need; they are among the tools that read its exports."""


@pytest.fixture(scope="module")
def place(sample_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exports of the page's commands that its examples read, beside the published file."""
    place = tmp_path_factory.mktemp("place")
    with reader(sample_home.published, writes_files=True) as connection:
        write(connection, place / "out", None, None, ("latest", "offers"), None)
        write(connection, place / "out-gpuhunt", "gpuhunt", None, (), None)
    (place / "gpufare.duckdb").symlink_to(sample_home.published)
    return place


def run(command: list[str], place: Path) -> str:
    done = subprocess.run(
        command,
        cwd=place,
        env={"PATH": os.environ["PATH"], "HOME": str(place)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def needs_others(code: str) -> bool:
    return any(f"import {name}" in code for name in OF_OTHERS)


@pytest.mark.parametrize("code", [code for code in PYTHON if not needs_others(code)])
def test_an_example_with_the_packages_that_gpufare_needs(code: str, place: Path) -> None:
    assert run([sys.executable, "-c", code], place).strip()


@pytest.mark.parametrize("code", [code for code in PYTHON if needs_others(code)])
def test_an_example_with_other_tools(code: str, place: Path, consumers: Path) -> None:
    assert run([str(consumers), "-c", code], place).strip()


def test_every_tool_has_an_example() -> None:
    for tool in ("csv", "polars", *OF_OTHERS):
        assert any(f"import {tool}" in code for code in PYTHON), tool


def test_the_duckdb_shell_reads_all_days(place: Path, consumers: Path) -> None:
    (command,) = [
        c for block in blocks("console") if block.page == PAGE for c in block.commands if c[:6] == "duckdb"
    ]
    assert "2026-08-22" in run(["bash", "-c", f'PATH="{consumers.parent}:$PATH" {command}'], place)


def test_a_file_without_such_sources_may_be_published() -> None:
    with duckdb.connect() as connection:
        for table in ("offers", "price_history", "ranking_history", "rejects"):
            connection.execute(f"CREATE TABLE {table} AS SELECT 'verda' AS source")
        check_republishable(connection)
        connection.execute("INSERT INTO ranking_history VALUES ('vast')")  # of an earlier day
        with pytest.raises(ExportError, match="has prices of vast, whose terms"):
            check_republishable(connection)


def test_prices_that_may_not_be_published_are_refused(sample_home: Home, tmp_path: Path) -> None:
    answer = gpufare(
        "export", str(tmp_path / "out"), "--republishable", "--tables", "latest", home=sample_home
    )
    assert answer.returncode == 1
    assert answer.stderr.startswith(
        "Error: the published file has prices of crusoe, runpod, vast, whose terms forbid publishing them"
    )
    assert not (tmp_path / "out").exists()


def test_a_republished_export_has_no_rows_of_the_sources_pages(
    sample_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.export.layouts.check_republishable", lambda connection: None)
    of_all = {}
    with reader(sample_home.published, writes_files=True) as connection:
        for form in ("parquet", "csv"):
            folder = tmp_path / form
            write(connection, folder, None, form, ("rejects", "reject_reasons"), None, republishable=True)
            (file,) = (folder / "rejects").iterdir()
            of_all[form] = duckdb.sql(f"FROM '{file}'").columns
            described = json.loads((folder / "schemas" / "rejects.json").read_text(encoding="utf-8"))
            assert [field["name"] for field in described["fields"]] == of_all[form]
        columns = connection.sql("FROM main.rejects").columns
    assert "raw" in columns
    assert {tuple(each) for each in of_all.values()} == {tuple(each for each in columns if each != "raw")}
