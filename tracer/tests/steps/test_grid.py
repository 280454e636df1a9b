"""The grid on real traces: equal to the byte regardless of earlier traces, and linear in depth."""

import pytest

from gpufare_tracer.grid import Cell, Traced, differences, trace_cell, trace_cells
from gpufare_tracer.recipes import read_recipes
from gpufare_tracer.table import PHASES

RECIPES = read_recipes()
CELLS = [
    Cell("hf-lora", "smollm2-135m", 2, 1, 512),
    Cell("hf-full", "smollm2-135m", 2, 1, 512),
    Cell("hf-qlora", "smollm2-135m", 2, 1, 512),
]


def trace(cell: Cell) -> Traced:
    traced = trace_cell(RECIPES[cell.recipe], cell)
    assert traced.row is not None, traced.reason
    return traced


def test_order_and_process_change_no_byte() -> None:
    here = {cell: trace(cell) for cell in CELLS}
    elsewhere = {traced.cell: traced for traced in trace_cells(RECIPES, CELLS[::-1], jobs=1)}
    assert elsewhere == here


@pytest.mark.parametrize("name", ["hf-full", "hf-lora-no-checkpointing", "hf-lora"])
def test_memory_is_linear_in_depth_where_the_peak_stays_in_its_place(name: str) -> None:
    rows = [trace(Cell(name, "smollm2-135m", layers, 1, 512)).row for layers in (4, 6, 8)]
    assert all(row is not None for row in rows)
    for column in ("resident_bytes", "trainable_parameters", *(f"{p}_weights_bytes" for p in PHASES)):
        first, second, third = (int(row[column]) for row in rows if row)
        assert third - second == second - first, column


def test_untraceable_step_has_its_reason() -> None:
    recipe = RECIPES["hf-lora"].model_copy(update={"lora_targets": ("no_such_layer",)})
    traced = trace_cell(recipe, CELLS[0])
    assert traced.row is None
    assert "no_such_layer" in traced.reason
    assert differences({}, traced)[0].endswith(traced.reason)
