"""The fit of a traced step on a card, and the search for the largest micro-batch."""

from math import log2
from random import Random

import duckdb
import pytest

from gpufare_tracer.card import GIB, Card, largest_micro_batch, read_card
from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import PhaseTrace, Trace, TraceShape
from gpufare_tracer.settings import run_settings
from gpufare_tracer.timeline import Category, Phase

RECIPE = Recipe(name="mine", framework="transformers")
CARD = Card("mine", (8, 0), 24.0, 0.5, 1.02, 0.3, 0.1)


def trace(allocated_gib: float, logits_gib: float = 0.0, phase: Phase = Phase.BACKWARD) -> Trace:
    return Trace(
        recipe=RECIPE, shape=TraceShape(model="llama-3.2-1b"), versions={}, resident_bytes=0,
        trainable_parameters=0, operations=0,
        phases=(
            PhaseTrace(
                phase=phase, allocated_bytes=0, block_bytes=int(allocated_gib * GIB), reserved_bytes=0,
                operation="",
                by_category={Category.LOGITS: int(logits_gib * GIB)},
            ),
        ),
    )  # fmt: skip


def test_what_must_be_free_beyond_what_is_allocated() -> None:
    assert CARD.needed_gib(trace(10)) == pytest.approx(10 * 1.02 + 0.5 + 0.1)
    assert CARD.needed_gib(trace(10, logits_gib=2)) == pytest.approx((10 + 0.3 * 2) * 1.02 + 0.6)
    # The optimizer's temporaries are as large as its tensors: nothing is lost between them.
    assert CARD.needed_gib(trace(10, 2, Phase.OPTIMIZER)) == pytest.approx(10 + 0.6)
    assert CARD.holds(trace(22.9))
    assert not CARD.holds(trace(23.0))


@pytest.mark.parametrize(
    ("fixed_gib", "gib_per_sequence"), [(2, 1.7), (21, 0.001), (0, 22.9), (22, 1.5), (40, 1), (5, 0.37)]
)
def test_the_largest_micro_batch_fits_and_the_next_does_not(
    fixed_gib: float, gib_per_sequence: float
) -> None:
    tried: list[int] = []

    def at(size: int) -> Trace:
        tried.append(size)
        # A kink, as where another phase becomes the peak.
        return trace(max(fixed_gib + gib_per_sequence * size, 1.3 * gib_per_sequence * size))

    most = largest_micro_batch(at, CARD, lambda line: None)
    assert most == 0 or CARD.holds(at(most))
    assert not CARD.holds(at(most + 1))
    assert len(tried) <= 12


def test_a_step_that_does_not_grow_stops_at_the_limit() -> None:
    assert largest_micro_batch(lambda size: trace(1), CARD, lambda line: None, limit=64) == 64


def test_a_card_of_the_catalogue(model: duckdb.DuckDBPyConnection) -> None:
    card = read_card(model, "t4")
    assert card.compute_capability == (7, 5)
    assert 14 < card.usable_gib < 16
    with pytest.raises(CannotTraceError, match="CDNA3"):
        read_card(model, "mi300x")
    with pytest.raises(CannotTraceError, match="not in the catalogue"):
        read_card(model, "h9000")


def test_a_recipe_as_the_settings_of_a_run(model: duckdb.DuckDBPyConnection) -> None:
    recipe = Recipe(
        name="mine", framework="transformers", method="qlora", quantization="nf4dq", kbit_upcast=True,
        lora_rank=8, lora_targets=("q_proj", "v_proj"), checkpointing="full", attention="eager",
        optimizer="paged_adamw8bit",
    )  # fmt: skip
    settings = run_settings(recipe, TraceShape(model="llama-3-8b", micro_batch=2, seq_len=512), "rtx-4090")
    columns = ", ".join(f"${name} AS {name}" for name in settings)
    (row,) = model.execute(
        f"WITH mine AS (SELECT {columns}) SELECT memory_gib, assumptions FROM memory_of('mine')", settings
    ).fetchall()
    assert row[0] > 0
    assert row[1] == "{}"  # nothing is left open, and no column is unknown


@pytest.mark.parametrize("seed", range(40))
def test_any_monotone_need_takes_few_traces(seed: int) -> None:
    random = Random(seed)
    limit = 4096
    steps = sorted((random.randint(1, limit), random.random() ** random.choice([1, 8])) for _ in range(6))
    answer = random.randint(0, limit)
    tried: list[int] = []

    def at(size: int) -> Trace:
        tried.append(size)
        below = sum(share for start, share in steps if start <= size)
        return trace(below if size <= answer else 30 + below)

    assert largest_micro_batch(at, CARD, lambda line: None, limit=limit) == answer
    assert len(tried) == len(set(tried)) <= 2 * log2(limit) + 6


def test_the_first_trace_is_used_again() -> None:
    tried: list[int] = []

    def at(size: int) -> Trace:
        tried.append(size)
        return trace(size)

    assert largest_micro_batch(at, CARD, lambda line: None, first=trace(1)) == 22
    assert 1 not in tried
