"""Each example of the page on exports runs, in the environment that has its packages, on one export."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from pipeline.export.layouts import write
from pipeline.home.paths import Home
from pipeline.warehouse.query import reader
from tests.documentation.pages import blocks
from tests.nightly.processes import output_of

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
        for tool in ("gpuhunt", "api"):
            write(connection, place / f"out-{tool}", tool, None, (), None)
    (place / "gpufare.duckdb").symlink_to(sample_home.published)
    return place


def run(command: list[str], place: Path) -> str:
    return output_of(command, cwd=place, env={"PATH": os.environ["PATH"], "HOME": str(place)})


def test_every_tool_has_an_example() -> None:
    for tool in ("csv", "polars", *OF_OTHERS):
        assert any(f"import {tool}" in code for code in PYTHON), tool


@pytest.mark.parametrize("code", PYTHON)
def test_an_example_runs(code: str, place: Path, request: pytest.FixtureRequest) -> None:
    of_others = any(f"import {name}" in code for name in OF_OTHERS)
    python = request.getfixturevalue("consumers") if of_others else sys.executable
    assert run([str(python), "-c", code], place).strip()


def command_of(program: str) -> str:
    commands = [c for block in blocks("console") if block.page == PAGE for c in block.commands]
    (command,) = [command for command in commands if command.startswith(f"{program} ")]
    return command


@pytest.mark.skipif(shutil.which("jq") is None, reason="no jq on this machine")
def test_jq_reads_the_api(place: Path) -> None:
    answer = json.loads(run(["bash", "-c", command_of("jq")], place))
    assert list(answer) == ["gpu", "provider", "total_usd"]
    assert answer["total_usd"] > 0


def test_the_duckdb_shell_reads_all_days(place: Path, consumers: Path) -> None:
    command = command_of("duckdb")
    assert "2026-08-22" in run(["bash", "-c", f'PATH="{consumers.parent}:$PATH" {command}'], place)
