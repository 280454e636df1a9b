"""A user's own GPUs and workloads: added, listed, removed. Own models are in models.py."""

from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.parameters import Tokens
from pipeline.cli.terminal import say, tell
from pipeline.contracts.training import METHODS
from pipeline.home import paths

if TYPE_CHECKING:
    from pipeline.catalog.own_rows import Row

AFTER = "the next gpufare refresh plans and publishes it"


@click.group("gpu")
def gpu_group() -> None:
    """Your own GPUs: kept in the home, used beside the catalogue's."""


@gpu_group.command("add")
@click.argument("name")
@click.argument("specs", nargs=-1, metavar="[COLUMN=VALUE]...")
@click.option("--like", metavar="GPU", help="A GPU of the catalogue that has the specifications not given.")
def add_gpu(name: str, specs: tuple[str, ...], like: str | None) -> None:
    """Add the GPU NAME with specifications in the columns of catalog/gpus.csv, such as memory_gb=96.

    labels=... has the names by which offers mean it, with | between them: such an offer is of this GPU where
    the catalogue knows no card.
    """
    from pipeline.catalog.own_catalogue import gpu_like, names_of
    from pipeline.catalog.own_gpus import OWN_GPUS, OwnGpu

    cells = {}
    if like is not None:
        found = gpu_like(like)
        if found is None:
            raise click.BadParameter(f"--like: the catalogue has no GPU {like!r}; the table gpus lists them")
        kept = {*OWN_GPUS.columns} - {"gpu_id", "source", "notes"}
        cells = {column: value for column, value in found.items() if value and column in kept}
        cells["source"] = f"as {like}, but for what was given"
    for spec in specs:
        column, equals, value = spec.partition("=")
        if not equals or column not in OWN_GPUS.columns or column == "gpu_id":
            raise click.BadParameter(
                f"{spec!r} is not like memory_gb=96; columns: {', '.join(OWN_GPUS.columns[1:])}"
            )
        cells[column] = value
    gpu = _checked(OwnGpu, {"gpu_id": name} | {column: value for column, value in cells.items() if value})
    OWN_GPUS.add(paths.home().gpus, gpu, names_of("gpus"))
    tell(f"added {name}: {gpu.memory_gb:g} GB, {gpu.bandwidth_gb_s:g} GB/s ({paths.home().gpus})")
    tell(AFTER)


@gpu_group.command("list")
def list_gpus() -> None:
    """List your own GPUs, and what cannot be read of them."""
    from pipeline.catalog.own_catalogue import names_of
    from pipeline.catalog.own_gpus import OWN_GPUS

    found = OWN_GPUS.read(paths.home().gpus, names_of("gpus"))
    for gpu in found.rows:
        means = f"; labels: {', '.join(gpu.names())}" if gpu.names() else ""
        tell(f"{gpu.gpu_id}: {gpu.memory_gb:g} GB, {gpu.bandwidth_gb_s:g} GB/s{means}")
    _tell_rest(found.rows, found.problems, "no GPUs of your own: gpufare gpu add NAME adds one")


@gpu_group.command("remove")
@click.argument("name")
def remove_gpu(name: str) -> None:
    """Remove the GPU NAME; offers of its labels are open again."""
    from pipeline.catalog.own_gpus import OWN_GPUS

    OWN_GPUS.remove(paths.home().gpus, name)
    tell(f"removed {name}")


@click.group("workload")
def workload_group() -> None:
    """Your own workloads: kept in the home, ranked and recorded with every publication."""


@workload_group.command("add")
@click.argument("name")
@click.option("--model", required=True, help="Of the catalogue, or one of your own.")
@click.option("--method", required=True, type=click.Choice(METHODS))
@click.option("--tokens", type=Tokens(), help="Tokens of one epoch, e.g. 100M.")
@click.option("--examples", type=Tokens(), help="Instead of --tokens: training examples ...")
@click.option("--tokens-per-example", type=Tokens(), help="... of this many tokens.")
@click.option("--epochs", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True)
@click.option("--seq-len", type=click.IntRange(min=1), help="Tokens of one packed sequence; by default 2048.")
@click.option("--lora-rank", type=click.IntRange(min=1), help="By default 16.")
@click.option("--gpus", type=click.IntRange(min=1), help="At most this many GPUs; by default 8.")
@click.option(
    "--max-hours", type=click.FloatRange(min=0, min_open=True), help="Deadline; by default by tokens."
)
@click.option("--title", help="The job in words.")
@click.option("--note", help="Whatever else is to be published with it.")
def add_workload(name: str, gpus: int | None, epochs: float, **given: Any) -> None:
    """Add the workload NAME."""
    from pipeline.catalog.own_catalogue import context_of_models, names_of, why_not_planned
    from pipeline.catalog.own_models import OWN_MODELS
    from pipeline.catalog.own_workloads import OWN_WORKLOADS, OwnWorkload

    home = paths.home()
    cells = {"workload": name, "max_gpus": gpus} | given
    if given["tokens"] is not None:
        cells["tokens"] = given["tokens"] * epochs
    else:
        cells["epochs"] = epochs
    job = _checked(OwnWorkload, {column: value for column, value in cells.items() if value is not None})
    own = OWN_MODELS.read(home.models, names_of("models")).rows
    context = context_of_models() | {model.model: model.max_context for model in own}
    if problem := why_not_planned(job, context):
        raise click.ClickException(problem)
    OWN_WORKLOADS.add(home.workloads, job, names_of("workloads"))
    tell(f"added {name}: {job.model}, {job.method}, {job.tokens:,.0f} tokens ({home.workloads})")
    tell(AFTER)


@workload_group.command("list")
def list_workloads() -> None:
    """List your own workloads, and what cannot be used of them."""
    from pipeline.catalog.own_catalogue import read_own_catalogue

    home = paths.home()
    found = read_own_catalogue(home)
    for job in found.workloads:
        tell(f"{job.workload}: {job.model}, {job.method}, {job.tokens:,.0f} tokens")
    problems = [problem for file, problem in found.problems if file == home.workloads]
    _tell_rest(found.workloads, problems, "no workloads of your own: gpufare workload add NAME adds one")


@workload_group.command("remove")
@click.argument("name")
def remove_workload(name: str) -> None:
    """Remove the workload NAME; what was published of it stays in the record."""
    from pipeline.catalog.own_workloads import OWN_WORKLOADS

    OWN_WORKLOADS.remove(paths.home().workloads, name)
    tell(f"removed {name}")


def _checked(kind: "type[Row]", cells: dict[str, Any]) -> "Row":
    """The row, or what is wrong with it in one line."""
    from pydantic import ValidationError

    from pipeline.catalog.own_rows import in_one_line

    try:
        return kind.model_validate(cells)
    except ValidationError as error:
        problem = in_one_line(error)
    raise click.ClickException(problem)


def _tell_rest(rows: list[Any], problems: list[str], nothing: str) -> None:
    for problem in problems:
        say(problem)
    if not rows and not problems:
        tell(nothing)
