"""Every command of the pages answers, every Python example runs, and every query is run by some test.

What is run by another test is named here with it; what only sets up a shell is parsed, with the reason.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pipeline.cli.main import main
from pipeline.home.paths import HOME_VARIABLE, Home
from tests.documentation.pages import PROJECT, WRITTEN, blocks, commands

SETS_UP = {
    "pip install": "the environment of the tests has these packages from the lock",
    "export ": "sets variables for the lines that follow",
    "unset ": "the same",
    "mkdir ": "makes the folder of the line that follows, which a test of this folder runs",
}
"""Parsed by a shell, and not run, with the reason."""

ELSEWHERE = {
    "make demo": "tests/documentation/test_readme.py",
    "gpufare demo": "tests/nightly/test_packaging.py",
    "make test": "tests/documentation/test_readme.py",
    "make docs": "tests/documentation/test_reference.py",
    "make .venv/lake/.ready": "tests/nightly/lake/test_scaling_page.py",
    "gpufare refresh": "tests/documentation/test_readme.py",
    "gpufare rebuild": "tests/warehouse/test_history.py",
    "duckdb -c": "tests/export/test_export_page.py",
    "gpufare report": "tests/page/test_writing.py",
    "gpufare lake": "tests/nightly/lake/test_scaling_page.py",
    "gpufare store": "tests/store/test_object_stores_page.py",
    "rclone ": "tests/store/test_object_stores_page.py",
    "gpufare trace ": "tracer/tests/test_readme_commands.py",
    "gpufare model add": "tests/model/test_own_models.py",
    "gpufare measure": "tracer/tests/steps/test_measure.py",
    "dagster api grpc": "tests/nightly/lake/test_code_server.py",
    "dagster-daemon": "tests/nightly/lake/test_code_server.py",
    "DAGSTER_HOME=": "tests/documentation/test_readme.py",
    "GPUFARE_HOME=~/gpufare-samples": "tests/orchestration/test_orchestration.py",
    "cp -r ": "tests/documentation/test_source_broke.py",
    "GPUFARE_HOME=saved/home": "tests/documentation/test_source_broke.py",
    "gunzip ": "tests/documentation/test_source_broke.py",
    "gpufare read runpod saved/": "tests/documentation/test_source_broke.py",
}
"""Run by these tests."""

SQL_ELSEWHERE = {
    "docs/explanation/retention.md": "tests/warehouse/test_history.py",
    "docs/how-to/import.md": "tests/refresh/test_import_file.py",
    "docs/how-to/object-stores.md": "tests/store/test_object_stores_page.py",
}
PYTHON_ELSEWHERE = {
    "docs/how-to/export.md": "tests/export/test_export_page.py",
    "docs/how-to/trace.md": "tracer/tests/test_readme_commands.py",
    "docs/how-to/add-source.md": "tests/documentation/test_add_source.py",
}

RUN = ("console", "python", "sql")
"""The languages of blocks that people copy and tests run."""

ALL = list(dict.fromkeys(c for block in blocks("console") if not block.is_not_run for c in block.commands))
NOT_RUN = list(dict.fromkeys(c for block in blocks("console") if block.is_not_run for c in block.commands))
PARTS = [part for command in NOT_RUN for part in command.split(" && ")]
HERE = [command for command in ALL if not command.startswith((*SETS_UP, *ELSEWHERE))]

LABELS = "provider,raw_label,kind,context,gpu_count\nrunpod,NVIDIA L40S,gpu_name,,1\n"
RUNS = "run_id,model,gpu,method,micro_batch,seq_len\nmine,llama-3-8b,rtx-4090,qlora,1,2048\n"
PRICES = (
    "day,gpu,provider,price_kind,usd_per_gpu_hour,source\n"
    "2026-03-01,NVIDIA H100 SXM 80GB,Acme,on_demand,2.49,https://acme.example/prices\n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, sample_home: Home) -> Path:
    """The files of a reader of the pages: those of the clone, a home, and CSV files."""
    folder = tmp_path_factory.mktemp("place")
    shutil.copytree(sample_home.root, folder / "home")
    for name in ("tests", "sql"):
        (folder / name).symlink_to(PROJECT / name)
    (folder / "gpufare.duckdb").symlink_to(sample_home.published)
    for name, text in (("labels.csv", LABELS), ("runs.csv", RUNS), ("prices.csv", PRICES)):
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all of these tests, as the working directory, with its home."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv(HOME_VARIABLE, str(folder / "home"))
    return folder


@pytest.mark.parametrize("command", HERE)
def test_the_command_answers(command: str, place: Path) -> None:
    assert command.startswith("gpufare "), "say in this file which test runs it, or mark it in the page"
    answer = CliRunner().invoke(main, shlex.split(command)[1:])
    assert answer.exit_code == 0, answer.output
    assert answer.stdout.strip()


@pytest.mark.parametrize(
    "command",
    [
        c
        for c in PARTS
        if c.startswith("gpufare ") and "acme" not in c and not c.startswith("gpufare measure")
    ],
)
def test_the_command_exists_with_its_options(command: str) -> None:
    group: click.Command = main
    words = shlex.split(command, comments=True)[1:]
    while (
        isinstance(group, click.Group) and words and not (group.invoke_without_command and words[0][0] == "-")
    ):
        command_named = group.get_command(click.Context(group), words[0])
        assert command_named is not None, words[0]
        group, words = command_named, words[1:]
    group.make_context("gpufare", words, resilient_parsing=False)


@pytest.mark.parametrize("command", [c for c in NOT_RUN + ALL if not c.startswith("gpufare ")])
def test_the_shell_understands_the_line(command: str) -> None:
    subprocess.run(["bash", "-n", "-c", command], check=True, timeout=30)
    if command.startswith("make "):
        subprocess.run(
            ["make", "-n", *shlex.split(command)[1:]], cwd=PROJECT, check=True, capture_output=True
        )


def test_the_tests_that_run_the_others_exist_and_nothing_is_named_in_vain() -> None:
    for file in {*ELSEWHERE.values(), *SQL_ELSEWHERE.values(), *PYTHON_ELSEWHERE.values()}:
        assert (PROJECT / file).exists(), file
    everything = [*ALL, *NOT_RUN]
    assert [
        start for start in (*SETS_UP, *ELSEWHERE) if not any(c.startswith(start) for c in everything)
    ] == []


def test_no_block_hides_a_command_behind_another_language() -> None:
    """Blocks without a language, and of a shell by another name, would be run by no test."""
    for page in WRITTEN:
        lines = page.read_text(encoding="utf-8").splitlines()
        opened = [line.strip() for line in lines if line.strip().startswith("```")][::2]
        assert set(opened) <= {f"```{name}" for name in (*RUN, "text", "json", "yaml")}, page
        assert sum(line in (f"```{name}" for name in RUN) for line in opened) == sum(
            block.page == str(page.relative_to(PROJECT)) for name in RUN for block in blocks(name)
        )


def test_every_query_is_run_by_a_test() -> None:
    assert {block.page for block in blocks("sql") if not block.is_not_run} <= set(SQL_ELSEWHERE)


PYTHON = sorted({b.page for b in blocks("python") if not b.is_not_run} - set(PYTHON_ELSEWHERE))


@pytest.mark.parametrize("page", PYTHON)
def test_the_python_of_a_page_runs(page: str, place: Path) -> None:
    code = "\n".join(block.text for block in blocks("python") if block.page == page)
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=place, capture_output=True, text=True, timeout=120, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.strip()


def test_bash_completes_commands_options_and_values(place: Path) -> None:
    page = (PROJECT / "docs" / "how-to" / "ask.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"`(eval \"[^`]+)`", page)
    tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for typed, completed in (
        ("gpufare che", "cheapest"),
        ("gpufare cheapest --min-f", "--min-fit-probability"),
        ("gpufare sql --format rec", "record"),
    ):
        ask_bash = (
            f"COMP_WORDS=({typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _gpufare_completion gpufare"
        )
        answer = subprocess.run(
            ["bash", "-c", f'{line}; {ask_bash}; echo "${{COMPREPLY[@]}}"'],
            env=os.environ | {"PATH": tools},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert answer.stdout.split() == [completed], answer.stderr


def test_the_same_command_stands_once_in_the_list() -> None:
    assert commands("make demo") == ["make demo"]
