"""The grid of traces: its cells, its table, and what is kept, traced again or named as missing."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gpufare_tracer import grid, kept
from gpufare_tracer.grid import Cell, differences, job_of
from gpufare_tracer.kept import Kept, Row, digest_of
from gpufare_tracer.recipes import Recipe, read_recipes
from gpufare_tracer.result import TraceShape
from gpufare_tracer.table import KEYS, columns
from pipeline.home import paths

LORA = Recipe(name="hf-lora", framework="transformers", lora_rank=8)
RECIPES = read_recipes()
CELL = Cell("hf-lora", "llama-3.1-8b", 2, 1, 512)
HERE = str(kept.installed_versions("click 0, duckdb 0"))


def row_of(cell: Cell = CELL, versions: str = HERE, **values: int) -> Row:
    row = dict.fromkeys(columns(), "0") | {name: str(value) for name, value in cell._asdict().items()}
    return row | {name: str(value) for name, value in values.items()} | {"versions": versions, "problem": ""}


def digest(cell: Cell) -> str:
    return digest_of(*job_of(RECIPES[cell.recipe], cell))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Cell]:
    """Cells that are traced during a test; nothing runs."""
    cells: list[Cell] = []

    def in_processes(function: Any, calls: Sequence[Any], jobs: int) -> Iterator[tuple[int, Row]]:
        for index, (_, recipe, shape) in enumerate(calls):
            cells.append(Cell(recipe.name, shape.model, shape.layers, shape.micro_batch, shape.seq_len))
            yield index, row_of(cells[-1])

    monkeypatch.setattr(kept, "in_processes", in_processes)
    return cells


def test_a_cell_is_named_by_columns_of_the_table() -> None:
    assert KEYS[: len(Cell._fields)] == Cell._fields


def test_every_recipe_meets_every_shape_at_two_depths() -> None:
    recipes = read_recipes()
    cells = grid.cells(recipes.values())
    assert len(cells) == len(set(cells))
    assert {cell.recipe for cell in cells} == recipes.keys()
    assert {cell.model for cell in cells} == set(grid.MODELS)
    for name, recipe in recipes.items():
        own = [cell for cell in cells if cell.recipe == name]
        assert len(own) == len(grid.models_of(recipe)) * len(grid.DEPTHS) * len(grid.SHAPES)
    assert {len({c.layers for c in cells if c.model == model}) for model in grid.MODELS} == {2}


def test_shapes_tell_terms_per_token_and_per_squared_length_apart() -> None:
    import numpy as np

    terms = [[1, batch * length, batch * length**2] for batch, length in grid.SHAPES]
    assert np.linalg.matrix_rank(np.array(terms, dtype=float)) == 3


def test_a_digest_follows_switches_and_nothing_else() -> None:
    renamed = LORA.model_copy(update={"name": "x", "title": "y", "source": "z"})
    assert kept.digest_of(LORA) == kept.digest_of(renamed)
    assert kept.digest_of(LORA) != kept.digest_of(LORA.model_copy(update={"lora_rank": 16}))
    given = Recipe(name="hf-lora", framework="transformers", lora_rank=8, lora_dropout=0.0)
    assert kept.digest_of(LORA) == kept.digest_of(given)


def test_a_revision_of_the_tracer_makes_stale_what_it_applies_to_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ddp = LORA.model_copy(update={"sharding": "ddp", "gpu_count": 2})
    shape = TraceShape(model="gemma-2b")
    recipes = [(LORA, None), (LORA, shape), (ddp, None), (ddp, shape)]
    before = [kept.digest_of(*each) for each in recipes]
    assert len(set(before)) == len(recipes)
    monkeypatch.setattr(kept, "REVISIONS", {"DDP's buckets": lambda recipe: recipe.sharding == "ddp"})
    changed = [kept.digest_of(*each) != was for each, was in zip(recipes, before, strict=True)]
    assert changed == [False, False, True, True]


def test_an_interrupted_run_keeps_what_was_finished_and_loses_one_trace(
    tmp_path: Path, made: list[Cell]
) -> None:
    journal = tmp_path / "new" / "some.journal"
    two, three = CELL._replace(seq_len=1024), CELL._replace(seq_len=2048)
    Kept(journal, {}, grid.row).trace([job_of(RECIPES["hf-lora"], CELL)], 1, lambda _: None)
    with journal.open("a", encoding="utf-8") as file:
        file.write('["torn", {"b"')
    jobs = [job_of(RECIPES["hf-lora"], cell) for cell in (CELL, two, three)]
    Kept(journal, {digest(two): row_of(two)}, grid.row).trace(jobs, 1, lambda _: None)
    assert made == [CELL, three]
    again = Kept(journal, {}, grid.row)
    assert again.rows == {digest(CELL): row_of(CELL), digest(three): row_of(three)}
    again.end()
    assert Kept(journal, {}, grid.row).rows == {}


def test_what_failed_or_ran_other_packages_is_traced_again(tmp_path: Path, made: list[Cell]) -> None:
    other, failed = CELL._replace(seq_len=1024), CELL._replace(seq_len=2048)
    rows = {
        digest(CELL): row_of(),
        digest(other): row_of(other, versions="no-such-package 1.0"),
        digest(failed): {"problem": "CannotTraceError: no", "versions": ""},
    }
    jobs = [job_of(RECIPES["hf-lora"], cell) for cell in (CELL, other, failed)]
    Kept(tmp_path / "some.journal", rows, grid.row).trace(jobs, 1, lambda _: None)
    assert made == [other, failed]


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    table = {cell: row_of(cell) for cell in (CELL, CELL._replace(model="gemma-2b"))}
    grid.write(tmp_path, table)
    assert grid.read(tmp_path, RECIPES) == table
    lines = (tmp_path / grid.TRACES_FILE).read_text().splitlines()
    assert lines[0].split(",") == list(columns())
    assert [line.split(",")[1] for line in lines[1:]] == ["gemma-2b", "llama-3.1-8b"]


def test_rows_of_another_recipe_or_other_columns_leave(tmp_path: Path) -> None:
    grid.write(tmp_path, {CELL: row_of()})
    changed = RECIPES | {"hf-lora": RECIPES["hf-lora"].model_copy(update={"lora_rank": 8})}
    assert grid.read(tmp_path, changed) == {}
    path = tmp_path / grid.TRACES_FILE
    path.write_text(path.read_text().replace("resident_bytes", "resident"), encoding="utf-8")
    assert grid.read(tmp_path, RECIPES) == {}


def test_a_grid_traces_only_what_it_lacks_and_keeps_other_recipes(tmp_path: Path, made: list[Cell]) -> None:
    kept_row, other = row_of(forward_allocated_bytes=512), Cell("hf-full", "gemma-2b", 2, 1, 512)
    grid.write(tmp_path, {CELL: kept_row, other: row_of(other)})
    found = grid.fill({"hf-lora": RECIPES["hf-lora"]}, folder=tmp_path)
    assert set(made) == set(grid.cells([RECIPES["hf-lora"]])) - {CELL}
    assert found.keys() == {*made, CELL, other}
    assert found[CELL] == kept_row
    assert grid.read(tmp_path, RECIPES) == found
    assert not (tmp_path / grid.JOURNAL_FILE).exists()


def test_a_changed_recipe_is_traced_again_and_its_changed_peaks_are_shown(
    tmp_path: Path, made: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    grid.write(tmp_path, {CELL: row_of(forward_allocated_bytes=512)})
    changed = {"hf-lora": RECIPES["hf-lora"].model_copy(update={"lora_rank": 8})}
    monkeypatch.setattr(grid, "read_recipes", lambda: RECIPES | changed)
    said: list[str] = []
    grid.fill(changed, folder=tmp_path, show=said.append)
    assert set(made) == set(grid.cells(changed.values()))
    assert said[-1] == "hf-lora llama-3.1-8b 2 1 512: forward 512 to 0 bytes, -100.0%"


def test_what_cannot_be_traced_is_an_error_after_the_rest_is_written(
    tmp_path: Path, made: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = row_of() | {"problem": "ValueError: no"}
    monkeypatch.setattr(kept, "in_processes", lambda _, calls, __: ((i, failing) for i in range(len(calls))))
    grid.write(tmp_path, {CELL: row_of()})
    with pytest.raises(grid.GridError, match=r"47 cells cannot be traced, .*: ValueError: no"):
        grid.fill({"hf-lora": RECIPES["hf-lora"]}, folder=tmp_path)
    assert grid.read(tmp_path, RECIPES) == {CELL: row_of()}


def test_a_difference_names_row_column_and_both_values() -> None:
    row = row_of(forward_allocated_bytes=512)
    assert differences(CELL, row, dict(row)) == []
    assert differences(CELL, row, row_of(forward_allocated_bytes=1024)) == [
        "hf-lora llama-3.1-8b 2 1 512: forward_allocated_bytes was 512, is 1024"
    ]
    assert differences(CELL, row, {"problem": "ValueError: no"}) == [
        "hf-lora llama-3.1-8b 2 1 512: cannot be traced any more: ValueError: no"
    ]


def test_peaks_that_changed_are_shown_by_how_much() -> None:
    before = {CELL: row_of(CELL, forward_allocated_bytes=1000, backward_allocated_bytes=1000)}
    after = {CELL: row_of(CELL, forward_allocated_bytes=1010, backward_allocated_bytes=2000)}
    assert grid.peak_changes(before, after) == [
        "hf-lora llama-3.1-8b 2 1 512: backward 1000 to 2000 bytes, +100.0%",
        "hf-lora llama-3.1-8b 2 1 512: forward 1000 to 1010 bytes, +1.0%",
    ]


def test_a_reason_has_no_path_of_the_machine() -> None:
    error = ValueError("/home/me/.venv/lib/torch/nn.py: see https://github.com/a/b/issues/1\nmore")
    assert kept.reason_of(error) == "ValueError: nn.py: see https://github.com/a/b/issues/1"


def test_a_sample_has_every_recipe_and_only_what_is_installed() -> None:
    table = {
        cell: row_of(cell, versions)
        for name, versions in (("hf-lora", HERE), ("hf-full", HERE), ("hf-qlora", "no-such-package 1"))
        for cell in (CELL._replace(recipe=name, model=model) for model in grid.MODELS)
    }
    assert {cell.recipe for cell in grid.sample(table)} == {"hf-lora", "hf-full"}
    assert grid.sample(table) == grid.sample(table)


def test_a_check_of_nothing_is_not_a_success(tmp_path: Path) -> None:
    with pytest.raises(grid.GridError, match=r"names the versions of the packages that made them"):
        grid.check(folder=tmp_path)


def test_an_unknown_recipe_is_named() -> None:
    with pytest.raises(grid.GridError, match="no recipe nope"):
        grid.chosen_recipes(["nope"])


def test_every_cell_of_the_grid_is_traced() -> None:
    table = grid.read(paths.CATALOG_DIR, RECIPES)
    assert table.keys() == set(grid.cells(RECIPES.values())), "run gpufare trace-grid"
