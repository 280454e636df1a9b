"""The grid of traces: its cells, its table, and what is kept, traced again or named as missing."""

import json
from pathlib import Path

import pytest

from gpufare_tracer import grid, kept
from gpufare_tracer.grid import Cell, Table, Traced
from gpufare_tracer.kept import Journal, Revision, Row
from gpufare_tracer.recipes import Recipe, read_recipes
from gpufare_tracer.result import TraceShape
from gpufare_tracer.table import KEYS, columns

LORA = Recipe(name="hf-lora", framework="transformers", lora_rank=8)
CELL = Cell("hf-lora", "llama-3.1-8b", 2, 1, 512)
VERSIONS = "click 8, duckdb 2"


def row_of(cell: Cell, **values: int) -> Row:
    row = dict.fromkeys(columns(), "0") | {name: str(value) for name, value in cell._asdict().items()}
    return row | {name: str(value) for name, value in values.items()}


def traced(cell: Cell = CELL, digest: str = "a", versions: str = VERSIONS, **values: int) -> Traced:
    return Traced(cell, digest, row_of(cell, **values), versions)


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
    revision = Revision("DDP's buckets", lambda recipe: recipe.sharding == "ddp")
    monkeypatch.setattr(kept, "REVISIONS", (revision,))
    changed = [kept.digest_of(*each) != was for each, was in zip(recipes, before, strict=True)]
    assert changed == [False, False, True, True]


def test_a_journal_loses_the_line_that_was_being_written_and_no_other(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "new" / "some.journal")
    assert list(journal.lines()) == []
    journal.add(["a", {"b": 1}])
    with journal.path.open("a", encoding="utf-8") as file:
        file.write('["torn", {"b"')
    journal.add(["c", {"d": 2}])
    assert list(journal.lines()) == [["a", {"b": 1}], ["c", {"d": 2}]]
    journal.end()
    assert list(journal.lines()) == []


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    table = Table.read(tmp_path)
    other = CELL._replace(model="gemma-2b")
    table.add(traced(CELL, forward_allocated_bytes=512))
    table.add(traced(other))
    table.add(Traced(CELL._replace(model="deepseek-v3"), "a", reason="CannotTraceError: no"))
    table.write()
    again = Table.read(tmp_path)
    assert (again.rows, again.digests, again.versions) == (table.rows, table.digests, table.versions)
    assert again.failures == {("hf-lora", "deepseek-v3", "CannotTraceError: no"): 1}
    lines = (tmp_path / grid.TRACES_FILE).read_text().splitlines()
    assert lines[0].split(",") == list(columns())
    assert [line.split(",")[1] for line in lines[1:]] == ["gemma-2b", "llama-3.1-8b"]


def test_an_interrupted_grid_keeps_what_was_finished(tmp_path: Path) -> None:
    done = traced(forward_allocated_bytes=512)
    line = json.dumps([done.cell, done.digest, done.row, done.versions, done.reason])
    (tmp_path / grid.JOURNAL_FILE).write_text(f"{line}\n{line[:50]}", encoding="utf-8")
    assert Table.read(tmp_path).rows == {CELL: done.row}


@pytest.mark.parametrize(("digest", "versions"), [("b", VERSIONS), ("a", "click 9, duckdb 2")])
def test_rows_of_another_recipe_or_version_leave(digest: str, versions: str, tmp_path: Path) -> None:
    table = Table.read(tmp_path)
    table.add(traced(CELL))
    table.add(traced(CELL._replace(layers=4)))
    assert len(table.rows) == 2
    table.add(traced(CELL._replace(layers=6), digest, versions))
    assert list(table.rows) == [CELL._replace(layers=6)]


def test_a_table_with_other_columns_is_traced_again(tmp_path: Path) -> None:
    table = Table.read(tmp_path)
    table.add(traced())
    table.write()
    path = tmp_path / grid.TRACES_FILE
    path.write_text(path.read_text().replace("resident_bytes", "resident"), encoding="utf-8")
    assert Table.read(tmp_path).rows == {}


def test_rows_whose_packages_are_not_installed_are_kept_and_named(tmp_path: Path) -> None:
    table = Table.read(tmp_path)
    table.add(traced(versions="no-such-package 1.0"))
    table.write()
    said: list[str] = []
    kept = grid.fill({"hf-lora": LORA}, folder=tmp_path, fresh=True, show=said.append)
    assert kept.rows.keys() == {CELL}
    assert any("hf-lora: kept as it is, for not all of no-such-package 1.0" in line for line in said)


def test_a_difference_names_row_column_and_both_values() -> None:
    row = row_of(CELL, forward_allocated_bytes=512)
    assert grid.differences(row, Traced(CELL, "a", dict(row), VERSIONS)) == []
    assert grid.differences(row, traced(forward_allocated_bytes=1024)) == [
        "hf-lora llama-3.1-8b 2 1 512: forward_allocated_bytes was 512, is 1024"
    ]
    assert grid.differences(row, Traced(CELL, "a", reason="ValueError: no")) == [
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


def test_a_sample_has_every_recipe_and_only_what_is_installed(tmp_path: Path) -> None:
    table = Table.read(tmp_path)
    here = kept.installed_versions("click 0, duckdb 0")
    assert here is not None
    for name, versions in (("hf-lora", here), ("hf-full", here), ("hf-qlora", "no-such-package 1")):
        for model in grid.MODELS:
            table.add(traced(CELL._replace(recipe=name, model=model), versions=versions))
    chosen = grid.sample(table)
    assert {cell.recipe for cell in chosen} == {"hf-lora", "hf-full"}
    assert len(chosen) == 2 * grid.SAMPLE_PER_RECIPE
    assert grid.sample(table) == chosen


def test_a_check_of_nothing_is_no_success(tmp_path: Path) -> None:
    with pytest.raises(grid.GridError, match=r"names the versions of the packages that made them"):
        grid.check(folder=tmp_path)


def test_unknown_recipes_and_models_are_named() -> None:
    with pytest.raises(grid.GridError, match="no recipe nope"):
        grid.chosen_recipes(["nope"])
    with pytest.raises(grid.GridError, match="no model nope"):
        grid.chosen_models(["nope"])


def test_the_catalogues_traces_are_of_its_recipes() -> None:
    table = Table.read()
    recipes = read_recipes()
    assert table.digests.keys() <= recipes.keys()
    stale = [name for name, digest in table.digests.items() if digest != kept.digest_of(recipes[name])]
    assert stale == [], "their switches changed since they were traced: run gpufare trace-grid"


def test_every_cell_of_the_grid_is_traced_or_has_a_reason() -> None:
    table = Table.read()
    missing = {}
    for name, recipe in read_recipes().items():
        traced = sum(cell.recipe == name for cell in table.rows)
        failed = sum(count for (failing, _, _), count in table.failures.items() if failing == name)
        if left := len(grid.cells([recipe])) - traced - failed:
            missing[name] = left
    assert missing == {}, "run gpufare trace-grid"
