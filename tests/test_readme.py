"""Every command of the README is run, and every example of sql/examples is shown in it and answers."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from pipeline.capture.replay import PagesServer
from pipeline.catalog.source_config import configs
from pipeline.cli.main import main
from pipeline.contracts.paths import HOME_VARIABLE, SQL_DIR, Home
from pipeline.warehouse.query import ask, reader
from tests.conftest import PAGES, with_plans

PROJECT = Path(__file__).parent.parent
README = (PROJECT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL) for line in block.splitlines()
]
EXAMPLES = sorted((SQL_DIR / "examples").glob("*.sql"))

LABELS = "provider,raw_label,kind,context,gpu_count\nrunpod,NVIDIA L40S,gpu_name,,1\n"
RUNS = "run_id,model,gpu,method,micro_batch,seq_len\nmine,llama-3-8b,rtx-4090,qlora,1,2048\n"


def commands(start: str) -> list[str]:
    found = [command for command in COMMANDS if command.startswith(start)]
    assert found, f"the README has no command that begins with {start!r}"
    return found


@pytest.fixture
def place(tmp_path: Path, sample_home: Home) -> Path:
    """A folder as a user has it: the clone's files at hand, data of one's own, and two CSV files."""
    shutil.copytree(sample_home.root, tmp_path / "data")
    (tmp_path / "labels.csv").write_text(LABELS)
    (tmp_path / "runs.csv").write_text(RUNS)
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
    assert f"the prices of {len(asked)} cloud-GPU sources" in README


def test_no_command_is_left_out() -> None:
    known = ("make ", "export ", "mkdir ", "DAGSTER_HOME=", "gpufare ")
    assert [command for command in COMMANDS if not command.startswith(known)] == []


@pytest.mark.parametrize(
    # Those that trace or measure need torch: tests of tests/tracing run them.
    "command",
    [
        c
        for c in COMMANDS
        if c.startswith("gpufare ") and c != "gpufare refresh" and not re.search(" (trace|measure) ", c)
    ],
)
def test_the_commands_answer(command: str, place: Path) -> None:
    answer = run(command, place)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.strip()


def test_refresh_runs_as_written_against_a_replay_server(place: Path) -> None:
    """The command of the README asks the providers; here the same run is sent to the sample pages."""
    (command,) = commands("gpufare refresh")[:1]
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


def test_after_the_demo_the_questions_run_as_they_are_printed(tmp_path: Path, sample_home: Home) -> None:
    (export,) = commands("export ")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "demo").symlink_to(sample_home.root)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    for question in (commands("gpufare cheapest")[0], commands("gpufare sql")[1]):
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


def test_make_test_is_what_runs_these_tests() -> None:
    (command,) = commands("make test")
    planned = subprocess.run(
        ["make", "-n", command.split()[1]], cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout
    assert all(tool in planned for tool in ("pytest", "ruff check", "mypy"))
    assert command in (PROJECT / ".ci" / "run").read_text()


def test_dagster_dev_comes_up_with_the_graph(place: Path) -> None:
    (prepare,) = commands("mkdir ")
    (command,) = commands("DAGSTER_HOME=")
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


def test_the_python_examples_run(sample_home: Home) -> None:
    examples = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    # The one with make_step is run by tests/tracing.
    code = "".join(example for example in examples if "make_step" not in example)
    assert code.count("import") == 2
    answer = subprocess.run(
        [sys.executable, "-c", code],
        cwd=sample_home.published.parent,
        env=os.environ | {HOME_VARIABLE: str(sample_home.root)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert "llama-3.1-8b" in answer.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_each_example_is_in_the_readme_and_runs_from_its_file(
    example: Path, sample_home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    question = example.read_text(encoding="utf-8").splitlines()[0].removeprefix("-- ")
    assert f"| {question} | [{example.name}](sql/examples/{example.name}) |" in README
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


def test_the_readme_says_the_error_of_traces_as_it_was_measured(sample_home: Home) -> None:
    with reader(sample_home.published) as connection:
        rows = ask(
            connection,
            "SELECT quantity, runs, median_error, mean_error, largest_error FROM trace_accuracy_summary "
            "WHERE source = 'fitcheck_t4'",
        ).dicts()
        errors = {row["quantity"]: row for row in rows}
    peak, reserved = errors["allocated"], errors["reserved"]
    largest = max(errors[phase]["largest_error"] for phase in ("forward", "backward", "optimizer"))
    sentence = (
        f"Of the {peak['runs']} runs that fitcheck measured on a T4 and that were traced at full depth, peak "
        f"allocated memory is off by {peak['median_error']:.2%} in the median, {peak['mean_error']:.2%} on "
        f"average and {peak['largest_error']:.1%} at most; each phase of the step by at most {largest:.1%}. "
        f"Reserved memory is off by {reserved['median_error']:.1%} in the median and "
        f"{reserved['largest_error']:.1%} at most"
    )
    assert sentence in " ".join(README.split())


def test_bash_completes_commands_options_and_values(place: Path) -> None:
    (line,) = re.findall(r"`(eval \"[^`]+)`", README)
    for typed, completed in (
        ("gpufare che", "cheapest"),
        ("gpufare cheapest --min-f", "--min-fit-probability"),
        ("gpufare sql --format rec", "record"),
    ):
        ask_bash = (
            f"COMP_WORDS=({typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _gpufare_completion gpufare"
        )
        answer = run(f"bash -c '{line}; {ask_bash}; echo \"${{COMPREPLY[@]}}\"'", place)
        assert answer.stdout.split() == [completed], answer.stderr
