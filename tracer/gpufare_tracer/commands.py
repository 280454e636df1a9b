"""The tracer's commands: command-line plugins in the entry-point group ``gpufare.commands``."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pipeline.cli.parameters import EXISTING_FILE
from pipeline.cli.terminal import tell

if TYPE_CHECKING:
    import duckdb

    from gpufare_tracer.card import Card
    from gpufare_tracer.recipes import Recipe
    from gpufare_tracer.result import Trace, TraceShape
    from gpufare_tracer.steps import Step

GIB = 1 << 30
OUTPUT_FOLDER = click.Path(file_okay=False, path_type=Path)
OWN_SWITCHES = ("gradient_accumulation", "gradient_clipping")
"""The only switches that apply to a user's own step: they control the loop around the step."""


@click.command()
@click.option("--recipe", "recipe_name", default="hf-lora", show_default=True, metavar="NAME",
              help="A preset from catalog/recipes.yaml.")  # fmt: skip
@click.option("--set", "switches", multiple=True, metavar="SWITCH=VALUE",
              help="Change one of the recipe's switches, e.g. lora_rank=64. Repeatable.")  # fmt: skip
@click.option("--model", default="llama-3.1-8b", show_default=True, help="The model's catalogue id.")
@click.option("--config", type=EXISTING_FILE, help="A config.json to use instead of --model.")
@click.option("--step", metavar="MODULE:FUNCTION", help="Trace your own training step instead of a recipe.")
@click.option("--micro-batch", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--seq-len", type=click.IntRange(min=1), default=2048, show_default=True)
@click.option("--layers", type=click.IntRange(min=1), help="Cut the model down to this many layers.")
@click.option("--gpu", default="a100-sxm-80gb", show_default=True, help="The card's catalogue id.")
@click.option("--fit", is_flag=True, help="Also find the largest micro-batch that fits on the card.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def trace(
    recipe_name: str, switches: tuple[str, ...], model: str, config: Path | None, step: str | None,
    micro_batch: int, seq_len: int, layers: int | None, gpu: str, fit: bool, form: str,
) -> None:  # fmt: skip
    """Find the peak memory of a training step by running its code without a GPU.

    The recipe's own libraries run on fake tensors: nothing is computed, but every allocation is counted. The
    tables are in GiB (2^30 bytes).
    """
    from gpufare_tracer import own_step
    from gpufare_tracer.card import largest_micro_batch, read_card
    from gpufare_tracer.result import TraceShape
    from gpufare_tracer.steps import build_step
    from gpufare_tracer.trace import trace as trace_step
    from pipeline.parsing.printable import printable
    from pipeline.warehouse.database import in_memory

    _check_options(step, fit, layers)
    recipe = recipe_as_set(recipe_name, switches, step)
    connection = in_memory("memory_of")
    card = read_card(connection, gpu)
    shape = TraceShape(
        model=step or (printable(config.stem) if config else model), config=read_config(config),
        layers=layers, micro_batch=micro_batch, seq_len=seq_len, compute_capability=card.compute_capability,
    )  # fmt: skip
    build: Callable[[Recipe, TraceShape], Step] = build_step
    if step:
        function = own_step.find(step)
        build = own_step.builder(step, function)
        if fit and not own_step.takes(function, "micro_batch"):
            raise click.BadParameter(f"{step} takes no micro_batch, so --fit has nothing to change")

    def at(size: int) -> "Trace":
        return trace_step(recipe, shape.model_copy(update={"micro_batch": size}), build=build)

    def search() -> int:
        return largest_micro_batch(at, card, _say_progress, first=traced)

    traced = trace_step(recipe, shape, with_lines=True, build=build)
    if form == "json":
        click.echo(json.dumps(_as_json(traced, card, search() if fit else None), indent=2))
        return
    _show(traced, card)
    if not step:
        tell(_agreement(connection, recipe_name))
    if not step and not config and not layers:
        _show_estimate(connection, recipe, shape, gpu)
    if fit:
        most = search()
        tell(f"largest micro-batch on {gpu}: {most}" if most else f"not even one sequence fits {gpu}")


def _check_options(step: str | None, fit: bool, layers: int | None) -> None:
    """Refuse options that would have no effect, or that would give the answer for another model."""
    context = click.get_current_context()
    for name in ("recipe_name", "model", "config", "layers") if step else ():
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            option = "--" + name.removesuffix("_name")
            raise click.UsageError(
                f"{option} has no effect with --step: your own code makes the model and the loop"
            )
    if fit and layers:
        raise click.UsageError(
            f"--fit with --layers {layers}: a cut model does not say what the whole one needs; "
            "leave out one of the two"
        )


def _as_json(traced: "Trace", card: "Card", largest_micro_batch: int | None) -> dict[str, Any]:
    """Return the trace and the card's verdict, which is null for a model cut to some of its layers."""
    verdict = {
        "gpu": card.gpu, "needed_gib": card.needed_gib(traced), "usable_gib": card.usable_gib,
        "fits": card.holds(traced),
    }  # fmt: skip
    return {
        "trace": traced.model_dump(mode="json"),
        "card": None if traced.shape.layers else verdict,
        "largest_micro_batch": largest_micro_batch,
    }


@click.command()
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Number of processes.")
def trace_runs(jobs: int) -> None:
    """Trace the measured runs whose software is known, and write catalog/traced_runs.csv."""
    from gpufare_tracer.traced_runs import trace_runs as trace_all

    tell(f"written: {trace_all(jobs, _say_progress)}")


@click.command("trace-grid")
@click.option("--only", multiple=True, metavar="RECIPE", help="Only this recipe (repeatable).")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Number of processes.")
@click.option("--check", is_flag=True, help="Only check that a sample reproduces the table byte for byte.")
@click.option(
    "--by-version", is_flag=True, help="Add the installed versions to catalog/recipe_memory_by_version.csv."
)
@click.option("--output", type=OUTPUT_FOLDER, help="Write the tables to this folder, not to the catalogue.")
def trace_grid(only: tuple[str, ...], jobs: int, check: bool, by_version: bool, output: Path | None) -> None:
    """Trace the recipes in catalog/recipes.yaml, and write catalog/traces.csv.

    After an interruption, run the command again to resume.
    """
    from gpufare_tracer import grid, versions

    if check:
        changed = grid.check(folder=output, jobs=jobs)
        if changed:
            shown = "\n".join(changed[: grid.CHANGES_SHOWN])
            raise click.ClickException(
                f"{len(changed)} values differ from {grid.TRACES_FILE}; if the tracer was meant to change, "
                f"add to REVISIONS in tracer/gpufare_tracer/kept.py and run gpufare trace-grid:\n{shown}"
            )
        click.echo("the sample reproduces the table to the byte")
        return
    recipes = grid.chosen_recipes(only)
    if by_version:
        count = versions.add_versions(recipes, folder=output, jobs=jobs, show=_say_progress)
        click.echo(f"{count} rows in {versions.FILE}")
        return
    click.echo(f"{len(grid.fill(recipes, folder=output, jobs=jobs, show=_say_progress))} traces")


@click.command("learn-traces")
@click.option("--output", type=OUTPUT_FOLDER, help="Write to this folder instead of the catalogue.")
def learn_traces(output: Path | None) -> None:
    """Learn memory coefficients from catalog/traces.csv, and map measured runs to recipes.

    The command writes recipe_memory.csv and recipe_settings.csv, and needs neither torch nor a GPU.
    """
    from gpufare_tracer.coefficients import learn_catalogue

    tell(learn_catalogue(output))


def recipe_as_set(name: str, switches: tuple[str, ...], step: str | None) -> "Recipe":
    """Return a preset with some switches changed; for a user's own step, only its loop's switches apply."""
    import yaml
    from pydantic import ValidationError

    from gpufare_tracer.recipes import Recipe, read_recipes

    changed: dict[str, Any] = {}
    for switch in switches:
        key, found, value = switch.partition("=")
        if not found or key not in Recipe.model_fields or key in ("name", "framework"):
            names = ", ".join(sorted(set(Recipe.model_fields) - {"name", "title", "source", "framework"}))
            raise click.BadParameter(f"--set {switch!r} is not SWITCH=VALUE of one of: {names}")
        if step and key not in OWN_SWITCHES:
            raise click.BadParameter(
                f"--set {switch!r} has no effect with --step, only {' and '.join(OWN_SWITCHES)} have"
            )
        changed[key] = value.split(",") if key == "lora_targets" else yaml.safe_load(value)
    if step:
        base: dict[str, Any] = {
            "name": step,
            "framework": "own",
            "method": "full",
            "gradient_clipping": False,
        }
    else:
        presets = read_recipes()
        if name not in presets:
            raise click.BadParameter(f"--recipe {name!r} is none of: {', '.join(sorted(presets))}")
        base = presets[name].model_dump()
    try:
        return Recipe.model_validate(base | changed)
    except ValidationError as error:
        first = error.errors()[0]
        where = f"--set {'.'.join(map(str, first['loc']))}" if first["loc"] else f"recipe {name!r} as set"
        raise click.BadParameter(f"{where}: {first['msg'].removeprefix('Value error, ')}") from error


def read_config(file: Path | None) -> dict[str, Any] | None:
    """Return the content of a config.json; None if no file was given."""
    if file is None:
        return None
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"--config {file}: not JSON ({error})") from error
    if not isinstance(config, dict):
        raise click.BadParameter(f"--config {file}: a config.json is one object")
    return config


