"""docs/reference/recipes.md: the recipes of catalog/recipes.yaml, with their switches."""

from docs.generate.markdown import table
from pipeline.model.tracing.grid import Table, cells
from pipeline.model.tracing.recipes import Recipe, read_recipes

HEADINGS = ("recipe", "training step", "whose code", "switches", "traces", "source")

INTRODUCTION = """# Recipes

This file is made by `make docs` from `catalog/recipes.yaml` and `catalog/traces.csv`.

A recipe is a training step as a framework runs it: the switches that decide what it allocates and
computes, with the framework's own defaults. `gpufare trace --recipe NAME` traces one; `gpufare
trace-grid` traces all of them on a grid of architectures, depths and shapes into `catalog/traces.csv`.
`catalog/traces_failed.csv` lists combinations that cannot be traced, with the reason.

- **whose code**: the framework whose code runs in the trace. An emulation runs another framework's switches;
  the notes below the table name the code that it runs on.
- **switches**: differences from the defaults of `Recipe` in `pipeline/model/tracing/recipes.py`.
- **traces**: rows in `catalog/traces.csv`, out of the grid's combinations.
- **source**: where the framework documents or sets the switches.
"""

NOTES = """
## Emulations
"""


def page() -> str:
    """Return the page."""
    recipes = read_recipes().values()
    traced = Table.read()
    counts = {name: sum(cell.recipe == name for cell in traced.rows) for name in read_recipes()}
    rows = [_cells(recipe, f"{counts[recipe.name]} of {len(cells([recipe]))}") for recipe in recipes]
    notes = [f"- **{recipe.name}**: {recipe.emulates}." for recipe in recipes if recipe.emulates]
    return "\n".join([INTRODUCTION, table(HEADINGS, rows), NOTES, *notes, ""])


def _cells(recipe: Recipe, traces: str) -> list[str]:
    file = recipe.source.rpartition("/")[2]
    code = f"{recipe.framework} (emulated)" if recipe.emulates else recipe.framework
    return [
        f"`{recipe.name}`", recipe.title, code, _switches(recipe), traces, f"[{file}]({recipe.source})"
    ]  # fmt: skip


def _switches(recipe: Recipe) -> str:
    named = {"name", "title", "framework", "emulates", "source"}
    switches = recipe.model_dump(exclude_defaults=True, exclude=named)
    return ", ".join(f"{name} {_value(value)}" for name, value in switches.items())


def _value(value: object) -> str:
    return " ".join(value) if isinstance(value, tuple) else str(value).lower()
