"""The SQL memory model against the traces that it learns from, and what is true of any step on both."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

from gpufare_tracer.coefficients import (
    COEFFICIENTS_FILE,
    TRACES_FILE,
    TraceRow,
    insert_runs,
    learn,
    sparse_fit,
)
from gpufare_tracer.kept import read_table
from gpufare_tracer.recipes import read_recipes
from pipeline.home import paths
from pipeline.warehouse.database import in_memory

PHASES = ("forward", "backward", "optimizer")
KEYS = ("model", "layers", "micro_batch", "seq_len")


@dataclass(frozen=True, slots=True)
class Compared:
    """A trace and what SQL says of the same run, bytes."""

    trace: TraceRow
    sql: tuple[float, ...]
    """By phase."""
    is_traced: bool
    """Whether SQL's answer comes from traces."""

    @property
    def traced(self) -> tuple[float, ...]:
        return tuple(float(self.trace[f"{phase}_allocated_bytes"]) for phase in PHASES)

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(self.trace[name] for name in KEYS)


@pytest.fixture(scope="module")
def learned() -> Iterator[list[Compared]]:
    traces = read_table(paths.CATALOG_DIR / TRACES_FILE)
    connection = in_memory("memory_terms_of")
    insert_runs(connection, traces, read_recipes())
    rows = connection.execute(
        "SELECT loss_phase_bytes, greatest(backward_start_bytes, backward_end_bytes), optimizer_phase_bytes, "
        "traced_fixed IS NOT NULL FROM memory_terms_of('traced_settings') ORDER BY job::INTEGER"
    ).fetchall()
    yield [Compared(trace, row[:3], row[3]) for trace, row in zip(traces, rows, strict=True)]
    connection.close()


def test_sql_learns_from_all_traces(learned: list[Compared]) -> None:
    assert [row.key for row in learned if not row.is_traced] == []


def test_sql_is_close_to_the_traces_and_right_about_the_phase_of_the_peak(learned: list[Compared]) -> None:
    errors = np.array([abs(max(row.sql) / max(row.traced) - 1) for row in learned])
    assert float(np.median(errors)) <= 0.03
    assert float(np.quantile(errors, 0.95)) <= 0.10
    right = [int(np.argmax(row.sql)) == int(np.argmax(row.traced)) for row in learned]
    assert np.mean(right) >= 0.95


def test_each_phase_is_close_too(learned: list[Compared]) -> None:
    for index, phase in enumerate(PHASES):
        errors = [abs(row.sql[index] / row.traced[index] - 1) for row in learned if row.traced[index]]
        assert float(np.median(errors)) <= 0.03, phase
        assert float(np.quantile(errors, 0.95)) <= 0.10, phase


def test_some_coefficients_are_those_of_the_code() -> None:
    """Pure bf16: two bytes a weight, ten a logit as the loss is made, four and four for two Adam moments."""
    with (paths.CATALOG_DIR / COEFFICIENTS_FILE).open(newline="", encoding="utf-8") as file:
        found = {
            (row["recipe"], row["moment"], row["category"], row["feature"]): float(row["bytes"])
            for row in csv.DictReader(file)
        }
    assert found["hf-lora", "optimizer_step", "weights", "linear parameters"] == pytest.approx(2, rel=0.01)
    step = "hf-full-pure-bf16", "optimizer_step"
    assert found[*step, "weights", "trained parameters"] == pytest.approx(2, rel=0.01)
    assert found[*step, "gradients", "trained parameters"] == pytest.approx(2, rel=0.01)
    assert found["hf-lora", "optimizer_step", "optimizer", "trained parameters"] == pytest.approx(8, rel=0.05)
    assert found["hf-full-pure-bf16", "loss", "logits", "vocabulary"] == pytest.approx(10, rel=0.05)


def test_learning_again_gives_the_table() -> None:
    with (paths.CATALOG_DIR / COEFFICIENTS_FILE).open(newline="", encoding="utf-8") as file:
        written = [row for row in csv.DictReader(file) if row["recipe"] == "hf-lora"]
    again = learn(
        [trace for trace in read_table(paths.CATALOG_DIR / TRACES_FILE) if trace["recipe"] == "hf-lora"]
    )
    assert written == [{name: str(value) for name, value in row.items()} for row in again], (
        "gpufare learn-traces"
    )


def test_more_tokens_never_need_less(learned: list[Compared]) -> None:
    by_job: dict[tuple[str, ...], list[Compared]] = {}
    for row in learned:
        by_job.setdefault((row.trace["recipe"], *row.key[:2]), []).append(row)
    pairs = 0
    for rows in by_job.values():
        rows.sort(key=lambda row: int(row.trace["micro_batch"]) * int(row.trace["seq_len"]))
        for fewer, more in pairwise(rows):
            pairs += 1
            assert max(fewer.traced) <= max(more.traced), more.key
            assert max(fewer.sql) <= max(more.sql) * 1.0001, more.key
    assert pairs > 50


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ("hf-lora", "hf-lora-no-checkpointing"),
        ("hf-full", "hf-full-no-checkpointing"),
        ("hf-lora-no-checkpointing", "hf-lora-eager"),
        ("hf-lora", "hf-lora-eager-checkpointed"),
    ],
)
def test_checkpointing_and_flash_attention_never_need_more(
    learned: list[Compared], less: str, more: str
) -> None:
    small = {row.key: row for row in learned if row.trace["recipe"] == less}
    large = {row.key: row for row in learned if row.trace["recipe"] == more}
    assert len(small.keys() & large.keys()) > 20
    for key in small.keys() & large.keys():
        assert max(small[key].traced) <= max(large[key].traced), key
        assert max(small[key].sql) <= max(large[key].sql) * 1.005, key


def test_a_fit_takes_the_features_that_explain_and_no_others() -> None:
    generator = np.random.default_rng(7)
    features = generator.uniform(1, 9, (40, 6))
    found = sparse_fit(features / 100, (14 * features[:, 2] + 2 * features[:, 4]) / 100)
    assert found == pytest.approx({2: 14, 4: 2})
