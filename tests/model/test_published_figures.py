"""Figures that were published, or that follow by hand from a model's shape, come out of the model."""

import duckdb
import pytest

from tests.model.conftest import Row, answers, cases

GIB = 1024**3


def test_published_figures_come_out_of_the_model(model: duckdb.DuckDBPyConnection) -> None:
    figures = cases("published_figures.yaml")["figures"]
    runs = [figure["both"] | figure[which] for which in ("run", "to") for figure in figures]
    memory, speed = answers(model, "memory_of", runs), answers(model, "speed_of", runs)
    found = [one | other for one, other in zip(memory, speed, strict=True)]
    wrong = []
    for figure, one, other in zip(figures, found[: len(figures)], found[len(figures) :], strict=True):
        (low, high), value = figure["between"], one[figure["figure"]] / other[figure["figure"]]
        if not low <= value <= high:
            wrong.append(f"{figure['what']}: {value:.4g} is not from {low} to {high}")
    assert wrong == []


LLAMA_3_8B = {"model": "llama-3-8b", "gpu": "a100-sxm-80gb"}
PARAMS, LINEAR, VOCAB = 8_030_261_248, 6_979_321_856, 128_256
BY_HAND: tuple[tuple[Row, str, float], ...] = (
    # Rank 16 on queries and values of 32 layers, in 4 bytes.
    (LLAMA_3_8B | {"lora_targets": "q_proj+v_proj"}, "adapter_gib", 16 * 32 * (8192 + 5120) * 4),
    (LLAMA_3_8B | {"lora_targets": "q_proj+v_proj"}, "optimizer_gib", 16 * 32 * (8192 + 5120) * 8),
    # Embeddings and head are not quantized.
    (LLAMA_3_8B | {"method": "qlora", "kbit_upcast": 0}, "weights_gib",
     LINEAR * 0.5625 + (PARAMS - LINEAR) * 2),
)  # fmt: skip


def test_terms_follow_by_hand_from_the_shape_of_a_model(model: duckdb.DuckDBPyConnection) -> None:
    """To a thousandth, which is how well the traces of many models tell the bytes of each."""
    found = answers(model, "memory_of", [run for run, _, _ in BY_HAND])
    wrong = [
        f"{run}: {name} is {row[name] * GIB:,.0f} bytes, not {expected:,.0f}"
        for row, (run, name, expected) in zip(found, BY_HAND, strict=True)
        if row[name] * GIB != pytest.approx(expected, rel=1e-3)
    ]
    assert wrong == []
