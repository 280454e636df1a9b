"""The command line as a person uses it: answers, and one clear line where something is wrong."""

import csv
import io
import json
import os
import shutil
import socket
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import duckdb
import pytest

from pipeline.home.paths import HOME_VARIABLE, Home
from tests.conftest import PAGES, gpufare

RUNPOD_PAGE = PAGES / "runpod" / "gpu_types.json"
QLORA = ("cheapest", "--model", "llama-3.1-8b", "--method", "qlora", "--tokens", "100M")


def test_read_gives_offers_on_stdout_and_rejects_on_stderr() -> None:
    answer = gpufare("read", "runpod", str(RUNPOD_PAGE), "--observed-at", "2026-08-22")
    assert answer.returncode == 0
    offers = [json.loads(line) for line in answer.stdout.splitlines()]
    rejects = [json.loads(line) for line in answer.stderr.splitlines()]
    assert {offer["source"] for offer in offers} == {"runpod"}
    assert {offer["observed_at"] for offer in offers} == {"2026-08-22T00:00:00Z"}
    assert {"reason", "raw"} <= rejects[0].keys()


def test_read_takes_any_moment_of_iso_8601() -> None:
    for said, moment in (
        ("2026-08-22T06:00:00+02:00", "2026-08-22T04:00:00Z"),
        ("2026-08-22T06:00:00.500Z", "2026-08-22T06:00:00.500000Z"),
        ("2026-08-22 06:00", "2026-08-22T06:00:00Z"),
    ):
        answer = gpufare("read", "runpod", str(RUNPOD_PAGE), "--observed-at", said)
        assert {json.loads(line)["observed_at"] for line in answer.stdout.splitlines()} == {moment}


def test_read_converts_a_foreign_price_only_with_a_rate(tmp_path: Path) -> None:
    page = tmp_path / "servers.json"
    card = {"gpu_manufacturer": "NVIDIA", "gpu_name": "H100-PCIe", "gpu_memory": 85899345920}
    server = {"ncpus": 24, "ram": 257698037760, "gpu": 1, "gpu_info": card, "hourly_price": 3.0,
              "end_of_service": False}  # fmt: skip
    page.write_text(json.dumps({"servers": {"H100-1-80G": server}}))
    without = json.loads(gpufare("read", "scaleway", str(page)).stdout)
    assert (without["usd_per_hour"], without["native_price"], without["fx_rate"]) == (None, 3.0, None)
    rated = json.loads(gpufare("read", "scaleway", str(page), "--fx", "EUR=1.2").stdout)
    assert (rated["usd_per_hour"], rated["fx_rate"]) == (3.6, 1.2)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("read", "no-such-source", str(RUNPOD_PAGE)), "no source 'no-such-source'"),
        (("read", "runpod", "{not_json}"), "not JSON"),
        (("read", "runpod", "{empty}"), "not JSON"),
        (("read", "lambda", "{empty}"), "no pricing row"),
        (("sql", "SELECT 1"), "run `gpufare refresh` first"),
        (("refresh", "--day", "2020-01-01"), "2020-01-01"),
        (("refresh", "--day", "2020-01-01", "--pages", "archive"), "no captures of 2020-01-01"),
        (("refresh", "--pages", "no-such-folder"), "no such folder"),
        (("estimate", "no-such-file.csv"), "no-such-file.csv"),
        (("estimate", "{empty}"), "no columns model and gpu"),
        (("read", "runpod", "{folder}"), "is a directory"),
        (("read", "runpod"), "Missing argument"),
        (("read", "scaleway", str(RUNPOD_PAGE), "--fx", "EUR=-1"), "not like EUR=1.17"),
        (("no-such-command",), "No such command"),
    ],
)
def test_a_bad_input_gives_one_clear_line(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    (tmp_path / "not.json").write_text("{ this is no JSON")
    (tmp_path / "empty").write_text("")
    places = {"{not_json}": "not.json", "{empty}": "empty", "{folder}": ""}
    words = (str(tmp_path / places[word]) if word in places else word for word in arguments)
    answer = gpufare(*words, home=tmp_path / "home")
    assert answer.returncode != 0
    (line,) = answer.stderr.splitlines()
    assert line.startswith("Error:")
    assert says in line


def test_a_home_that_is_a_file_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    answer = gpufare("refresh", "--pages", str(PAGES), "--source", "ecb", home=tmp_path / "home")
    assert answer.returncode == 1
    (line,) = answer.stderr.splitlines()
    assert line.startswith(f"Error: nothing can be written in {tmp_path / 'home'}")


def test_retries_do_not_stand_among_the_answers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    answer = gpufare("refresh", "--pages", f"http://127.0.0.1:{port}", "--source", "runpod", home=tmp_path)
    assert answer.returncode == 1
    (line,) = answer.stdout.splitlines()
    assert line.startswith("runpod  NOT ACCEPTED  connection_refused")
    assert answer.stderr.splitlines()[-1].startswith("Error: nothing was published")


def test_a_damaged_published_file_is_named_with_a_remedy(sample_home: Home, tmp_path: Path) -> None:
    begin = sample_home.published.read_bytes()[:100_000]
    for damage, content in {"cut": begin, "noise": begin[::-1], "folder": None}.items():
        file = Home(tmp_path / damage).published
        file.parent.mkdir(parents=True)
        if content is None:
            file.mkdir()
        else:
            file.write_bytes(content)
        answer = gpufare(*QLORA, home=tmp_path / damage)
        assert answer.returncode == 1
        (line,) = answer.stderr.splitlines()
        assert line.startswith(f"Error: {file} cannot be read: `gpufare refresh` writes a new one")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("sql", "SELECT * FROM no_such_table"), "no_such_table"),
        (("sql", "DROP TABLE offers"), "read-only"),
        (("sql", "FROM read_csv('/etc/passwd')"), "disabled"),
        ((*QLORA, "--day", "2020-01-01"), "no prices were captured on 2020-01-01"),
        ((*QLORA, "--kind", "reserved"), "ranked only for jobs that use at least 50% of its GPU-hours"),
        (QLORA[:5], "--tokens"),
        ((*QLORA, "--examples", "3", "--tokens-per-example", "5"), "either --tokens, or --examples"),
        ((*QLORA[:2], "meta-llama/Llama-3.1-9B", *QLORA[3:]), "the nearest are llama-3.1-8b, "),
        ((*QLORA[:-1], "1e30"), "at most 1e+16"),
        ((*QLORA, "--stack", "no-such-stack"), "stack no-such-stack is none of compile, foak, hf"),
        (("sql", ""), "the query is empty"),
        (("sql", "--fromat=csv"), "No such option"),
        (("export", "/dev/null/out"), "a file is where a folder belongs"),
    ],
)
def test_a_bad_question_gives_one_clear_line(
    sample_home: Home, arguments: tuple[str, ...], says: str
) -> None:
    answer = gpufare(*arguments, home=sample_home)
    assert answer.returncode != 0
    assert "Traceback" not in answer.stderr
    assert says in answer.stderr


