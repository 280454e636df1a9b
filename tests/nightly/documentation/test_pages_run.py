"""Every command of the pages answers that no other test is named for, and every Python example runs."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.home.paths import HOME_VARIABLE, Home
from tests.conftest import gpufare
from tests.documentation.pages import PROJECT, blocks
from tests.documentation.test_commands import BLOCKS_ELSEWHERE, HERE

LABELS = "provider,raw_label,kind,context,gpu_count\nrunpod,NVIDIA L40S,gpu_name,,1\n"
RUNS = "run_id,model,gpu,method,micro_batch,seq_len\nmine,llama-3-8b,rtx-4090,qlora,1,2048\n"
PRICES = (
    "day,gpu,provider,price_kind,usd_per_gpu_hour,source\n"
    "2026-03-01,NVIDIA H100 SXM 80GB,Acme,on_demand,2.49,https://acme.example/prices\n"
)
PYTHON = sorted({block.page for block in blocks("python") if not block.is_not_run} - set(BLOCKS_ELSEWHERE))


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


def test_every_command_answers(place: Path) -> None:
    wrong = []
    for command in HERE:
        answer = gpufare(*shlex.split(command)[1:])
        if answer.returncode != 0 or not answer.stdout.strip():
            wrong.append(f"{command}: {answer.stdout}{answer.stderr}")
    assert not wrong


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
        asked = f"COMP_WORDS=({typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _gpufare_completion gpufare"
        answer = subprocess.run(
            ["bash", "-c", f'{line}; {asked}; echo "${{COMPREPLY[@]}}"'],
            env=os.environ | {"PATH": tools},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert answer.stdout.split() == [completed], answer.stderr
