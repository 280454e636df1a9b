"""The user's own measured runs: adding to the file, reading it even when damaged, and learning from it."""

import csv
import math
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeline.cli.main import main
from pipeline.home import paths
from pipeline.home.csv_rows import CsvError, CsvRow, read_csv
from pipeline.home.paths import Home
from pipeline.model.corrections import (
    OWN_COLUMNS,
    Correction,
    Corrections,
    Kind,
    corrected,
    kinds_of,
    learn,
    shrunken,
)  # fmt: skip
from pipeline.model.estimate import Estimator, estimate_file
from pipeline.model.own_runs import MORE_COLUMNS, OwnRuns, add_own_run, catalogue_columns, read_own_runs

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


def test_two_runs_of_five_percent_move_an_estimate_by_half_of_it() -> None:
    found = shrunken([1.05, 1.05])
    assert found.factor == pytest.approx(math.sqrt(1.05))
    assert found.runs == 2
    assert shrunken([2.0, 0.5]).factor == pytest.approx(1.0)
    assert shrunken([1.3] * 100).factor == pytest.approx(1.3, rel=0.01)
    assert found.sentence("memory") == "memory corrected by x 1.025 from 2 runs of yours"


MEMORY = Kind("memory", "rtx-4090", "qlora", "hf")
SPEED = Kind("speed", "rtx-4090", "qlora", "hf")


def measured(estimator: Estimator, *runs: tuple[float, float, dict[str, str]]) -> list[dict[str, str]]:
    """Return runs that differ from their estimates of memory and speed by these factors."""
    rows = [RUN | changes for _, _, changes in runs]
    found = []
    for (memory, speed, changes), answer in zip(runs, estimator.estimate(rows, list(RUN)), strict=True):
        gib, tokens = float(answer["memory_gib"]), float(answer["tokens_per_second_per_gpu"])
        found.append(changes | {
            "measured_memory_gib": str(gib * memory),
            "measured_tokens_per_second_per_gpu": str(tokens * speed),
        })  # fmt: skip
    return found


def test_a_factor_is_of_a_card_a_method_and_a_stack_and_good_runs_only(estimator: Estimator) -> None:
    """A run that was repeated counts once; one that failed or was limited, not at all."""
    rows = measured(
        estimator,
        (1.1, 0.8, {}), (1.1, 0.8, {"seq_len": "1024"}), (2.0, 2.0, {"gpu": "l4"}),
        *((factor, 1.0, {"stack": "liger"}) for factor in (1.1, 1.2, 1.3)),
        (1.5, 0.5, {"not_ready": "power limited to 300 of 450 W"}),
    )  # fmt: skip
    rows += [
        {"out_of_memory": "1", "gpu": "t4"}, rows[0] | {"measured_memory_gib": "much"},
        {"gpu": "abacus", "measured_memory_gib": "10"},
        {"measured_memory_gib": "-3", "measured_tokens_per_second_per_gpu": "nan"},
    ]  # fmt: skip
    lines = [CsvRow(line, dict.fromkeys(COLUMNS, "") | RUN | row, "") for line, row in enumerate(rows, 2)]
    found = learn(estimator, OwnRuns(lines))
    expected = {
        MEMORY: (1.1**0.5, 2), SPEED: (0.8**0.5, 2),
        **{kind._replace(gpu="l4"): (2 ** (1 / 3), 1) for kind in (MEMORY, SPEED)},
        MEMORY._replace(stack="liger"): ((1.1 * 1.2 * 1.3) ** (1 / 9), 1),
        SPEED._replace(stack="liger"): (1, 1),
    }  # fmt: skip
    assert found.of_kind.keys() == expected.keys()
    for kind, (factor, runs) in expected.items():
        assert found.of_kind[kind].factor == pytest.approx(factor, rel=1e-3), kind
        assert found.of_kind[kind].runs == runs
    skipped = "line {} of your measured_runs.csv: skipped: {}"
    assert found.problems == [
        skipped.format(10, "measured_memory_gib: 'much' is not a number"),
        skipped.format(11, "gpu 'abacus' is not one card of the catalogue"),
        skipped.format(12, "measured_memory_gib: -3 is not a positive number"),
        skipped.format(12, "measured_tokens_per_second_per_gpu: nan is not a positive number"),
    ]


def test_an_answer_with_an_error_is_not_corrected(estimator: Estimator) -> None:
    found = Corrections({MEMORY: Correction(1.5, 3), SPEED: Correction(0.5, 1)})
    answers = estimator.estimate([RUN, RUN | {"model": "no such"}], list(RUN))
    good, bad = corrected(answers, kinds_of(estimator), found)
    memory, speed = float(answers[0]["memory_gib"]), float(answers[0]["tokens_per_second_per_gpu"])
    assert good == answers[0] | {
        "memory_gib_corrected": f"{memory * 1.5:.4f}",
        "tokens_per_second_per_gpu_corrected": f"{speed * 0.5:.4f}",
        "corrections": "memory corrected by x 1.500 from 3 runs of yours; "
                       "tokens per second corrected by x 0.500 from 1 run of yours",
    }  # fmt: skip
    assert bad == answers[1] | dict.fromkeys(OWN_COLUMNS, "")
    assert bad["error"]
    estimator.estimate([RUN | {"model": "no such"}], list(RUN))
    assert kinds_of(estimator) == {}


def test_estimate_corrects_by_own_runs_where_it_is_asked_to(
    estimator: Estimator, home: Home, tmp_path: Path
) -> None:
    """The model's own figures stay, and a damaged line of own runs stops nothing."""
    (run,) = measured(estimator, (1.1, 1.0, {}))
    add_own_run(home, RUN | run)
    with home.own_runs.open("a") as file:
        file.write('b,"torn\n')
    (tmp_path / "runs.csv").write_text(
        "run_id,model,gpu,method,stack,quantization\n"
        "a,llama-3.1-8b,rtx-4090,qlora,hf,nf4dq\n"
        "b,llama-3.1-8b,l4,lora,hf,\n"
    )
    own = CliRunner().invoke(main, ["estimate", str(tmp_path / "runs.csv"), "--own"])
    found, other = csv.DictReader(own.stdout.splitlines())
    before, _ = estimate_file(estimator, tmp_path / "runs.csv")
    assert found["corrections"].startswith(
        "memory corrected by x 1.032 from 1 run of yours; tokens per second "
    )
    assert float(found["memory_gib_corrected"]) == pytest.approx(
        float(before["memory_gib"]) * 1.1 ** (1 / 3), rel=1e-4
    )
    assert {name: found[name] for name in before} == before
    assert [other[name] for name in OWN_COLUMNS] == ["", "", ""]
    assert own.exit_code == 0
    assert "measured_runs.csv, line 3: skipped: a quote is not closed" in own.stderr
