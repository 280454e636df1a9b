"""Without a clone: the wheel is installed, and everything that it needs travels in it. In a clone: make keeps
the environment that is there."""

import csv
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from pipeline.contracts.paths import Home
from tests.conftest import with_plans

PROJECT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of an environment with the wheel, and with the packages of this one."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=PROJECT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", symlinks=True)
    (packages,) = (folder / "venv").glob("lib/python3*/site-packages")
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "venv"), "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--disable-pip-version-check", str(wheel)], check=True)
    # Folders named here are searched, but their own .pth files, such as the clone's, are not read.
    others = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "packages_of_the_tests.pth").write_text("\n".join(others))
    return folder / "venv" / "bin"


@pytest.fixture(scope="module")
def place(installed: Path, sample_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which somebody who installed the wheel ran the demo."""
    folder = tmp_path_factory.mktemp("anywhere")
    with_plans(folder / "gpufare-demo", sample_home)
    answer = run(installed, folder, "demo")
    (folder / "answer").write_text(answer.stdout)
    assert answer.returncode == 0, answer.stderr
    return folder


def run(installed: Path, place: Path, *arguments: str, home: str = "") -> subprocess.CompletedProcess[str]:
    """Run the installed command in a folder, with nothing of this process's environment."""
    return subprocess.run(
        [installed / "gpufare", *arguments],
        cwd=place,
        env={"PATH": "/usr/bin:/bin", "HOME": str(place)} | ({"GPUFARE_HOME": home} if home else {}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_wheel_carries_what_it_reads(installed: Path) -> None:
    (bundled,) = installed.parent.glob("lib/python3*/site-packages/pipeline/bundled")
    for name, origin in (("sql", "sql"), ("catalog", "catalog"), ("pages", "tests/pages")):
        inside = {path.relative_to(bundled / name) for path in (bundled / name).rglob("*.*")}
        outside = {path.relative_to(PROJECT / origin) for path in (PROJECT / origin).rglob("*.*")}
        assert outside <= inside


def test_the_demo_answers_and_says_where_it_is(installed: Path, place: Path) -> None:
    answer = (place / "answer").read_text()
    assert "Sample prices of 2026-08-22, not today's" in answer
    assert f"The database: {place}/gpufare-demo/published/gpufare.duckdb" in answer
    assert f"into {place}/.local/share/gpufare;" in answer
    assert not (place / ".local").exists()
    assert "for the finished job" in answer
    asked = [line.split() for line in answer.splitlines() if line.startswith("  GPUFARE_HOME=gpufare-demo ")]
    assert [words[2] for words in asked] == ["cheapest", "sql", "export"]
    assert {words[1] for words in asked} == {str(installed / "gpufare")}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            ("cheapest", "--model", "mistral-7b", "--method", "qlora", "--tokens", "9M"),
            "for the finished job",
        ),
        (("sql", "SELECT gpu_id FROM gpu_compare WHERE gpu_id = 'h100-sxm-80gb'"), "h100-sxm-80gb"),
        (("sources", "--format", "csv"), "runpod"),
    ],
)
def test_questions_are_answered(installed: Path, place: Path, asked: tuple[str, ...], said: str) -> None:
    answer = run(installed, place, *asked, home="gpufare-demo")
    assert answer.returncode == 0, answer.stderr
    assert said in answer.stdout


def test_tables_are_exported(installed: Path, place: Path) -> None:
    answer = run(installed, place, "export", "prices", home="gpufare-demo")
    assert answer.returncode == 0, answer.stderr
    with (place / "prices" / "offers_latest.csv").open(newline="", encoding="utf-8") as file:
        assert "runpod" in {row["source"] for row in csv.DictReader(file)}


def test_a_home_with_other_prices_is_left_alone(installed: Path, tmp_path: Path) -> None:
    outcome = tmp_path / "own" / "outcomes" / "runpod" / "2026-09-01" / "20260901T120000.000000Z.json"
    outcome.parent.mkdir(parents=True)
    outcome.write_text("{}")
    answer = run(installed, tmp_path, "demo", home="own")
    assert answer.returncode == 1
    assert "has prices of 2026-09-01" in answer.stderr
    assert [path for path in (tmp_path / "own").rglob("*") if path.is_file()] == [outcome]


def test_make_brings_an_environment_up_to_date_without_making_it_anew(tmp_path: Path) -> None:
    """Here the Python that would make it anew is none."""
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "pip"):
        (programs / name).write_text(f"#!/bin/sh\necho {name} $* >> {tmp_path}/ran\n")
        (programs / name).chmod(0o755)
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copyfile(PROJECT / name, tmp_path / name)
    subprocess.run(["make", "PYTHON=false", ".venv/.ready"], cwd=tmp_path, check=True, capture_output=True)
    first, second = (tmp_path / "ran").read_text().splitlines()
    assert "--require-hashes -r requirements.lock" in first
    assert second.endswith("--editable .")
