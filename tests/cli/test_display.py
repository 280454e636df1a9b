"""Answers in a terminal and in a pipe."""

import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner
from click.testing import Result as Answer
from rich.cells import cell_len

from pipeline.cli import terminal
from pipeline.cli.main import FIRST, GROUPS, main
from pipeline.cli.printing import ROWS_SHOWN, show
from pipeline.cli.terminal import progress_shown, wrapped
from pipeline.contracts.progress import Step
from pipeline.home.paths import HOME_VARIABLE, SQL_DIR, Home
from pipeline.questions.tables import CHEAPEST, columns_of_ranking, for_people
from pipeline.warehouse.query import QueryError, Result, readable, stream
from tests.cli.terminals import screen

Lines = Callable[..., tuple[list[str], str]]

QLORA = ("cheapest", "--model", "llama-3.1-8b", "--method", "qlora", "--tokens", "100M")


def piped(*arguments: str, home: Home) -> Answer:
    """Return the output to a pipe, run in this process."""
    return CliRunner().invoke(main, list(arguments), env={HOME_VARIABLE: str(home.root)})


HEADINGS = ("gpu", "usd_per_hour", "long_name_of_a_number", "said", "day")
KINDS = ("VARCHAR", "DECIMAL(18,8)", "DOUBLE", "VARCHAR", "DATE")
SENTENCE = "a sentence of some length, for no narrow column"
TABLE = Result(HEADINGS, KINDS, [
    ("rtx-4090", Decimal("0.3421"), 1_234_567.8, SENTENCE, date(2026, 8, 22)),
    ("h100-sxm-80gb", Decimal("12.5"), 1.25, "short", date(2026, 8, 21)),
])  # fmt: skip


