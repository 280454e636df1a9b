"""Two code servers and a daemon on one PostgreSQL: captures on one, the publishing on the other."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import duckdb
import pytest
import yaml

from pipeline.capture.replay import PagesServer
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.home.publishing_lock import LOCK_VARIABLE
from pipeline.orchestration.keys import SHARE_VARIABLE
from pipeline.orchestration.resources import REPLAY_VARIABLE
from tests.conftest import PAGES, with_plans

MACHINES = Path(__file__).parents[2] / "deploy" / "machines"
BY_HAND = "GPUFARE_TEST_MACHINES"
SOURCE = "runpod"
"""Of the second code server."""


@pytest.mark.skipif(
    not os.environ.get(BY_HAND), reason=f"five processes and a minute of processor time: set {BY_HAND}=1"
)
def test_two_code_servers_capture_and_publish(tmp_path: Path, sample_home: Home, postgres: str) -> None:
    home = with_plans(tmp_path / "home", sample_home)
    instance_folder = tmp_path / "dagster"
    instance_folder.mkdir()
    (instance_folder / "dagster.yaml").write_text((MACHINES / "dagster.yaml").read_text())
    ports = free_port(), free_port()
    workspace = tmp_path / "workspace.yaml"
    workspace.write_text(workspace_on(ports))
    with ExitStack() as stack:
        pages = stack.enter_context(PagesServer(PAGES))
        environment = os.environ | {
            "DAGSTER_HOME": str(instance_folder),
            "DAGSTER_LOGS": str(home.root / "dagster"),
            "DAGSTER_POSTGRES_URL": postgres.replace("postgresql:", "postgresql+psycopg2:"),
            HOME_VARIABLE: str(home.root),
            LOCK_VARIABLE: postgres,
            REPLAY_VARIABLE: pages.base_url,
            "GPUFARE_CODE_1": "127.0.0.1",
            "GPUFARE_CODE_2": "127.0.0.1",
        }
        for number, port in enumerate(ports, start=1):
            server = [
                "dagster",
                "api",
                "grpc",
                "-m",
                "pipeline.definitions",
                "-h",
                "127.0.0.1",
                "-p",
                str(port),
            ]
            stack.enter_context(running(server, environment | {SHARE_VARIABLE: f"{number}/2"}))
        for port in ports:
            wait_for(lambda port=port: listens(port), 60)
        stack.enter_context(running(["dagster-daemon", "run", "-w", str(workspace)], environment))
        instance = stack.enter_context(opened(instance_folder, environment))
        today = {"dagster/partition": datetime.now(UTC).date().isoformat()}
        launch("capture", "gpufare-2", workspace, environment, today)
        finished(instance, "capture", 240)
        launch("publish_tables", "gpufare-1", workspace, environment)
        finished(instance, "publish_tables", 240, step="publish")
    with duckdb.connect(home.published, read_only=True) as published:
        ((offers,),) = published.execute("SELECT count(*) FROM offers WHERE source = ?", [SOURCE]).fetchall()
    assert offers > 0
    assert not home.lock.exists()


def workspace_on(ports: tuple[int, int]) -> str:
    """The workspace of deploy/, on ports of this machine."""
    workspace = yaml.safe_load((MACHINES / "workspace.yaml").read_text(encoding="utf-8"))
    for server, port in zip(workspace["load_from"], ports, strict=True):
        server["grpc_server"]["port"] = port
    return yaml.safe_dump(workspace)


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


@contextmanager
def opened(folder: Path, environment: dict[str, str]) -> Iterator[dg.DagsterInstance]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("DAGSTER_POSTGRES_URL", "DAGSTER_LOGS"):
            patch.setenv(name, environment[name])
        with dg.DagsterInstance.from_config(str(folder)) as instance:
            yield instance


def launch(
    job: str, location: str, workspace: Path, environment: dict[str, str], tags: dict[str, str] | None = None
) -> None:
    """Put a run into the queue, from which the daemon takes it."""
    program = str(Path(sys.executable).with_name("dagster"))
    arguments = ["-w", str(workspace), "-l", location, "-j", job, "--tags", json.dumps(tags or {})]
    subprocess.run([program, "job", "launch", *arguments], env=environment, check=True, timeout=120)


def finished(instance: dg.DagsterInstance, job: str, seconds: float, step: str | None = None) -> None:
    """Wait until the run, or one step of it, succeeded."""

    def done() -> bool:
        (run,) = instance.get_runs(filters=dg.RunsFilter(job_name=job))
        assert run.status not in (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED), failures(run)
        steps = {each.step_key: each.status for each in instance.get_run_step_stats(run.run_id)}
        return run.is_success or (step is not None and getattr(steps.get(step), "name", "") == "SUCCESS")

    def failures(run: dg.DagsterRun) -> list[str]:
        return [
            str(record.event_log_entry.user_message)
            for record in instance.get_records_for_run(run.run_id).records
            if record.event_log_entry.level >= 40
        ]

    wait_for(done, seconds)
