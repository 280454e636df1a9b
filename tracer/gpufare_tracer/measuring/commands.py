"""The command that measures a step: a command-line plugin in the entry-point group ``gpufare.commands``."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.parameters import EXISTING_FILE
from pipeline.cli.terminal import tell
from pipeline.home import paths
from pipeline.home.paths import Home

if TYPE_CHECKING:
    from gpufare_tracer.measuring.report import Report

METHODS = ("full", "lora", "qlora")
_ON_CPU = {"full": ("hf-full",), "lora": ("hf-lora",), "qlora": ("hf-qlora", "optimizer=adamw_fused")}
"""A preset for each method, with switches changed where needed to run without a GPU: no Liger, no paging."""
GIB = 1 << 30


@click.command()
@click.option("--model", help="The model's catalogue id, such as llama-3.1-8b.")
@click.option("--config", type=EXISTING_FILE, help="A config.json to use instead of --model.")
@click.option(
    "--method",
    type=click.Choice(METHODS),
    help="Measure gpufare's default plan for this method; --cpu leaves out Liger's kernels.",
)
@click.option("--recipe", "recipe_name", metavar="NAME",
              help="A preset from catalog/recipes.yaml, instead of --method.")  # fmt: skip
@click.option("--set", "switches", multiple=True, metavar="SWITCH=VALUE",
              help="Change one of the recipe's switches, e.g. lora_rank=64. Repeatable.")  # fmt: skip
@click.option("--micro-batch", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--seq-len", type=click.IntRange(min=1), default=2048, show_default=True)
@click.option(
    "--steps", type=click.IntRange(min=1), default=12, show_default=True, help="Number of timed steps."
)
@click.option(
    "--warm-up", type=click.IntRange(min=0), default=5, show_default=True, help="Number of warm-up steps."
)
@click.option(
    "--layers", type=click.IntRange(min=1), help="Cut the model down to this many layers; no row is added."
)
@click.option("--gpu", metavar="ID", help="The card's catalogue id, if the device's name does not reveal it.")
@click.option("--cpu", is_flag=True, help="Try the command on the CPU; its result says nothing about a GPU.")
@click.option("--home", type=click.Path(file_okay=False, path_type=Path),
              help="Save the row in this folder instead of the data home.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def measure(
    model: str | None, config: Path | None, method: str | None, recipe_name: str | None,
    switches: tuple[str, ...], micro_batch: int, seq_len: int, steps: int, warm_up: int, layers: int | None,
    gpu: str | None, cpu: bool, home: Path | None, form: str,
) -> None:  # fmt: skip
    """Measure a training step on this machine's GPU, and compare the measurement with the estimate.

    A model of the right shape with random weights is trained on random tokens; nothing is downloaded. A row
    with the results is added to measured_runs.csv in the data home.
    """
    from gpufare_tracer.commands import read_config, recipe_as_set
    from gpufare_tracer.measuring.measure import measure as measure_steps
    from gpufare_tracer.measuring.result import Request
    from gpufare_tracer.result import TraceShape
    from pipeline.model.given_models import name_of_file

    if (model is None) == (config is None):
        raise click.UsageError("give either --model or --config")
    if (method is None) == (recipe_name is None):
        raise click.UsageError("give either --method or --recipe")
    shape = TraceShape(
        model=model or (name_of_file(config) if config else ""), config=read_config(config), layers=layers,
        micro_batch=micro_batch, seq_len=seq_len,
    )  # fmt: skip
    planned = _ON_CPU[str(method)] if cpu and method else (f"hf-{method}-liger",)
    name, *without_gpu = (recipe_name,) if recipe_name else planned
    recipe = recipe_as_set(name, (*without_gpu, *switches), None)
    request = Request(recipe=recipe, shape=shape, steps=steps, warm_up=warm_up, on_cpu=cpu)
    kept = Home(home.absolute()) if home else paths.home()
    report = measure_steps(request, kept, datetime.now(UTC), gpu=gpu)
    if form == "json":
        click.echo(json.dumps(_as_json(report), indent=2))
    else:
        _show(report)


def _as_json(report: "Report") -> dict[str, Any]:
    from pipeline.model.own_runs import catalogue_columns

    quartiles = report.quartiles
    row = {name: report.row[name] for name in catalogue_columns()}
    return {
        "gpu": report.gpu,
        "measured": report.measured.model_dump(mode="json"),
        "step_seconds_median": report.step_seconds,
        "step_seconds_quartiles": list(quartiles) if quartiles else None,
        "tokens_per_second": report.tokens_per_second,
        "process_gib": report.process_gib,
        "estimates": [
            {
                "quantity": each.quantity, "measured": each.measured, "estimated": each.estimated,
                "low": each.low, "high": each.high, "inside": each.is_inside, "corrected": each.corrected,
            }
            for each in report.comparisons
        ],
        "estimated_to_fit": report.is_to_fit,
        "no_estimate": report.no_estimate or None,
        "corrections": report.corrections or None,
        "row": None if report.request.shape.layers else row,
        "not_ready": report.not_ready,
        "notes": report.notes,
        "own_runs": str(report.own_runs) if report.own_runs else None,
        "not_kept": report.not_kept or None,
    }  # fmt: skip


def _show(report: "Report") -> None:
    """Print the measurement beside the estimate, and the row."""
    measured, shape = report.measured, report.request.shape
    known = "" if report.gpu == "unknown" else f" ({report.gpu})"
    versions = ", ".join(f"{name} {version}" for name, version in sorted(measured.versions.items()))
    cut = f" cut to {shape.layers} layers" if shape.layers else ""
    tell(
        f"{report.request.recipe.name} on {shape.model}{cut}, "
        f"{shape.micro_batch} x {shape.seq_len} tokens, on {_printable(measured.device)}{known}"
    )
    if versions:
        tell(versions)
    if measured.out_of_memory:
        tell(f"out of memory {_printable(measured.out_of_memory)}")
    _show_memory(report)
    if report.step_seconds is not None:
        spread = (
            "half of them within {:.4f} to {:.4f} s, ".format(*report.quartiles) if report.quartiles else ""
        )
        tell(
            f"step: {report.step_seconds:.4f} s, the median of {len(measured.step_seconds)}; {spread}"
            f"{report.tokens_per_second:,.1f} tokens per second"
        )
    _show_estimates(report)
    for note in report.notes:
        tell(f"note: {_printable(note)}")
    _show_row(report)


def _show_memory(report: "Report") -> None:
    from pipeline.cli.printing import show
    from pipeline.warehouse.query import Result

    measured = report.measured
    rows: list[tuple[Any, ...]] = [
        (f"{peak.phase} phase", _gib(peak.allocated_bytes), _gib(peak.reserved_bytes), "")
        for peak in measured.phases
    ]
    if measured.allocated_bytes is not None and measured.reserved_bytes is not None:
        process = f"{report.process_gib:,.3f}" if report.process_gib else ""
        rows.append(("all steps", _gib(measured.allocated_bytes), _gib(measured.reserved_bytes), process))
    if rows:
        columns = ("peak, GiB", "allocated", "reserved", "process")
        show(Result(columns, ("VARCHAR", *["DOUBLE"] * 3), rows), "table")
    elif measured.host_bytes is not None:
        tell(f"memory of the process on the host: {_gib(measured.host_bytes)} GiB")


def _show_estimates(report: "Report") -> None:
    from pipeline.cli.printing import show
    from pipeline.warehouse.query import Result

    if report.no_estimate:
        tell(f"no estimate beside it: {_printable(report.no_estimate)}")
        return
    said = {None: "", True: "yes", False: "no"}
    rows: list[tuple[Any, ...]] = [
        (
            each.quantity,
            each.measured,
            each.estimated,
            each.low,
            each.high,
            said[each.is_inside],
            each.corrected,
        )
        for each in report.comparisons
    ]
    columns = ("quantity", "measured", "estimated", "low", "high", "inside", "corrected")
    show(Result(columns, ("VARCHAR", *["DOUBLE"] * 4, "VARCHAR", "DOUBLE"), rows), "table")
    tell(f"estimated {'to fit' if report.is_to_fit else 'not to fit'} {report.gpu}")
    if report.corrections:
        tell(report.corrections)


def _show_row(report: "Report") -> None:
    from pipeline.home.csv_rows import row_text
    from pipeline.model.own_runs import catalogue_columns

    columns = catalogue_columns()
    if report.request.shape.layers:
        tell(f"no row: {report.not_kept}")
        return
    if report.not_ready:
        tell(f"not ready for the catalogue: {_printable('; '.join(report.not_ready))}")
    click.echo(f"\n{row_text(columns)}{row_text(report.row[name] for name in columns)}", nl=False)
    kept = f"added to {report.own_runs}" if report.own_runs else f"not kept: {_printable(report.not_kept)}"
    tell(f"\n{kept}")


def _printable(text: str) -> str:
    from pipeline.parsing.printable import printable

    return printable(text)


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / GIB:,.3f}"