@pytest.fixture
def lines_of(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Lines:
    """The lines of a table in ``columns`` of a terminal, or in a pipe, and the note on what has no room."""

    def shown(answer: Result, columns: int | None, **options: Any) -> tuple[list[str], str]:
        monkeypatch.setenv("COLUMNS", str(columns or ""))
        show(answer, "table", **options)
        written = capsys.readouterr()
        return written.out.splitlines(), " ".join(written.err.split())

    return shown


def test_a_width_that_is_none_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in ("0", "abc", "-1", ""):
        monkeypatch.setenv("COLUMNS", columns)
        assert terminal.width(io.StringIO()) is None  # a pipe, which has no width


def test_a_table_fits_and_cuts_no_number(lines_of: Lines) -> None:
    for columns in (*range(20, 130, 3), 200):
        lines, note = lines_of(TABLE, columns)
        assert max(map(cell_len, lines)) <= columns
        shown = [name for name in HEADINGS if name not in note]
        assert shown
        for heading, number in (("usd_per_hour", "12.50"), ("long_name_of_a_number", "1,234,568")):
            assert (number in " ".join(lines).split()) == (heading in shown), columns


def test_headings_break_only_between_words(lines_of: Lines) -> None:
    lines, _ = lines_of(TABLE, 70)
    heading = lines[: len(lines) - len(TABLE.rows)]
    assert len(heading) > 1
    pieces = {piece for heading in HEADINGS for piece in re.findall(r"[^_]+_?", heading)}
    for word in " ".join(heading).split():
        assert set(re.findall(r"[^_]+_?", word)) <= pieces


def test_the_first_columns_are_shown_and_the_others_are_named(lines_of: Lines) -> None:
    lines, note = lines_of(for_people(TABLE, ("gpu", "day", "usd_per_hour", "said")), 30)
    assert lines[0].split() == ["GPU", "day"]
    assert note.startswith("columns that do not fit here: USD/hour, said ")


def test_cut_text_ends_in_an_ellipsis_and_a_pipe_gets_it_whole(lines_of: Lines) -> None:
    (row,) = [line for line in lines_of(TABLE, 72)[0] if "4090" in line]
    assert "a sentence of" in row
    assert "…" in row
    lines, note = lines_of(TABLE, None)
    assert SENTENCE in lines[1]
    assert lines[0].split() == [*HEADINGS]
    assert note == ""


def test_text_in_lines_is_broken_between_words_beside_the_other_cells(lines_of: Lines) -> None:
    some = for_people(TABLE, ("gpu", "said")).first(1)
    assert lines_of(some, 36, in_lines=("said",))[0] == [
        "GPU       said",
        "rtx-4090  a sentence of some length,",
        "          for no narrow column",
    ]


def test_a_number_that_is_longer_than_those_of_the_first_rows_is_not_cut(lines_of: Lines) -> None:
    numbers = [(number,) for number in range(0, 100_000, 100)]
    lines, _ = lines_of(Result(("n",), ("BIGINT",), numbers), 40)
    assert [int(line) for line in lines if line.strip() != "n"] == [number for (number,) in numbers]


def test_wide_letters_count_twice(lines_of: Lines) -> None:
    (_, line), _ = lines_of(Result(("a", "b"), ("VARCHAR", "INTEGER"), [("漢字" * 20, 7)]), 40)
    assert cell_len(line) <= 40
    assert line.endswith("7")


def test_text_of_a_page_is_neither_markup_nor_steers_the_terminal(lines_of: Lines) -> None:
    hostile = Result(("\x1b[2J",), ("VARCHAR",), [("[bold]x[/] :smile: \x1b[31mred\nline",)])
    for columns in (None, 80):
        lines, _ = lines_of(hostile, columns)
        assert lines == ["\ufffd[2J", "[bold]x[/] :smile: \ufffd[31mred line"]


def test_sentences_break_between_words_and_addresses_stay_whole() -> None:
    address = "https://prices.example/" + "x" * 60
    note = f"note: the price is 92 days old, seen at {address} once"
    assert wrapped(note, 40).splitlines() == [
        "note: the price is 92 days old, seen at", f"  {address}", "  once",
    ]  # fmt: skip
    assert wrapped("a b", None) == "a b"


def shown_in_80_columns(*arguments: str, home: Home) -> list[str]:
    """Return the lines of a terminal; none is wider, except one with only an address."""
    environment = {HOME_VARIABLE: str(home.root), "COLUMNS": "80"}
    shown = CliRunner().invoke(main, list(arguments), env=environment).output.splitlines()
    assert [line for line in shown if cell_len(line) > 80 and not line.strip().startswith("http")] == []
    return shown


def test_no_answer_is_wider_than_its_terminal(sample_home: Home) -> None:
    descriptions = "SELECT name, column_name, description FROM data_dictionary LIMIT 30"
    shown_in_80_columns("compare", "rtx-4090", "l40s", home=sample_home)
    shown_in_80_columns("explain", *QLORA[1:], "--rank", "3", home=sample_home)
    shown_in_80_columns("history", *QLORA[1:], home=sample_home)
    shown_in_80_columns("sql", "FROM gpu_compare", home=sample_home)
    shown_in_80_columns("sql", descriptions, "--format", "record", home=sample_home)
    wrong = "SELECT a_column_that_is_not_there, and_a_long_list_of_others FROM gpu_compare"
    shown_in_80_columns("sql", wrong, home=sample_home)


ASKED = (
    (),
    ("--kind", "spot"),
    ("--kind", "any", "--country", "eu", "--max-hours", "24"),
    ("--objective", "time", "--max-usd", "50"),
    ("--method", "full", "--gpu", "h100,h200,b200"),
    ("--quote", "8xH100 at $2.10/h", "--every", "month"),
    ("--kind", "reserved", "--tokens", "20B"),
)
"""Options of jobs whose answers tell many different things."""


@pytest.mark.parametrize("options", ASKED)
def test_an_answer_fits_the_screen_with_the_picks_on_top(options: tuple[str, ...], sample_home: Home) -> None:
    shown = screen(*QLORA, *options, columns=80, lines=24, home=sample_home.root)
    assert len(shown) <= 24 - 2  # the command above, the prompt below
    assert shown[0].startswith("llama-3.1-8b ")
    heading = next(place for place, line in enumerate(shown) if line.startswith("rank "))
    assert {"USD", "hours", "GPU", "provider", "in"} <= {*shown[heading].split()}
    assert shown[heading + 1].split()[1].startswith(("cheapest", "all", "value", "safest", "fastest"))
    rows = shown[heading + 1 : shown.index("")]
    assert len(rows) >= 3 or len(rows) == _rows_of(*QLORA, *options, home=sample_home)


def _rows_of(*arguments: str, home: Home) -> int:
    answer = CliRunner().invoke(main, [*arguments, "--format", "jsonl"], env={HOME_VARIABLE: str(home.root)})
    return len(answer.stdout.splitlines())


def test_sql_shows_every_column_in_rows_or_in_records(sample_home: Home) -> None:
    (heading, *_), *_ = [shown_in_80_columns("sql", "SELECT 1 AS one, 2 AS two", home=sample_home)]
    assert heading.split() == ["one", "two"]
    names = [f"a_long_name_of_column_{number}" for number in range(9)]
    wide = "SELECT " + ", ".join(f"{number} AS {name}" for number, name in enumerate(names))
    shown = shown_in_80_columns("sql", wide, home=sample_home)
    assert shown[0] == "row 1"
    assert [line.split() for line in shown[1:10]] == [[name, str(at)] for at, name in enumerate(names)]


def test_styles_go_to_terminals_that_want_them(sample_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    query = ("sql", "SELECT 1 AS one")
    heading, *_ = screen(*query, columns=80, home=sample_home.root, raw=True)
    assert "\x1b[1m" in heading
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for term, no_color, is_styled in (("xterm", "", True), ("dumb", "", False), ("xterm", "1", False)):
        monkeypatch.setenv("TERM", term)
        monkeypatch.setenv("NO_COLOR", no_color)
        assert terminal.is_styled() == is_styled


def test_a_long_result_is_capped_on_a_terminal(sample_home: Home) -> None:
    query = "SELECT range AS n FROM range(12345)"
    lines = screen("sql", query, columns=80, home=sample_home.root)
    assert lines[:2] == ["    n", "    0"] or lines[0].split() == ["n"]
    assert lines[ROWS_SHOWN + 1].startswith(f"first {ROWS_SHOWN} rows (--all")


def test_a_pipe_gets_every_column_and_row(sample_home: Home) -> None:
    answer = piped("sql", "SELECT *, repeat('x', 500) AS long FROM range(3000)", home=sample_home)
    lines = answer.stdout.splitlines()
    assert len(lines) == 3001
    assert all("x" * 500 in line for line in lines[1:])
    assert "\x1b" not in answer.stdout


def test_a_closed_pipe_ends_an_endless_answer_quietly(sample_home: Home) -> None:
    """The rows of 20 billion are handed on as they arrive."""
    begin = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", "sql", "SELECT range AS n, 'text' FROM range(20_000_000_000)"],
        env=os.environ | {HOME_VARIABLE: str(sample_home.root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stderr
    assert process.stdout.readline().split() == ["n", "'text'"]
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=30) == 0
    assert time.monotonic() - begin < 30


def test_json_is_an_array_and_jsonl_is_lines(sample_home: Home) -> None:
    query = "SELECT range AS n, [1.5, 'nan'::DOUBLE] AS list, 'infinity'::DOUBLE AS most FROM range(3)"
    rows = json.loads(
        piped("sql", query, "--format", "json", home=sample_home).stdout, parse_constant=pytest.fail
    )
    lines = piped("sql", query, "--format", "jsonl", home=sample_home).stdout.splitlines()
    assert rows == [json.loads(line) for line in lines]
    assert rows[2] == {"n": 2, "list": [1.5, "nan"], "most": "inf"}
    assert json.loads(piped("sql", f"{query} WHERE n > 9", "--format", "json", home=sample_home).stdout) == []


def test_empty_result_is_reported(sample_home: Home) -> None:
    query = ("sql", "SELECT 1 AS one WHERE false", "--format")
    for form in ("table", "record"):
        assert "no rows" in piped(*query, form, home=sample_home).stderr.splitlines()
    assert piped(*query, "csv", home=sample_home).stdout == "one\n"


def test_a_query_comes_from_a_file_from_stdin_or_begins_with_a_comment(
    sample_home: Home, tmp_path: Path
) -> None:
    file = tmp_path / "question.sql"
    file.write_text("\ufeff-- What is one?\nSELECT 41 + 1 AS answer; -- so much\n", encoding="utf-8")
    for arguments in (("-f", str(file)), ("--format", "csv", "-- one\nSELECT 42 AS answer;"), ("-",)):
        with file.open() as typed:
            answer = subprocess.run(
                [sys.executable, "-m", "pipeline.cli", "sql", *arguments],
                stdin=typed, env=os.environ | {HOME_VARIABLE: str(sample_home.root)},
                capture_output=True, text=True, check=False,
            )  # fmt: skip
        assert answer.returncode == 0, answer.stderr
        assert answer.stdout.split() == ["answer", "42"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "give either a QUERY or --file"),
        (("SELECT 1", "-f", str(SQL_DIR / "examples" / "plans.sql")), "give either a QUERY or --file"),
        (("-f", "no-such.sql"), "no-such.sql"),
        (("-- nothing but this",), "the query is empty"),
        (("SELECT\n  1,\n  nothing\nFROM gpus",), "LINE 3:   nothing"),
        (("SELECT abs('a', 'b')",), "No function matches"),
    ],
)
def test_a_query_that_cannot_run_is_explained_in_few_lines(
    arguments: tuple[str, ...], says: str, sample_home: Home
) -> None:
    answer = piped("sql", *arguments, home=sample_home)
    assert answer.exit_code != 0
    assert says in answer.stderr
    assert answer.stderr.startswith("Error: ")
    assert 1 <= len(answer.stderr.splitlines()) <= 3


def test_a_long_line_of_a_query_is_shown_around_the_mistake() -> None:
    with duckdb.connect() as connection, pytest.raises(duckdb.Error) as raised:
        connection.execute(f"SELECT {'1, ' * 200} nothing, {'2, ' * 200} 3 FROM (SELECT 1 AS one)")
    message, place, mark = readable(raised.value).splitlines()
    assert "nothing" in message
    assert place[mark.index("^") :].startswith("nothing")
    assert len(place) < 150


def test_query_that_fails_midway_is_an_error() -> None:
    with duckdb.connect() as connection:
        answer = stream(
            connection, "SELECT CASE WHEN range < 500000 THEN 1 ELSE error('late') END FROM range(1000000)"
        )
        with pytest.raises(QueryError, match="late"):
            list(answer.rows)


def test_long_work_shows_progress_on_a_terminal(sample_home: Home) -> None:
    hides_cursor = "\x1b[?25l"
    assert hides_cursor in "".join(screen("doctor", columns=80, home=sample_home.root, raw=True))


def test_notes_are_kept_where_steps_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_shown("work") as progress:
        progress(Step("reading lambda"))
        progress("robots.txt of lambda is not cached: the disk is full")
    assert capsys.readouterr().err == "robots.txt of lambda is not cached: the disk is full\n"


def test_files_of_runs_and_labels_are_tables_on_a_terminal(tmp_path: Path) -> None:
    runs = tmp_path / "runs.csv"
    runs.write_text(
        "run_id,model,gpu,method,micro_batch,seq_len\n"
        "mine,llama-3-8b,rtx-4090,qlora,1,2048\nother,llama-3-8b,no-such-card,qlora,1,2048\n"
    )
    heading, mine, other, error, *note = screen("estimate", str(runs), columns=120, home=tmp_path)
    assert heading.split()[:5] == ["run_id", "GiB/GPU", "low", "high", "fits"]
    assert re.match(r"mine +\d+\.\d +\d+\.\d +\d+\.\d +(true|false) +\d,\d{3} ", mine)
    assert other == "other"
    assert error == "other: gpu 'no-such-card' is not one card of the catalogue"
    assert " ".join(line.strip() for line in note).startswith("settings that a row does not give")
    labels = tmp_path / "labels.csv"
    labels.write_text("raw_label;note\nL40S;mine\n")
    heading, row, *_ = screen("normalize", str(labels), columns=80, home=tmp_path)
    assert heading.split()[:3] == ["raw_label", "status", "gpu_id"]
    assert row.split()[:3] == ["L40S", "matched", "l40s"]


def test_help_describes_each_command_in_a_whole_sentence(tmp_path: Path) -> None:
    shown = screen("--help", columns=80, home=tmp_path)
    assert [line for line in shown if line.endswith(":") and not line.startswith(" ")] == [
        "Options:", "Start with:", *(f"{title}:" for title in GROUPS),
    ]  # fmt: skip
    first = shown[shown.index("Start with:") + 1 : shown.index("Ask:") - 1]
    assert [line.split()[0] for line in first if not line.startswith("   ")] == [*FIRST]
    assert not [line for line in shown[shown.index("Start with:") :] if "..." in line]
    assert max(map(cell_len, shown)) <= 80


def test_the_kind_of_price_decides_where_kinds_are_compared() -> None:
    def columns(*kinds: str) -> tuple[str, ...]:
        return columns_of_ranking({"price_kind": kind} for kind in kinds)

    mixed = (*CHEAPEST[:6], "price_kind", *CHEAPEST[6:8], *CHEAPEST[9:])
    assert (CHEAPEST[6], CHEAPEST[8]) == ("fit_probability", "price_kind")
    assert columns("spot", "on_demand") == columns("spot", "spot") == mixed
    assert columns("on_demand", "on_demand") == CHEAPEST


@pytest.mark.parametrize("columns", [40, 80])
def test_required_columns_are_narrowed_instead_of_omitted(columns: int, lines_of: Lines) -> None:
    headings, kinds = ("fact", "rtx-pro-6000-workstation", "l40s", "meaning"), ("VARCHAR",) * 4
    row = ("on_demand_usd_per_gpu_hour", "RTX PRO 6000 Workstation Edition", "0.38", "US dollars " * 9)
    lines, note = lines_of(Result(headings, kinds, [row]), columns, in_lines=headings[:3], always=3)
    assert [heading for heading in headings[:3] if heading in note] == []
    assert max(map(len, lines)) <= columns
    assert "0.38" in " ".join(lines).split()
    if columns == 80:  # names break after their underscores
        assert any(line.startswith("on_demand_usd_per_") for line in lines)
