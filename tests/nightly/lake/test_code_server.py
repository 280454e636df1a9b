"""A code server and a daemon on PostgreSQL, as in deploy/compose: a source's capture, and the publishing."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import dagster as dg
import duckdb
import pytest
import yaml

from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.orchestration.resources import PAGES_VARIABLE
from tests.conftest import PAGES, with_plans
from tests.pages_server import PagesServer

COMPOSE = Path(__file__).parents[3] / "deploy" / "compose"
SOURCE = "runpod"


def test_a_code_server_captures_and_publishes(tmp_path: Path, sample_home: Home, postgres: str) -> None:
    home = with_plans(tmp_path / "home", sample_home)
    instance_folder = tmp_path / "dagster"
    instance_folder.mkdir()
    (instance_folder / "dagster.yaml").write_text((COMPOSE / "dagster.yaml").read_text())
    port, workspace = free_port(), tmp_path / "workspace.yaml"
    content = yaml.safe_load((COMPOSE / "workspace.yaml").read_text(encoding="utf-8"))
    content["load_from"][0]["grpc_server"]["port"] = port
    workspace.write_text(yaml.safe_dump(content))
    with ExitStack() as stack:
        pages = stack.enter_context(PagesServer(PAGES))
        environment = os.environ | {
            "DAGSTER_HOME": str(instance_folder),
            "DAGSTER_LOGS": str(home.root / "dagster"),
            "DAGSTER_POSTGRES_URL": postgres.replace("postgresql:", "postgresql+psycopg2:"),
            HOME_VARIABLE: str(home.root),
            PAGES_VARIABLE: pages.base_url,
            "GPUFARE_CODE": "127.0.0.1",
        }
        server = ["dagster", "api", "grpc", "-m", "pipeline.definitions", "-h", "127.0.0.1", "-p", str(port)]
        stack.enter_context(running(server, environment))
        wait_for(lambda: listens(port), 60)
        stack.enter_context(running(["dagster-daemon", "run", "-w", str(workspace)], environment))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name in ("DAGSTER_POSTGRES_URL", "DAGSTER_LOGS"):
            patch.setenv(name, environment[name])
        instance = stack.enter_context(dg.DagsterInstance.from_config(str(instance_folder)))
        launch("capture", workspace, environment)
        finished(instance, "capture", 120)
        launch("publish_tables", workspace, environment)
        finished(instance, "publish_tables", 240, step="publish")
    with duckdb.connect(home.published, read_only=True) as published:
        ((offers,),) = published.execute("SELECT count(*) FROM offers WHERE source = ?", [SOURCE]).fetchall()
    assert offers > 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(happened: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.3)


@contextmanager
def running(command: list[str], environment: dict[str, str]) -> Iterator[None]:
    program = str(Path(sys.executable).with_name(command[0]))
    process = subprocess.Popen([program, *command[1:]], env=environment, start_new_session=True)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with its runs, which would go on
        process.wait()


def launch(job: str, workspace: Path, environment: dict[str, str]) -> None:
    """Put a run into the queue, from which the daemon takes it."""
    program = str(Path(sys.executable).with_name("dagster"))
    arguments = ["-w", str(workspace), "-l", "gpufare", "-j", job]
    subprocess.run([program, "job", "launch", *arguments], env=environment, check=True, timeout=120)


def finished(instance: dg.DagsterInstance, job: str, seconds: float, step: str | None = None) -> None:
    """Wait until the run, or one step of it, succeeded."""

    def done() -> bool:
        (run,) = instance.get_runs(filters=dg.RunsFilter(job_name=job))
        if run.status in (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED):
            entries = [record.event_log_entry for record in instance.get_records_for_run(run.run_id).records]
            pytest.fail("\n".join(entry.user_message for entry in entries if entry.level >= 40))
        steps = {each.step_key: each.status for each in instance.get_run_step_stats(run.run_id)}
        return run.is_success or (step is not None and getattr(steps.get(step), "name", "") == "SUCCESS")

    wait_for(done, seconds)