def _show(traced: "Trace", card: "Card") -> None:
    """Print the memory of each phase by purpose, the largest tensors at the peak, and the fit verdict."""
    from gpufare_tracer.timeline import Category
    from pipeline.cli.printing import show
    from pipeline.warehouse.query import Result

    peak = traced.peak
    recipe, shape = traced.recipe, traced.shape
    emulation = f"; emulated: {recipe.emulates}" if recipe.emulates else ""
    versions = ", ".join(f"{name} {version}" for name, version in sorted(traced.versions.items()))
    tell(f"{recipe.name} on {shape.model}, {shape.micro_batch} x {shape.seq_len} tokens{emulation}")
    tell(f"{versions}; {traced.operations:,} operations in two optimizer steps")
    if traced.note:
        tell(f"note: {traced.note}")
    if recipe.sharding != "none":
        tell(f"memory of one of {recipe.gpu_count} GPUs, sharding {recipe.sharding}")
    tell(f"resident after a step: {_gib(traced.resident_bytes)} GiB\n")
    heads = ("GiB at the peak of", *(phase.phase.value for phase in traced.phases))
    rows: list[tuple[Any, ...]] = [
        (category.value.replace("_", " "), *(_gib(p.by_category.get(category, 0)) for p in traced.phases))
        for category in Category
        if any(category in p.by_category for p in traced.phases)
    ]
    rows.append(("allocator rounding", *(_gib(p.block_bytes - p.allocated_bytes) for p in traced.phases)))
    rows.append(("allocated", *(_gib(p.block_bytes) for p in traced.phases)))
    reserved = "reserved (approximate)" if recipe.sharding == "fsdp" else "reserved"
    rows.append((reserved, *(_gib(p.reserved_bytes) for p in traced.phases)))
    show(Result(heads, ("VARCHAR", *(["DOUBLE"] * len(traced.phases))), rows), "table")
    tell(f"\npeak: {peak.phase.value}, at {peak.operation}; the largest tensors then:")
    tensors = [
        (_gib(t.size_bytes), t.count, t.tensor, t.category.value.replace("_", " "), t.operation, t.line)
        for t in peak.largest
    ]
    columns = ("GiB", "count", "tensor", "category", "made by", "source line")
    show(Result(columns, ("DOUBLE", "BIGINT", *(["VARCHAR"] * 4)), tensors), "table")
    tell(f"\n{_verdict(traced, card)}")


