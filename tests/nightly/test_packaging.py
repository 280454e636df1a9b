"""Without a clone: the wheel is installed, and everything that it needs travels in it. In a clone: make keeps
the environment that is there."""

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Collection
from datetime import date
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from pipeline.home.paths import Home
from pipeline.record.journal import Journal
from tests.conftest import with_plans
from tests.documentation.test_install import locked
from tests.model.test_own_models import config_file
from tests.nightly.processes import ran

PROJECT = Path(__file__).parents[2]
INSTALL = (PROJECT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")


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
    answer = run(installed / "gpufare", folder, "demo")
    (folder / "answer").write_text(answer.stdout)
    assert answer.returncode == 0, answer.stderr
    return folder


def run(program: Path, place: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder, with nothing of this process's environment."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(place), **variables}
    return ran([program, *arguments], cwd=place, env=environment)


def test_the_wheel_carries_what_it_reads(installed: Path) -> None:
    (bundled,) = installed.parent.glob("lib/python3*/site-packages/pipeline/bundled")
    for name, origin in (("sql", "sql"), ("catalog", "catalog"), ("pages", "tests/pages")):
        inside = {path.relative_to(bundled / name) for path in (bundled / name).rglob("*.*")}
        outside = {path.relative_to(PROJECT / origin) for path in (PROJECT / origin).rglob("*.*")}
        assert outside <= inside


def test_the_demo_answers_and_its_home_can_be_asked(installed: Path, place: Path) -> None:
    answer = (place / "answer").read_text()
    assert "Sample prices of 2026-08-22, not today's" in answer
    assert f"The database: {place}/gpufare-demo/published/gpufare.duckdb" in answer
    assert f"into {place}/.local/share/gpufare;" in answer
    assert not (place / ".local").exists()
    asked = [line.split() for line in answer.splitlines() if line.startswith("  GPUFARE_HOME=gpufare-demo ")]
    assert [words[2] for words in asked] == ["cheapest", "sql", "export"]
    assert {words[1] for words in asked} == {str(installed / "gpufare")}
    for command in ("sources --format csv", "export prices --format csv --tables gpu_compare"):
        told = run(installed / "gpufare", place, *command.split(), GPUFARE_HOME="gpufare-demo")
        assert told.returncode == 0, told.stderr
    assert "h100-sxm-80gb" in (place / "prices" / "gpu_compare.csv").read_text(encoding="utf-8")


def test_demo_refuses_a_home_with_other_prices(installed: Path, tmp_path: Path) -> None:
    home = Home(tmp_path / "own")
    Journal(home).write("outcome", "runpod", date(2026, 9, 1), "20260901T120000.000000Z", "{}")
    answer = run(installed / "gpufare", tmp_path, "demo", GPUFARE_HOME="own")
    assert answer.returncode == 1
    assert "has prices of 2026-09-01" in answer.stderr
    assert [path for path in home.root.rglob("*") if path.is_file()] == [Journal(home).path]


NAMED_FOR_ASKING = shlex.split(re.findall(r"^pip install ('click.*)$", INSTALL, re.MULTILINE)[0])
"""The requirements in the command of docs that installs for asking only."""


@pytest.fixture(scope="module")
def asking(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel and with no other packages than docs name for asking."""
    found: set[str] = set()
    left = [Requirement(each) for each in NAMED_FOR_ASKING]
    while left:  # what pip installs for them, by the metadata of what is here
        asked = left.pop()
        if asked.name not in found and (asked.marker is None or asked.marker.evaluate({"extra": ""})):
            found.add(asked.name)
            left += [Requirement(each) for each in distribution(asked.name).requires or []]
    return environment_with(found, installed, tmp_path_factory.mktemp("asking"))


def environment_with(names: Collection[str], installed: Path, folder: Path) -> Path:
    """Return the Python of a new environment with the wheel and with these packages alone."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    (whole,) = installed.parent.glob("lib/python3*/site-packages")
    for part in [*whole.glob("gpufare*"), whole / "pipeline"]:
        (packages / part.name).symlink_to(part)
    for name in names:
        for top in {file.parts[0] for file in distribution(name).files or []} - {"..", "__pycache__"}:
            (packages / top).symlink_to(Path(str(distribution(name).locate_file(top))))
    return folder / "bin" / "python"


def test_the_demo_runs_with_its_own_lock(installed: Path, sample_home: Home, tmp_path: Path) -> None:
    python = environment_with(set(locked("requirements-demo.lock")), installed, tmp_path / "environment")
    home = with_plans(tmp_path / "home", sample_home)
    asked = ("-P", "-m", "pipeline.cli", "demo")
    answer = run(python, tmp_path, *asked, GPUFARE_HOME=str(home.root))
    assert answer.returncode == 0, answer.stderr
    assert re.search(r"^ *\d+ cheapest", answer.stdout, re.MULTILINE)


def test_packages_for_asking_are_part_of_the_default_install() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(NAMED_FOR_ASKING) < set(project["dependencies"])
    assert f"gpufare-{project['version']}-py3" in INSTALL


def test_asking_needs_no_more_than_the_packages_that_docs_name(
    asking: Path, sample_home: Home, tmp_path: Path
) -> None:
    config = config_file(tmp_path)
    (tmp_path / "labels.csv").write_text("raw_label\nNVIDIA L40S\n")
    job = ["--model", "llama-3.1-8b", "--method", "qlora", "--tokens", "100M"]
    commands = [
        ["cheapest", *job],
        ["cheapest", "--config", str(config), *job[2:]],
        ["explain", *job],
        ["history", *job],
        ["watch", *job, "--below", "500"],
        ["fit", *job[:4], "--gpu", "rtx-4090"],
        ["compare", "h100-sxm-80gb", "a100-sxm-80gb"],
        ["sql", "SELECT max(observed_at) FROM offers"],
        ["export", str(tmp_path / "prices"), "--tables", "gpu_compare"],
        ["normalize", str(tmp_path / "labels.csv")],
    ]
    program = (
        "import gpufare\n"
        "assert gpufare.cheapest(model='llama-3.1-8b', method='qlora', tokens=1e8)\n"
        "import pipeline.page.write\n"  # the page itself takes twenty seconds
        "from pipeline.cli.main import main\n"
        f"for command in {commands!r}:\n"
        "    print('asked', command[0])\n"
        "    main(command, standalone_mode=False)\n"
    )
    answer = run(asking, tmp_path, "-P", "-c", program, GPUFARE_HOME=str(sample_home.root))
    assert answer.returncode == 0, answer.stderr
    answers = answer.stdout.split("asked ")[1:]
    assert [each.split()[0] for each in answers] == [command[0] for command in commands]
    assert all(len(each.splitlines()) > 1 for each in answers)


def test_command_without_its_package_names_what_to_install(asking: Path, tmp_path: Path) -> None:
    for command, missing in (
        ("refresh", "this needs httpx, which is not installed: pip install gpufare installs"),
        ("sources", "this needs "),
        ("calibrate", "this needs numpy, which is not installed: pip install 'gpufare[calibrate]'"),
    ):
        answer = run(asking, tmp_path, "-P", "-m", "pipeline.cli", command, GPUFARE_HOME=str(tmp_path))
        assert answer.returncode == 1
        assert answer.stderr.startswith(f"Error: {missing}")
        assert len(answer.stderr.splitlines()) == 1


def test_make_brings_an_environment_up_to_date_without_making_it_anew(tmp_path: Path) -> None:
    """Here the Python that would make it anew is none."""
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "pip"):
        (programs / name).write_text(f"#!/bin/sh\necho {name} $* >> {tmp_path}/ran\n")
        (programs / name).chmod(0o755)
    for name in ("Makefile", "pyproject.toml", "requirements-demo.lock", "requirements.lock"):
        shutil.copyfile(PROJECT / name, tmp_path / name)
    subprocess.run(
        ["make", "PYTHON=false", "UV=", ".venv/.ready"], cwd=tmp_path, check=True, capture_output=True
    )
    demo, own, rest = (tmp_path / "ran").read_text().splitlines()
    assert "--require-hashes -r requirements-demo.lock" in demo
    assert own.endswith("--editable .")
    assert "--require-hashes -r requirements.lock" in rest
    again = subprocess.run(["make", "-n", "demo"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "install" not in again.stdout
