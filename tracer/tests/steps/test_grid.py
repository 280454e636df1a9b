"""The grid on real traces: equal to the byte regardless of earlier traces, and linear in depth."""

import pytest

from gpufare_tracer.grid import Cell, differences, job_of
from gpufare_tracer.kept import Row, traced_row
from gpufare_tracer.processes import in_processes
from gpufare_tracer.recipes import read_recipes
from gpufare_tracer.table import PHASES, row

RECIPES = read_recipes()
CELLS = [
    Cell("hf-lora", "smollm2-135m", 2, 1, 512),
    Cell("hf-full", "smollm2-135m", 2, 1, 512),
    Cell("hf-qlora", "smollm2-135m", 2, 1, 512),
]


def trace(cell: Cell) -> Row:
    traced = traced_row(row, *job_of(RECIPES[cell.recipe], cell))
    assert not traced["problem"]
    return traced


def test_order_and_process_change_no_byte() -> None:
    here = {cell: trace(cell) for cell in CELLS}
    calls = [(row, *job_of(RECIPES[cell.recipe], cell)) for cell in CELLS[::-1]]
    elsewhere = {CELLS[::-1][index]: traced for index, traced in in_processes(traced_row, calls, jobs=1)}
    assert elsewhere == here


@pytest.mark.parametrize("name", ["hf-full", "hf-lora-no-checkpointing", "hf-lora"])
def test_memory_is_linear_in_depth_where_the_peak_stays_in_its_place(name: str) -> None:
    rows = [trace(Cell(name, "smollm2-135m", layers, 1, 512)) for layers in (4, 6, 8)]
    for column in ("resident_bytes", "trainable_parameters", *(f"{p}_weights_bytes" for p in PHASES)):
        first, second, third = (int(row[column]) for row in rows)
        assert third - second == second - first, column


def test_untraceable_step_has_its_reason() -> None:
    recipe = RECIPES["hf-lora"].model_copy(update={"lora_targets": ("no_such_layer",)})
    traced = traced_row(row, *job_of(recipe, CELLS[0]))
    assert "no_such_layer" in traced["problem"]
    assert differences(CELLS[0], {}, traced)[0].endswith(traced["problem"])


@pytest.mark.parametrize(
    ("model", "layers"), [("mixtral-8x7b", 1), ("qwen3-30b-a3b", 1), ("deepseek-v3", 4), ("gemma-2-9b", 2)]
)
def test_models_with_other_code_than_the_grids_are_traced_too(model: str, layers: int) -> None:
    """Mixtures of experts, latent attention, capped scores: two bytes for each parameter."""
    recipe = RECIPES["hf-full-pure-bf16"].model_copy(update={"attention": "eager"})
    traced = traced_row(row, *job_of(recipe, Cell(recipe.name, model, layers, 1, 512)))
    assert not traced["problem"]
    weights = int(traced["optimizer_weights_bytes"])
    assert weights == pytest.approx(2 * int(traced["trainable_parameters"]), rel=1e-3)
    assert int(traced["optimizer_optimizer_bytes"]) == pytest.approx(2 * weights, rel=1e-3)