def _verdict(traced: "Trace", card: "Card") -> str:
    if traced.shape.layers:
        return f"no verdict on {card.gpu}: the model is cut to {traced.shape.layers} layers (--layers)"
    fits = "fits" if card.holds(traced) else "does not fit"
    cards = f"{traced.recipe.gpu_count} x {card.gpu}" if traced.recipe.gpu_count > 1 else card.gpu
    each = " per GPU" if traced.recipe.gpu_count > 1 else ""
    return (
        f"{fits} {cards}: {card.needed_gib(traced):.2f} GiB needed{each} with context and fragmentation, "
        f"{card.usable_gib:.2f} usable"
    )


def _agreement(connection: "duckdb.DuckDBPyConnection", recipe: str) -> str:
    """Return a sentence on how many measured runs agree with the traces of a preset."""
    query = "SELECT agreeing_runs FROM main.recipe_settings WHERE recipe = $recipe"
    ((runs,),) = connection.execute(query, {"recipe": recipe}).fetchall()
    return f"measured runs that agree with traces of {recipe}: {runs or 'none, so no GPU has confirmed them'}"


def _show_estimate(
    connection: "duckdb.DuckDBPyConnection", recipe: "Recipe", shape: "TraceShape", gpu: str
) -> None:
    """Print the SQL model's estimate of the same run."""
    from gpufare_tracer.settings import run_settings

    settings = run_settings(recipe, shape, gpu)
    columns = ", ".join(f"${name} AS {name}" for name in settings)
    rows = connection.execute(
        f"WITH _mine AS (SELECT {columns}) "  # noqa: S608 (names of our own columns)
        "SELECT memory_gib, memory_gib_low, memory_gib_high, evidence, peak_phase FROM memory_of('_mine')",
        settings,
    ).fetchall()
    for allocated, low, high, evidence, phase in rows:
        tell(
            f"the SQL model estimates {allocated:.3f} GiB allocated ({low:.3f} to {high:.3f}, {evidence}), "
            f"peak in: {phase}"
        )


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / GIB:,.3f}"


def _say_progress(line: str) -> None:
    click.echo(line, err=True)