def test_cheapest_ranks_by_cost_and_explains_its_first_answer(sample_home: Home) -> None:
    answer = gpufare(*QLORA, home=sample_home)
    assert answer.returncode == 0, answer.stderr
    table, _, told = answer.stdout.strip().partition("\n\n")
    asked, headings, *rows = table.splitlines()
    assert asked == "llama-3.1-8b qlora, 100M tokens, on-demand, within 7 days"
    assert headings.split()[:3] == ["rank", "USD", "hours"]
    # The picks come first, and then the ranks that are none.
    assert [row.split()[1] for row in rows[:2]] == ["cheapest", "value"]
    ranks = [int(row.split()[0]) for row in rows]
    assert rows[2].split()[1] == "safest"
    assert ranks[3:] == sorted({*range(1, 11)} - {*ranks[:3]})[: len(ranks) - 3]
    *_, assumed, skipped = told.splitlines()
    assert assumed == "Assumed: LoRA rank 16, Liger kernels, packed sequences of 2,048 tokens."
    assert skipped.startswith("Skipped: offers in ")
    why = gpufare("explain", *QLORA[1:], home=sample_home).stdout
    assert "for the finished job" in why
    assert "Assumed: LoRA rank 16 on all linear layers, base weights in NF4 " in why
    assert "CAREFUL: the price is" in why  # the sample pages are of the past


def test_a_plugin_that_cannot_be_imported_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("other", "no_such_package:command", "gpufare.commands")
    monkeypatch.setattr("pipeline.cli.main._plugins", lambda: {"other": broken})
    result = gpufare("other")
    assert result.returncode == 1
    assert result.stderr == (
        "Error: the plugin no_such_package:command cannot be loaded: No module named 'no_such_package'\n"
    )


