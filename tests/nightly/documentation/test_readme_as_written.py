"""The commands of the README that start processes: the demo, a refresh, and Dagster."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from pipeline.home.paths import HOME_VARIABLE, Home
from tests.conftest import PAGES, with_plans
from tests.documentation.pages import PROJECT, commands
from tests.nightly.processes import output_of
from tests.pages_server import PagesServer


@pytest.fixture
def place(tmp_path: Path, sample_home: Home) -> Path:
    """A user's folder: the clone's files and a home."""
    shutil.copytree(sample_home.root, tmp_path / "data")
    (tmp_path / "dagster.yaml").symlink_to(PROJECT / "dagster.yaml")
    (tmp_path / "tests").symlink_to(PROJECT / "tests")
    return tmp_path


def environment(place: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return os.environ | {HOME_VARIABLE: str(place / "data"), "HOME": str(place), "PATH": path}


def run(command: str, cwd: Path, variables: dict[str, str]) -> str:
    return output_of(["bash", "-c", command], cwd=cwd, env=variables)


def run_in_a_new_shell(command: str, cwd: Path) -> str:
    """As a person does who opens one: nothing of this process's environment is set."""
    return run(command, cwd, {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(cwd)})


def test_refresh_runs_against_a_replay_server(place: Path) -> None:
    """The command of the README asks the providers; here the same run is sent to the sample pages."""
    assert commands("gpufare refresh")[0] == "gpufare refresh"
    with PagesServer(PAGES) as server:
        said = run(f"gpufare refresh --pages {server.base_url}", place, environment(place))
    assert re.search(r"^runpod +accepted", said, re.MULTILINE)


def test_make_demo_prints_the_cheapest_table(place: Path, sample_home: Home) -> None:
    """In the environment as it is: make is told not to bring it up to date."""
    (command,) = commands("make demo")
    with_plans(place / "demo", sample_home)
    answer = run_in_a_new_shell(f"{command} --old-file=.venv/.ready-for-demo DEMO_HOME={place}/demo", PROJECT)
    assert "Sample prices of 2026-08-22, not today's" in answer
    assert str(place / "demo") in answer
    assert re.search(r"^rank +USD +hours +GPU +provider", answer, re.MULTILINE)
    for line in re.findall("^  GPUFARE_HOME=.*$", answer, re.MULTILINE):
        run_in_a_new_shell(line.replace(" prices", f" {place}/prices"), PROJECT)


def test_after_the_demo_the_printed_questions_run(tmp_path: Path, sample_home: Home) -> None:
    export = commands("export GPUFARE_HOME=")[0]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "demo").symlink_to(sample_home.root)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    for question in (commands("gpufare cheapest")[0], commands("gpufare sql")[0]):
        assert run_in_a_new_shell(f"{export}\n{question}", tmp_path).strip()


def test_dagster_dev_comes_up_with_the_graph(place: Path) -> None:
    (prepare,) = commands("mkdir -p ~/.gpufare-dagster")
    run(prepare, place, environment(place))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = f"{commands('DAGSTER_HOME=')[0]} --host 127.0.0.1 --port {port}"
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = subprocess.Popen(
        command, shell=True, cwd=PROJECT, env=environment(place), start_new_session=True, **silent
    )
    try:
        names = asset_names(f"http://127.0.0.1:{port}/graphql", until=time.monotonic() + 120)
    finally:
        os.killpg(started.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            started.wait(timeout=30)
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait(timeout=30)
    assert {"offers/runpod", "published/cheapest_gpu_per_workload"} <= names


def asset_names(url: str, until: float) -> set[str]:
    """Ask the started web server for its assets until it answers."""
    query = {"query": "{ assetNodes { assetKey { path } } }"}
    while time.monotonic() < until:
        with suppress(httpx.HTTPError, KeyError, ValueError, TypeError):
            nodes = httpx.post(url, json=query, timeout=20).json()["data"]["assetNodes"]
            if nodes:
                return {"/".join(node["assetKey"]["path"]) for node in nodes}
        time.sleep(0.5)
    pytest.fail("dagster dev did not come up")
