"""The commands, the answer and the figures of the README; tests/documentation runs other commands."""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import yaml

from pipeline.catalog.source_config import configs
from pipeline.cli.main import main
from pipeline.home.paths import CATALOG_DIR, HOME_VARIABLE, SQL_DIR, Home
from pipeline.warehouse.query import ask, reader
from tests.conftest import PAGES, with_plans
from tests.documentation.pages import commands
from tests.pages_server import PagesServer

PROJECT = Path(__file__).parents[2]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
EXAMPLES = sorted((SQL_DIR / "examples").glob("*.sql"))


@pytest.fixture
def place(tmp_path: Path, sample_home: Home) -> Path:
    """A user's folder: the clone's files and a home."""
    shutil.copytree(sample_home.root, tmp_path / "data")
    (tmp_path / "dagster.yaml").symlink_to(PROJECT / "dagster.yaml")
    (tmp_path / "tests").symlink_to(PROJECT / "tests")
    return tmp_path


def environment(place: Path) -> dict[str, str]:
    tools = Path(sys.executable).parent
    return os.environ | {
        HOME_VARIABLE: str(place / "data"),
        "HOME": str(place),
        "PATH": f"{tools}:{os.environ['PATH']}",
    }


def run(command: str, place: Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        shell=True,
        cwd=cwd or place,
        env=environment(place),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_number_of_sources_is_that_of_the_catalogue() -> None:
    asked = [config for config in configs().values() if config.kind == "prices" and config.disabled is None]
    assert f"the prices of {len(asked)} cloud-GPU sources" in " ".join(README.split())


def test_it_is_one_screen() -> None:
    assert len(README.splitlines()) <= 95


def test_the_answer_that_it_shows_is_the_answer(
    sample_home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tutorial shows its first lines, too. After a change of prices or the model, copy the new answer."""
    monkeypatch.setenv(HOME_VARIABLE, str(sample_home.root))
    monkeypatch.setenv("COLUMNS", "100")
    (asked,) = [line for line in commands("gpufare cheapest") if line.endswith("qlora --tokens 100M")]
    main(shlex.split(asked)[1:], standalone_mode=False)
    answer = capsys.readouterr().out.splitlines()
    for page in (README, (PROJECT / "docs" / "tutorial" / "index.md").read_text(encoding="utf-8")):
        (shown,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
        assert [line for line in shown.splitlines() if line not in answer] == []


def test_its_errors_are_those_of_the_calibration() -> None:
    record = yaml.safe_load((CATALOG_DIR / "calibration.yaml").read_text(encoding="utf-8"))
    bands, own = record["bands"], record["fit_verdicts"]["on_their_own_card"]
    off = {quantity: record[quantity]["of_a_stranger"]["median"] for quantity in bands}
    held = {quantity: bands[quantity]["held_out_coverage_by_family"] for quantity in bands}
    sentences = (
        f"the median error is {off['memory']:.1%} for peak memory and {off['speed']:.1%} for tokens per "
        f"second. Bands meant to contain 80% of the measurements contain {held['memory']:.0%} of "
        f"the peaks and {held['speed']:.0%} of the speeds. Of {own['died']} runs that ran out of memory, "
        f"{own['died_as_predicted']} are predicted not to fit."
    )
    assert sentences in " ".join(README.split())


@pytest.mark.slow
def test_refresh_runs_as_written_against_a_replay_server(place: Path) -> None:
    """The command of the README asks the providers; here the same run is sent to the sample pages."""
    command = commands("gpufare refresh")[0]
    assert command == "gpufare refresh"
    with PagesServer(PAGES) as server:
        answer = run(f"{command} --pages {server.base_url}", place)
    assert answer.returncode == 0, answer.stderr
    assert re.search(r"^runpod +accepted", answer.stdout, re.MULTILINE)


def test_make_demo_prints_the_cheapest_table(place: Path, sample_home: Home) -> None:
    (command,) = commands("make demo")
    with_plans(place / "demo", sample_home)
    answer = run_in_a_new_shell(f"{command} DEMO_HOME={place}/demo", PROJECT)
    assert answer.returncode == 0, answer.stderr
    assert "Sample prices of 2026-08-22, not today's" in answer.stdout
    heading = next(line for line in answer.stdout.splitlines() if line.startswith("rank "))
    for column in ("total USD", "hours", "GPU", "count", "provider", "kind", "price of"):
        assert column in heading
    assert str(place / "demo") in answer.stdout
    printed = [line for line in answer.stdout.splitlines() if line.startswith("  GPUFARE_HOME=")]
    assert [line.split()[2] for line in printed] == ["cheapest", "sql", "export"]
    for line in printed:
        again = run_in_a_new_shell(line.replace(" prices", f" {place}/prices"), PROJECT)
        assert again.returncode == 0, again.stderr


def test_after_the_demo_the_printed_questions_run(tmp_path: Path, sample_home: Home) -> None:
    export = commands("export GPUFARE_HOME=")[0]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "demo").symlink_to(sample_home.root)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    for question in (commands("gpufare cheapest")[0], commands("gpufare sql")[0]):
        answer = run_in_a_new_shell(f"{export}\n{question}", tmp_path)
        assert answer.returncode == 0, answer.stderr
        assert answer.stdout.strip()


def run_in_a_new_shell(command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """As a person does who opens one: nothing of this process's environment is set."""
    return subprocess.run(
        ["bash", "-c", command],
        cwd=cwd,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(cwd)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_make_test_runs_these_tests() -> None:
    (command,) = commands("make test")
    planned = subprocess.run(
        ["make", "-n", command.split()[1]], cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout
    assert all(tool in planned for tool in ("pytest", "ruff check", "mypy"))
    assert command in (PROJECT / ".ci" / "run").read_text()


def test_dagster_dev_comes_up_with_the_graph(place: Path) -> None:
    (prepare,) = commands("mkdir -p ~/.gpufare-dagster")
    command = commands("DAGSTER_HOME=")[0]
    assert run(prepare, place).returncode == 0
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = subprocess.Popen(
        f"{command} --host 127.0.0.1 --port {port}",
        shell=True,
        cwd=PROJECT,
        env=environment(place),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        names = _asset_names(f"http://127.0.0.1:{port}/graphql", until=time.monotonic() + 120)
    finally:
        os.killpg(started.pid, signal.SIGINT)
        try:
            started.wait(timeout=30)
        finally:
            if started.poll() is None:
                os.killpg(started.pid, signal.SIGKILL)
    assert {"raw/runpod", "offers/runpod", "published/cheapest_gpu_per_workload"} <= names


def _asset_names(url: str, until: float) -> set[str]:
    """Ask the started web server for its assets until it answers."""
    query = {"query": "{ assetNodes { assetKey { path } } }"}
    while True:
        try:
            nodes = httpx.post(url, json=query, timeout=20).json()["data"]["assetNodes"]
            if nodes:
                return {"/".join(node["assetKey"]["path"]) for node in nodes}
        except (httpx.HTTPError, KeyError, ValueError, TypeError):
            pass
        if time.monotonic() > until:
            pytest.fail("dagster dev did not come up")
        time.sleep(0.5)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_each_example_runs_from_its_file(
    example: Path, sample_home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(sample_home.root))
    main(["sql", "-f", str(example), "--format", "csv"], standalone_mode=False)
    assert capsys.readouterr().out.strip()


def test_each_published_table_has_an_example(sample_home: Home) -> None:
    with reader(sample_home.published) as connection:
        tables = {
            name
            for (name,) in ask(
                connection,
                "SELECT table_name FROM duckdb_tables()"
                " WHERE database_name = 'gpufare' AND schema_name = 'main'",
            ).rows
        }
    shown = " ".join(path.read_text(encoding="utf-8") for path in EXAMPLES)
    assert {table for table in tables if not re.search(rf"\b{table}\b", shown)} == set()


def test_each_table_column_and_macro_is_described(sample_home: Home) -> None:
    with reader(sample_home.published) as connection:
        bare = "SELECT name, column_name FROM main.data_dictionary WHERE coalesce(description, '') = ''"
        assert ask(connection, bare).rows == []
        kinds = dict(ask(connection, "SELECT kind, count(*) FROM main.data_dictionary GROUP BY 1").rows)
    assert kinds["table"] >= 20
    assert kinds["macro"] >= 4
