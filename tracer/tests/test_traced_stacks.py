"""Measured runs as traced recipes, by the software of their source."""

import csv
from pathlib import Path

import pytest

from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.measured import read_stacks, recipe_of
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import TraceShape
from pipeline.home import paths

with (paths.CATALOG_DIR / "measured_runs.csv").open(newline="", encoding="utf-8") as file:
    RUNS = list(csv.DictReader(file))
STACKS = read_stacks()
SOME_OF_FMS = (
    "fms_accel-033", "fms_accel-077", "fms_accel-104", "fms_accel-133", "fms_accel-234", "fms_accel-325",
)  # fmt: skip
"""A run of each of its tables, and of each precision."""


def one(source: str, **settings: str) -> dict[str, str]:
    return next(
        run
        for run in RUNS
        if run["source"] == source and all(run[column] == value for column, value in settings.items())
    )


def traced(run: dict[str, str]) -> tuple[Recipe, TraceShape] | str:
    try:
        return recipe_of(run, STACKS)
    except CannotTraceError as error:
        return str(error)


@pytest.mark.parametrize("source", sorted(STACKS))
def test_every_run_of_an_identified_source_has_a_recipe_or_a_reason(source: str) -> None:
    runs = [run for run in RUNS if run["source"] == source]
    found = [(run, traced(run)) for run in runs]
    recipes = [(run, *it) for run, it in found if not isinstance(it, str)]
    assert recipes
    assert all(
        (recipe.method, shape.model) == (run["method"], run["model"]) for run, recipe, shape in recipes
    )
    assert all(run["run_id"] in why for run, why in found if isinstance(why, str))


def test_fitchecks_loop_holds_its_outputs_in_fp16_on_a_t4() -> None:
    recipe, shape = recipe_of(one("fitcheck_t4", method="qlora", flash_attention="0"), STACKS)
    assert (recipe.weight_dtype, recipe.outputs_held, recipe.gradient_clipping) == ("fp16", True, False)
    assert (recipe.attention, recipe.optimizer, recipe.kbit_upcast) == ("eager", "adamw", True)
    assert shape.compute_capability == (7, 5)


def test_a_source_without_an_identified_stack_is_refused() -> None:
    with pytest.raises(CannotTraceError, match=r"bigscience.*not identified"):
        recipe_of(one("bigscience"), STACKS)


def test_an_unknown_optimizer_is_refused_by_name() -> None:
    with pytest.raises(CannotTraceError, match="no recipe has optimizer 'lion'"):
        recipe_of(one("fitcheck_t4") | {"optimizer": "lion"}, STACKS)


def test_rules_apply_to_the_runs_they_name_and_may_leave_them_out(tmp_path: Path) -> None:
    path = tmp_path / "stacks.yaml"
    path.write_text(
        "fitcheck_t4:\n  title: t\n  evidence: e\n  rules:\n"
        "    - when: {method: lora}\n      switches: {lora_dropout: 0.1}\n"
        "    - when: {method: [qlora, full]}\n      left_out: not these\n",
        encoding="utf-8",
    )
    stacks = read_stacks(path)
    assert recipe_of(one("fitcheck_t4", method="lora"), stacks)[0].lora_dropout == 0.1
    with pytest.raises(CannotTraceError, match="not these"):
        recipe_of(one("fitcheck_t4", method="qlora"), stacks)


def test_a_rule_for_a_range_of_runs_is_for_no_other(tmp_path: Path) -> None:
    path = tmp_path / "stacks.yaml"
    path.write_text(
        "fitcheck_t4:\n  title: t\n  evidence: e\n  rules:\n"
        "    - runs: [[fitcheck_t4-002, fitcheck_t4-003], [fitcheck_t4-005, fitcheck_t4-005]]\n"
        "      switches: {outputs_held: true}\n",
        encoding="utf-8",
    )
    stacks = read_stacks(path)
    held = [recipe_of(one("fitcheck_t4", run_id=f"fitcheck_t4-00{n}"), stacks)[0] for n in range(1, 7)]
    assert [recipe.outputs_held for recipe in held] == [False, True, True, False, True, False]


def test_the_runs_of_one_benchmark_are_of_the_versions_that_it_pins() -> None:
    runs = {run["run_id"]: recipe_of(run, STACKS)[0] for run in RUNS if run["run_id"] in SOME_OF_FMS}
    assert {run_id: (r.shifted_logits, r.autocast, r.kernels, r.loss) for run_id, r in runs.items()} == {
        "fms_accel-033": ("loss", None, "eager", "framework"),
        "fms_accel-077": ("loss", "bf16", "eager", "framework"),
        "fms_accel-104": ("loss", "fp16", "eager", "framework"),
        "fms_accel-133": ("model", "bf16", "unsloth", "framework"),
        "fms_accel-234": ("none", "bf16", "unsloth", "fused_linear"),
        "fms_accel-325": ("model", None, "eager", "framework"),
    }
    assert [run_id for run_id, recipe in runs.items() if recipe.checkpoint_around_unit] == ["fms_accel-104"]


def test_an_entry_with_an_unknown_field_is_refused_by_source(tmp_path: Path) -> None:
    path = tmp_path / "stacks.yaml"
    path.write_text("one:\n  title: t\n  evidence: e\n  optimizer: adamw\n", encoding="utf-8")
    with pytest.raises(ValueError, match="one"):
        read_stacks(path)
