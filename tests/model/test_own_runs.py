"""The user's own measured runs: adding to the file, reading it even when damaged, and learning from it."""

import csv
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pipeline.catalog.own import read_own_catalogue
from pipeline.catalog.own_corrections import OwnCorrections, read_kept
from pipeline.cli.main import main
from pipeline.home import paths
from pipeline.home.csv_rows import CsvError, CsvRow, read_csv
from pipeline.home.paths import Home
from pipeline.model.corrections import compare, inverse, learn, own_corrections, weighed_together
from pipeline.model.estimate import Estimator, estimate_file
from pipeline.model.own_runs import (
    MORE_COLUMNS,
    OwnRuns,
    add_own_run,
    catalogue_columns,
    next_run_id,
    read_own_runs,
    remove_own_run,
)
from pipeline.model.published_runs import PUBLISHED_COLUMNS, framework_settings

COLUMNS = (*catalogue_columns(), *MORE_COLUMNS)
RUN = {
    "run_id": "own-1", "source": "own", "model": "llama-3.1-8b", "gpu": "rtx-4090", "method": "qlora",
    "quantization": "nf4", "stack": "hf", "micro_batch": "1", "seq_len": "2048",
}  # fmt: skip


@pytest.fixture
def home() -> Home:
    return paths.home()


def test_runs_are_added_and_read_again(home: Home) -> None:
    assert read_own_runs(home) == OwnRuns()
    note = 'shared, with a "friend"\nand\x1b[2J'
    for run_id in ("a", "b"):
        assert add_own_run(home, RUN | {"run_id": run_id, "note": note}) == ""
    found = read_own_runs(home)
    assert [(run.line, run.values["run_id"]) for run in found.runs] == [(2, "a"), (3, "b")]
    assert found.runs[0].values["note"] == 'shared, with a "friend" and?[2J'
    assert found.problems == []
    assert [path.name for path in home.root.iterdir() if path.suffix == ".writing"] == []


def test_a_damaged_line_is_named_and_damages_no_other(home: Home) -> None:
    for run_id in ("a", "b", "c"):
        add_own_run(home, RUN | {"run_id": run_id})
    lines = home.own_runs.read_text().splitlines()
    lines[2] = 'b,"torn'
    home.own_runs.write_text("\n".join([*lines, "", "d,own"]))
    found = read_own_runs(home)
    assert [run.values["run_id"] for run in found.runs] == ["a", "c"]
    assert found.problems == [
        f"{home.own_runs}, line 3: skipped: a quote is not closed",
        f"{home.own_runs}, line 6: skipped: it has 2 values for {len(COLUMNS)} columns",
    ]
    add_own_run(home, RUN | {"run_id": "e"})
    assert [run.values["run_id"] for run in read_own_runs(home).runs] == ["a", "c", "e"]
    assert len(read_own_runs(home).problems) == 2


def test_file_without_runs_is_skipped_and_moved_by_the_next_run(home: Home) -> None:
    home.root.mkdir(parents=True)
    for content in (b"\xff\xfe\x00", b"price,day\n1,2\n"):
        home.own_runs.write_bytes(content)
        found = read_own_runs(home)
        assert found.runs == []
        assert found.problems[0].startswith(str(home.own_runs))
        assert found.problems[0].endswith("its runs are skipped")
        said = add_own_run(home, RUN)
        assert content in [file.read_bytes() for file in home.damaged.iterdir()]
        assert str(home.damaged) in said
        assert [run.values["run_id"] for run in read_own_runs(home).runs] == ["own-1"]