def test_a_command_of_the_tracer_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.cli.main._plugins", dict)
    for command in ("measure", "trace"):
        result = gpufare(command, "--model", "llama-3.1-8b")
        assert result.returncode == 1
        assert result.stderr == (
            f"Error: gpufare {command} is a command of gpufare-tracer, which is not installed: "
            "pip install ./tracer, in a clone of gpufare\n"
        )


def test_a_question_loads_nothing_that_only_building_needs(sample_home: Home) -> None:
    """Each of these takes as long to load as an answer."""
    program = (
        "import sys; from pipeline.cli.main import main\n"
        f"main({QLORA!r}, standalone_mode=False)\n"
        "heavy = {'dagster', 'duckdb', 'httpx', 'numpy', 'polars', 'pydantic', 'scipy', 'yaml'}\n"
        "sys.exit(', '.join(heavy & sys.modules.keys()) or 0)"
    )
    environment = os.environ | {HOME_VARIABLE: str(sample_home.root)}
    asked = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert asked.stdout, asked.stderr
    assert asked.returncode == 0, asked.stderr


def test_assumed_sizes_are_ranked_on_request_only(sample_home: Home, tmp_path: Path) -> None:
    """Here nothing says of any machine that it is sold."""
    home = Home(tmp_path)
    home.published.parent.mkdir(parents=True)
    shutil.copy(sample_home.published, home.published)
    with duckdb.connect(home.published) as connection:
        connection.execute("UPDATE main.rentals SET size_evidence = 'assumed'")
    table, _, explanation = gpufare(*QLORA, "--assumed-sizes", home=home).stdout.strip().partition("\n\n")
    assert all(" assumed " in row for row in table.splitlines()[2:])
    assert "the source does not say that it sells such a machine" in explanation


def test_cheapest_as_csv_and_json_holds_every_column(sample_home: Home) -> None:
    rows = list(csv.DictReader(io.StringIO(gpufare(*QLORA, "--format", "csv", home=sample_home).stdout)))
    lines = gpufare(*QLORA, "--format", "jsonl", home=sample_home).stdout.splitlines()
    first = json.loads(lines[0])
    assert list(rows[0]) == list(first)
    costs = [float(row["total_usd"]) for row in rows]
    assert costs == sorted(costs)
    terms = ("compute_usd", "interruption_usd", "failure_usd", "storage_usd", "egress_usd")
    assert float(first["total_usd"]) == pytest.approx(sum(float(first[term]) for term in terms), abs=1e-9)


def test_sql_answers_in_three_formats(sample_home: Home) -> None:
    query = "SELECT 1 AS one, NULL AS nothing, '=1+1' AS formula"
    assert "one" in gpufare("sql", query, home=sample_home).stdout
    assert (
        gpufare("sql", query, "--format", "csv", home=sample_home).stdout == "one,nothing,formula\n1,,'=1+1\n"
    )
    answer = json.loads(gpufare("sql", query, "--format", "jsonl", home=sample_home).stdout)
    assert answer == {"one": 1, "nothing": None, "formula": "=1+1"}


def test_sources_shows_each_source_with_its_evidence(sample_home: Home) -> None:
    answer = gpufare("sources", "--format", "csv", home=sample_home)
    rows = {row["source"]: row for row in csv.DictReader(io.StringIO(answer.stdout))}
    assert len(rows) >= 29
    assert rows["runpod"]["last_attempt_day"] == rows["runpod"]["last_accepted_day"] == "2026-08-22"
    assert rows["runpod"]["evidence"].startswith("captured 2026-")
    assert (rows["tensordock"]["state"], rows["primeintellect"]["state"]) == ("disabled", "needs_key")
    assert answer.stderr.startswith("note: published as of 2026-08-22, ")


def test_export_writes_the_files_that_it_describes_with_moments_of_iso_8601(
    sample_home: Home, tmp_path: Path
) -> None:
    tables = ("--format", "csv", "--tables", "offers,latest")
    answer = gpufare("export", str(tmp_path), *tables, home=sample_home)
    assert answer.returncode == 0, answer.stderr
    package = json.loads((tmp_path / "datapackage.json").read_text())
    files = {resource["path"] for resource in package["resources"]}
    assert {"offers/2026-08-22.csv", "latest/cheapest.csv"} <= files
    assert all((tmp_path / file).is_file() for file in files)
    with (tmp_path / "offers" / "2026-08-22.csv").open(newline="") as file:
        assert next(csv.DictReader(file))["observed_at"] == "2026-08-22T06:00:00.000000Z"