def test_a_file_that_is_only_too_large_is_left_where_it_is(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_own_run(home, RUN)
    before = home.own_runs.read_bytes()
    read = partial(read_csv, max_bytes=len(before) - 1)
    for module in ("home.csv_rows", "model.own_runs"):
        monkeypatch.setattr(f"pipeline.{module}.read_csv", read)  # as if it had grown beyond 50 MB
    with pytest.raises(CsvError, match="divide it"):
        add_own_run(home, RUN)
    assert home.own_runs.read_bytes() == before
    assert not home.damaged.exists()


def test_a_file_with_a_column_of_the_users_own_keeps_it(home: Home) -> None:
    add_own_run(home, RUN)
    heading, first = home.own_runs.read_text().splitlines()
    home.own_runs.write_text(f"{heading},mine\r\n{first},x\r\n{first}\r\n")
    add_own_run(home, RUN)
    old, new = read_own_runs(home).runs
    assert (old.values["mine"], new.values["mine"]) == ("x", "")
    assert len(read_own_runs(home).problems) == 1


def test_a_removed_run_leaves_the_others_as_they_were(home: Home) -> None:
    for run_id in ("own-1", "own-2", "own-9"):
        add_own_run(home, RUN | {"run_id": run_id})
    assert next_run_id(home) == "own-10"
    lines = home.own_runs.read_text().splitlines(keepends=True)
    assert remove_own_run(home, "own-2") == 1
    assert home.own_runs.read_text() == "".join([*lines[:2], lines[3]])
    assert remove_own_run(home, "own-2") == 0


def test_without_a_file_there_is_nothing_to_remove_or_learn(home: Home) -> None:
    assert (next_run_id(home), remove_own_run(home, "own-1")) == ("own-1", 0)
    assert own_corrections(home) == OwnCorrections()
    assert not home.own_corrections.exists()


def line(number: int, **changes: str) -> CsvRow:
    return CsvRow(number, dict.fromkeys(COLUMNS, "") | RUN | changes, "")


def measured(estimator: Estimator, memory: float, speed: float, **changes: str) -> dict[str, str]:
    """Return a run that differs from its estimates of memory and speed by these factors."""
    (answer,) = estimator.estimate([RUN | changes], list(RUN))
    return changes | {
        "measured_memory_gib": str(float(answer["memory_gib"]) * memory),
        "measured_tokens_per_second_per_gpu": str(float(answer["tokens_per_second_per_gpu"]) * speed),
    }


@pytest.fixture
def corrected() -> Iterator[Estimator]:
    """An estimator of its own, which a test may correct."""
    made = Estimator()
    yield made
    made.close()


def factors(corrected: Estimator, *rows: dict[str, str]) -> list[tuple[float, float]]:
    """Return the factors by which the estimator's own runs correct the memory and speed of some runs."""
    before = {}
    for with_own in ("FALSE", "TRUE"):
        corrected.estimate([RUN | row for row in rows], [*RUN, *(name for row in rows for name in row)])
        before[with_own] = corrected.connection.execute(
            "SELECT memory_gib, memory_gib_high / memory_gib, tokens_per_second_per_gpu"
            f" FROM memory_of('estimate_rows', with_own := {with_own})"
            f" JOIN speed_of('estimate_rows', with_own := {with_own}) USING (job) ORDER BY job::INTEGER"
        ).fetchall()
    pairs = zip(before["FALSE"], before["TRUE"], strict=True)
    return [(new[0] / old[0], new[2] / old[2]) for old, new in pairs]


def test_a_correction_fades_with_the_distance_of_the_settings(corrected: Estimator) -> None:
    runs = [line(2, **measured(corrected, 1.2, 0.8))]
    corrected.correct(learn(corrected, OwnRuns(runs)))
    same, longer, card, method, far = factors(
        corrected, {}, {"seq_len": "3000"}, {"gpu": "l4"},
        {"method": "lora", "quantization": "none"}, {"model": "llama-3.1-70b"},
    )  # fmt: skip
    # One run, with a noise of 0.7 of the variance: its error counts as 1 / 1.7.
    assert same == (pytest.approx(1.2 ** (1 / 1.7), rel=1e-3), pytest.approx(0.8 ** (1 / 1.7), rel=1e-3))
    # Memory is corrected alike at any length, so that more tokens never need less.
    assert 1 < card[0] < longer[0] == same[0]
    assert same[1] < longer[1] < card[1] < 1
    assert method[0] == 1
    assert same[1] < method[1] < 1
    assert far == (1, 1)


def test_bands_narrow_where_runs_are_near_and_stay_where_they_are_not(corrected: Estimator) -> None:
    def bands() -> list[tuple[float, float, str]]:
        rows = [RUN, RUN | {"model": "llama-3.1-70b"}]
        return [
            (float(row["memory_gib_high"]) / float(row["memory_gib"]), float(row["memory_gib"]), row["fits"])
            for row in corrected.estimate(rows, list(RUN))
        ]

    near, far = bands()
    corrected.correct(learn(corrected, OwnRuns([line(2, **measured(corrected, 3.0, 1.0))])))
    new_near, new_far = bands()
    assert 1 < new_near[0] < near[0]
    assert new_far == far
    assert (near[2], new_near[2]) == ("true", "false"), "the corrected memory decides what fits"


def test_repetitions_count_once_and_failures_and_absurd_values_not_at_all(corrected: Estimator) -> None:
    rows = [
        measured(corrected, 1.1, 0.8), measured(corrected, 1.3, 0.8),
        {"out_of_memory": "1", "micro_batch": "99"},
        measured(corrected, 1.5, 0.5, not_ready="power limited to 300 of 450 W", seq_len="1024"),
        measured(corrected, 3.01, 1 / 3.01, seq_len="512"),
        measured(corrected, 2.99, 1 / 2.99, seq_len="256"),
        {"measured_memory_gib": "much"}, {"gpu": "abacus"}, {},
    ]  # fmt: skip
    found = learn(corrected, OwnRuns([line(number, **row) for number, row in enumerate(rows, 2)]))
    assert [(row["quantity"], row["position"], row["seq_len"]) for row in found.rows] == [
        ("memory", 1, 2048), ("memory", 2, 256), ("speed", 1, 2048), ("speed", 2, 256),
    ]  # fmt: skip
    assert found.rows[0]["log_ratio"] == pytest.approx((math.log(1.1) + math.log(1.3)) / 2, abs=1e-4)
    skipped = "line {} of your measured_runs.csv: skipped: {}"
    assert found.problems == [
        skipped.format(5, "power limited to 300 of 450 W"),
        skipped.format(
            6,
            "its memory is 3.01 times the estimate: check it; "
            "its tokens per second is 0.332 times the estimate: check it",
        ),
        skipped.format(8, "measured_memory_gib: 'much' is not a number"),
        skipped.format(9, "gpu 'abacus' is not one card of the catalogue"),
        skipped.format(10, "it measured nothing"),
    ]


def test_a_run_that_died_needed_at_least_the_usable_memory_of_its_card(corrected: Estimator) -> None:
    """At the limit, what the model takes to be needed; above it; and beside other runs that say more."""
    lower = measured(corrected, 0.8, 1.0)
    corrected.estimate([RUN], list(RUN))
    ((needed,),) = corrected.connection.execute(
        "SELECT needed_gib FROM memory_of('estimate_rows')"
    ).fetchall()

    def learned(times: float, *rows: dict[str, str]) -> tuple[Any, Any, str]:
        """Return the factor of the memory, the ratio of the ends of its band, and whether the run fits, if
        this multiple of what is needed is usable."""
        corrected.connection.execute("UPDATE main.gpus SET usable_memory_gib = ?", [times * needed])
        found = learn(corrected, OwnRuns([line(number, **row) for number, row in enumerate(rows, 2)]))
        assert found.problems == []
        corrected.correct(found)
        ((factor, _),) = factors(corrected, {})
        (row,) = corrected.estimate([RUN], list(RUN))
        corrected.correct(OwnCorrections())
        band = float(row["memory_gib_high"]) / float(row["memory_gib_low"])
        return factor, pytest.approx(band, rel=1e-4), row["fits"]

    died, longer = {"out_of_memory": "1"}, {"out_of_memory": "1", "seq_len": "3072"}
    _, band, fits = learned(1.0)
    assert fits == "true"
    assert learned(0.999, died) == (1.0, band, "false"), "expected"
    assert learned(1.0, died) == (pytest.approx(1.001, rel=1e-4), band, "false")
    raised, _, _ = found = learned(1.2, died)
    assert found == (pytest.approx(1.2 * 1.001, rel=1e-4), band, "false")
    assert learned(1.2, longer, died, died) == found, "the longer run needs less than it already gets"
    assert 1 < learned(1.2, longer)[0] < raised
    lowered, narrow, fits = learned(0.95, lower)
    assert (lowered < 0.95, fits) == (True, "true")
    assert learned(0.95, lower, died) == (pytest.approx(0.95 * 1.001, rel=1e-3), narrow, "false")
    assert learned(1.2, lower, died) == (pytest.approx(1.2 * 1.001, rel=1e-3), narrow, "false")


def test_a_run_that_died_lowers_nothing_beside_others() -> None:
    """By the measured run and the second death, the first would need more than it needs at least."""
    likenesses = [[1.0, 1.0, 0.43], [1.0, 1.0, 0.43], [0.43, 0.43, 1.0]]
    errors = [(0.5, False), (0.34, True), (0.33, True)]
    rows = [{"log_ratio": error, "is_least": is_least} for error, is_least in errors]
    found = list(weighed_together(rows, likenesses, noise=0.5, most=40))
    assert [row["log_ratio"] for row in found] == [0.5, 0.33]
    assert all(row["weight"] > 0 for row in found)


def test_expected_deaths_push_out_no_other_run(corrected: Estimator) -> None:
    died = {"out_of_memory": "1"}
    expected = [died | {"micro_batch": "99", "seq_len": str(2048 + number)} for number in range(41)]
    rows = [measured(corrected, 1.1, 0.9), died | {"seq_len": "1024"}, *expected]
    corrected.connection.execute("UPDATE main.gpus SET usable_memory_gib = 16 WHERE gpu_id = 'rtx-4090'")
    found = learn(corrected, OwnRuns([line(number, **row) for number, row in enumerate(rows, 2)]))
    assert [(row["quantity"], row["seq_len"]) for row in found.rows] == [
        ("memory", 2048), ("memory", 1024), ("speed", 2048),
    ]  # fmt: skip


def test_a_run_that_died_has_no_speed(corrected: Estimator) -> None:
    died = {"out_of_memory": "1", "measured_tokens_per_second_per_gpu": "9", "micro_batch": "99"}
    found = learn(corrected, OwnRuns([line(2, **died)]))
    assert found.rows == []
    reason = "it ran out of memory, but states a speed"
    assert found.problems == [f"line 2 of your measured_runs.csv: skipped: {reason}"]


def test_only_the_newest_settings_count(corrected: Estimator) -> None:
    ((most,),) = corrected.connection.execute("SELECT own_run_parameters().most_runs").fetchall()
    runs = [line(number, seq_len=str(512 + number), measured_memory_gib="20") for number in range(most + 2)]
    found = learn(corrected, OwnRuns(runs))
    assert [row["seq_len"] for row in found.rows] == [512 + number for number in range(2, most + 2)]


def test_the_inverse_times_the_matrix_is_the_unit_matrix() -> None:
    matrix = [[1.1, 0.9, 0.2], [0.9, 1.1, 0.4], [0.2, 0.4, 1.1]]
    found = inverse(matrix)
    for row in range(3):
        for column in range(3):
            product = sum(matrix[row][at] * found[at][column] for at in range(3))
            assert product == pytest.approx(float(row == column), abs=1e-12)


def test_corrections_are_kept_until_the_runs_change(home: Home, estimator: Estimator) -> None:
    add_own_run(home, RUN | measured(estimator, 1.1, 1.0))
    first = own_corrections(home)
    assert [row["quantity"] for row in first.rows] == ["memory", "speed"]
    assert read_kept(home) == first
    home.own_corrections.write_text("{")
    assert own_corrections(home) == first
    assert read_own_catalogue(home).corrections == first.rows
    remove_own_run(home, "own-1")
    assert own_corrections(home).rows == []
    home.own_runs.unlink()
    assert own_corrections(home) == OwnCorrections()
    assert not home.own_corrections.exists()


def test_estimate_corrects_by_own_runs_and_says_so(estimator: Estimator, home: Home, tmp_path: Path) -> None:
    """A damaged line of own runs stops nothing."""
    add_own_run(home, RUN | measured(estimator, 1.1, 1.0))
    with home.own_runs.open("a") as file:
        file.write('b,"torn\n')
    path = tmp_path / "runs.csv"
    path.write_text(
        "run_id,model,gpu,method,stack,quantization\n"
        "a,llama-3.1-8b,rtx-4090,qlora,hf,nf4\n"
        "b,llama-3.1-70b,l4,lora,hf,\n"
    )
    before, other_before = estimate_file(estimator, path)
    own = CliRunner().invoke(main, ["estimate", str(path)])
    found, other = csv.DictReader(own.stdout.splitlines())
    assert "memory corrected x 1.06 from 1 run of yours" in found["assumptions"]
    assert float(found["memory_gib"]) == pytest.approx(
        float(before["memory_gib"]) * 1.1 ** (1 / 1.7), rel=1e-3
    )
    assert other == other_before
    assert own.exit_code == 0
    assert "measured_runs.csv, line 3: skipped: a quote is not closed" in own.stderr
    without = CliRunner().invoke(main, ["estimate", str(path), "--without-own-runs"])
    assert next(csv.DictReader(without.stdout.splitlines())) == before


def test_a_frameworks_defaults_are_those_of_a_published_row(estimator: Estimator) -> None:
    run = {
        "model": "llama-3.1-8b", "gpu": "rtx-4090", "method": "qlora", "seq_len": "2048", "micro_batch": "2",
        "gpu_count": "1",
    }  # fmt: skip
    published = dict.fromkeys(PUBLISHED_COLUMNS, "") | run | {"micro_batch_per_gpu": "2"}
    for name in ("Axolotl", "Unsloth", "TRL", "torchtune", "LitGPT"):
        found = framework_settings(name, run, estimator.models, estimator.gpu_of)
        row = run | {setting: str(value) for setting, value in found.items()}
        (own,) = estimator.estimate([row], list(row))
        (other,) = estimator.estimate([published | {"framework": name}], list(PUBLISHED_COLUMNS))
        assert own["memory_gib"] == other["memory_gib"] != "", name
        assert own["tokens_per_second_per_gpu"] == other["tokens_per_second_per_gpu"], name


def test_a_speed_off_by_the_number_of_gpus_and_an_unknown_model_correct_nothing(estimator: Estimator) -> None:
    run = {"run_id": "a", "model": "llama-3.1-8b", "gpu": "rtx-4090", "method": "qlora", "gpu_count": "2"}
    (answer,) = estimator.estimate([run], list(run))
    estimate = float(answer["tokens_per_second_per_gpu"])
    speeds = {0.5: True, 0.62: True, 0.7: False, 1.0: False, 1.5: False, 2.0: True, 2.4: True, 2.6: False}
    rows = [run | {"measured_tokens_per_second_per_gpu": str(ratio * estimate)} for ratio in speeds]
    found = compare(estimator, [line(number, **row) for number, row in enumerate(rows, 2)])
    assert [each.miscounted == each.far == ("speed",) for each in found] == [*speeds.values()]
    (other,) = compare(estimator, [line(2, **run | {"model": "nosuch-9b", "measured_memory_gib": "9"})])
    assert other.reason == "model 'nosuch-9b' is not known: add it with gpufare model add"
