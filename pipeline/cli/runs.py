"""Commands for a user's own measured runs, which correct gpufare's answers on the user's home."""

from collections.abc import Collection, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.completion import names_of
from pipeline.cli.parameters import FORMAT
from pipeline.cli.terminal import say, tell
from pipeline.contracts.training import CHECKPOINTINGS, METHODS
from pipeline.home import paths

if TYPE_CHECKING:
    from pipeline.model.corrections import Compared
    from pipeline.model.estimate import Estimator

MEMORY_METRICS = ("smi", "reserved", "alloc")

LISTED = (
    "run_id", "model", "gpu", "gpus", "method", "seq_len", "micro_batch", "memory_gib_measured",
    "memory_gib_estimated", "memory_ratio", "tokens_per_second_per_gpu_measured",
    "tokens_per_second_per_gpu_estimated", "speed_ratio", "corrects",
)  # fmt: skip


@click.group("run")
def run_group() -> None:
    """Add your own measured runs, which correct the answers on this machine."""


@run_group.command("add")
@click.option("--model", required=True, shell_complete=names_of("model"), help="The model.")
@click.option("--gpu", required=True, shell_complete=names_of("gpu"), help="The card.")
@click.option("--gpus", type=click.IntRange(min=1), default=1, show_default=True, help="The number of cards.")
@click.option("--method", type=click.Choice(METHODS), required=True, help="The training method.")
@click.option(
    "--framework",
    help="The framework, such as Unsloth, whose defaults apply, or a stack, such as liger; by default, hf.",
)
@click.option("--seq-len", type=click.IntRange(min=1), required=True, help="Tokens per sequence.")
@click.option(
    "--micro-batch", type=click.IntRange(min=1), required=True, help="Sequences per GPU and micro-step."
)
@click.option(
    "--checkpointing",
    type=click.Choice(CHECKPOINTINGS),
    help="Activation checkpointing; by default, that of the framework, else full.",
)
@click.option(
    "--tokens-per-second", type=float, help="Speed of all cards together, in tokens trained per second."
)
@click.option("--tokens-per-second-per-gpu", type=float, help="The same, per card.")
@click.option("--peak-gib", type=float, help="Peak memory of one card, in GiB (2^30 bytes).")
@click.option(
    "--memory-metric",
    type=click.Choice(MEMORY_METRICS),
    default="smi",
    show_default=True,
    help="What --peak-gib is: the memory in use according to nvidia-smi, or torch's reserved or allocated.",
)
@click.option(
    "--out-of-memory", is_flag=True, help="The run ran out of GPU memory: it needed more than the card has."
)
@click.option(
    "--set",
    "more",
    metavar="COLUMN=VALUE",
    multiple=True,
    help="Another setting, by its column in catalog/measured_runs.csv, such as optimizer=paged8bit.",
)
@click.option("--note", default="", help="Anything to remember about the run.")
def add(
    tokens_per_second: float | None,
    tokens_per_second_per_gpu: float | None,
    peak_gib: float | None,
    memory_metric: str,
    out_of_memory: bool,
    more: Sequence[str],
    note: str,
    framework: str | None,
    **settings: Any,
) -> None:
    """Add a run that you measured, from its settings and its speed or peak memory.

    Omitted settings get the defaults of gpufare estimate, which are listed. The run is compared
    with its estimate, and corrects answers about similar jobs.
    """
    from pipeline.model.corrections import unknown_model
    from pipeline.model.estimate import Estimator
    from pipeline.model.own_runs import add_own_run, next_run_id

    if tokens_per_second is not None and tokens_per_second_per_gpu is not None:
        raise click.UsageError(
            "give --tokens-per-second (all cards) or --tokens-per-second-per-gpu, not both"
        )
    if tokens_per_second is not None:
        tokens_per_second_per_gpu = tokens_per_second / settings["gpus"]
    if out_of_memory == (tokens_per_second_per_gpu is not None or peak_gib is not None):
        raise click.UsageError("give --tokens-per-second or --peak-gib or both, or else --out-of-memory")
    home = paths.home()
    row = {
        "run_id": next_run_id(home),
        "source": "own",
        **_settings(framework, more, settings),
        "memory_metric": memory_metric,
        "measured_memory_gib": _text(peak_gib),
        "measured_tokens_per_second_per_gpu": _text(tokens_per_second_per_gpu),
        "out_of_memory": str(int(out_of_memory)),
        "measured_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "note": note,
    }
    with closing(Estimator(home=home)) as estimator:
        if problem := unknown_model(estimator, row["model"]):
            raise click.ClickException(f"not added: {problem}")
        defaults = _defaults(estimator, framework, row)
        row |= defaults
        each, lines = _compared_lines(estimator, row, settings["gpus"])
    if defaults:
        taken = ", ".join(f"{name} {value}" for name, value in defaults.items())
        lines.append(f"taken from {framework}: {taken}")
    if problem := add_own_run(home, row):
        say(problem)
    tell(f"added {row['run_id']} to {home.own_runs}")
    for line in lines:
        tell(line)
    if not out_of_memory or not (each.expected or each.far):
        tell(_FOLLOW)
    tell(f"to take it back: gpufare run remove {row['run_id']}")


_FOLLOW = (
    "cheapest, explain, fit, estimate, Python and assistants answer with it from now on; gpufare sql, "
    "exports and the report do so after the next gpufare refresh"
)


def _settings(framework: str | None, more: Sequence[str], settings: dict[str, Any]) -> dict[str, str]:
    """Return the columns of a run that the options give. Raises UsageError."""
    from pipeline.contracts.training import STACKS
    from pipeline.model.run_settings import SETTINGS

    row = {name: _text(value) for name, value in settings.items() if name != "gpus"}
    _check_framework(framework)
    row |= {"gpu_count": str(settings["gpus"]), "stack": framework if framework in STACKS else ""}
    for pair in more:
        name, equals, value = pair.partition("=")
        if not equals or name not in SETTINGS:
            raise click.UsageError(f"--set {pair}: give COLUMN=VALUE with one of {', '.join(SETTINGS[3:])}")
        if row.get(name) or (name == "stack" and framework):
            raise click.UsageError(f"--set {pair}: {name} is given by an option")
        row[name] = value
    return row


def _check_framework(framework: str | None) -> None:
    """Raise UsageError for a framework that is neither known nor a stack."""
    from pipeline.contracts.training import STACKS
    from pipeline.model.frameworks import find_framework, frameworks

    if framework is None or framework in STACKS or find_framework(framework):
        return
    known = dict.fromkeys([*STACKS, *(each.name for each in frameworks())])
    raise click.UsageError(f"--framework {framework} is not known: give one of {', '.join(known)}")


def _defaults(estimator: "Estimator", framework: str | None, row: dict[str, str]) -> dict[str, str]:
    """Return the settings that the framework gives to a row. Raises ClickException if it cannot be read."""
    from pipeline.contracts.training import STACKS
    from pipeline.model.model_names import RunError
    from pipeline.model.published_runs import framework_settings

    if framework is None or framework in STACKS:
        return {}
    try:
        found = framework_settings(framework, row, estimator.models, estimator.gpu_of)
    except RunError as error:
        raise click.ClickException(f"not added: {error}") from None
    return {name: _text(value) for name, value in found.items()}


def _compared_lines(estimator: "Estimator", row: dict[str, str], gpus: int) -> tuple["Compared", list[str]]:
    """Return the run beside its estimate, with a warning where they are far apart, and what was assumed.
    Raises ClickException if the run cannot be estimated."""
    from pipeline.home.csv_rows import CsvRow
    from pipeline.model.corrections import compare
    from pipeline.model.run_settings import SETTINGS

    (answer,) = estimator.estimate([row], list(SETTINGS))
    if answer["error"]:
        raise click.ClickException(f"not added: {answer['error']}")
    (each,) = compare(estimator, [CsvRow(0, row, "")])
    if each.problem:
        raise click.ClickException(f"not added: {each.problem}")
    if each.died:
        lines = [_died_line(each)]
    else:
        lines = [line for quantity in each.measured for line in _lines(each, quantity, answer, gpus)]
    return each, [*lines, f"assumed: {answer['assumptions']}"] if answer["assumptions"] else lines


def _died_line(each: "Compared") -> str:
    from pipeline.questions.numbers import number_text

    usable, needed = (number_text(of["memory"]) for of in (each.measured, each.estimated))
    line = f"it ran out of the {usable} GiB of its card"
    if each.expected:
        return f"{line}, and needs {needed} GiB by the estimate, as expected"
    what = ": that is far off, and corrects nothing" if "memory" in each.far else ", which is raised"
    return (
        f"{line}, but the estimate is {needed} GiB{what}. Check the settings, and that nothing else used the "
        "card."
    )


def _lines(each: "Compared", quantity: str, answer: dict[str, str], gpus: int) -> list[str]:
    from pipeline.model.corrections import ESTIMATED
    from pipeline.questions.numbers import number_text

    measured, estimated, column = each.measured[quantity], each.estimated[quantity], ESTIMATED[quantity]
    low, high = (number_text(float(answer[f"{column}_{end}"])) for end in ("low", "high"))
    unit = "GiB per GPU" if quantity == "memory" else "tokens/s per GPU"
    line = (
        f"{number_text(measured)} {unit}: {each.ratio(quantity):.3g} times the estimate of "
        f"{number_text(estimated)} ({low} to {high})"
    )
    if quantity in each.miscounted:
        meant = (
            f"the total of all {gpus} cards, given as that of one"
            if each.ratio(quantity) > 1
            else f"the value of one card, given as the total of all {gpus}"
        )
        why = f"the ratio is about that of {gpus} cards to one, so it may be {meant}; it corrects nothing."
    elif quantity in each.far:
        why = "that is far off, and corrects nothing."
    elif not float(answer[f"{column}_low"]) <= measured <= float(answer[f"{column}_high"]):
        why = "that is outside the estimate's band."
    else:
        return [line]
    return [line, f"CAREFUL: {why} Check {_doubts(quantity, gpus)}"]


def _doubts(quantity: str, gpus: int) -> str:
    """Return what to check in a measurement that is far from its estimate."""
    if quantity == "memory":
        return "that --peak-gib is the peak of one card in GiB, what --memory-metric it is, and the settings"
    of_all = f", that --tokens-per-second is that of all {gpus} cards together," if gpus > 1 else ""
    return f"that it counts tokens (not samples or steps) per second{of_all} and the settings"


@run_group.command("list")
@FORMAT
def list_runs(form: str) -> None:
    """List your own runs, measured and estimated, and those that correct nothing, with the reason.

    A ratio is measured / estimated; estimates are the model's own, without corrections. If a run ran
    out of memory, its measured memory is the usable memory of the card, a lower bound of what it needs.
    """
    from pipeline.cli.printing import show
    from pipeline.model.corrections import compare, own_corrections
    from pipeline.model.estimate import Estimator
    from pipeline.model.own_runs import read_own_runs
    from pipeline.warehouse.query import Result

    home = paths.home()
    own = read_own_runs(home)
    for problem in own.problems:
        say(problem)
    with closing(Estimator(home=home)) as estimator:
        compared = compare(estimator, own.runs)
    used = {run_id for row in own_corrections(home).rows for run_id in row["run_ids"]}
    rows = [_listed(each, used) for each in compared]
    if not rows and form == "table":
        raise click.ClickException(f"{home.own_runs} has no runs: gpufare run add --help says how to add one")
    kinds = tuple("DOUBLE" if name.endswith(_NUMBERS) else "VARCHAR" for name in LISTED)
    show(Result(LISTED, kinds, rows), form)


_NUMBERS = ("_measured", "_estimated", "_ratio")


def _listed(each: "Compared", used: Collection[str]) -> tuple[Any, ...]:
    """Return a run as a row of LISTED; ``used``: the ids of the runs that correct something."""
    values = each.run.values
    cells: dict[str, Any] = {name: values.get(name, "") for name in LISTED}
    cells |= {
        "gpus": values.get("gpu_count") or "1",
        "corrects": each.reason or _corrects(each, used),
    }
    columns = {"memory": ("memory_gib", "memory"), "speed": ("tokens_per_second_per_gpu", "speed")}
    for quantity, (column, short) in columns.items():
        measured, estimated = each.measured.get(quantity), each.estimated.get(quantity)
        cells[f"{column}_measured"], cells[f"{column}_estimated"] = measured, estimated
        cells[f"{short}_ratio"] = round(measured / estimated, 3) if measured and estimated else None
    return tuple(cells[name] for name in LISTED)


def _corrects(each: "Compared", used: Collection[str]) -> str:
    """Say what a run corrects that nothing speaks against."""
    if not each.died:
        return "yes"
    is_idle = each.expected and each.run.values["run_id"] not in used
    return "nothing: as expected" if is_idle else "where too low"


@run_group.command("remove")
@click.argument("run_id", metavar="ID")
def remove(run_id: str) -> None:
    """Remove the run with this ID (gpufare run list) from your own runs."""
    from pipeline.model.own_runs import read_own_runs, remove_own_run

    home = paths.home()
    if not remove_own_run(home, run_id):
        known = [run.values["run_id"] for run in read_own_runs(home).runs]
        there = f"there are {', '.join(known)}" if known else "there are none"
        raise click.ClickException(f"no run {run_id} in {home.own_runs}: {there}")
    tell(f"removed {run_id} from {home.own_runs}; answers no longer use it")


def _text(value: object) -> str:
    return "" if value is None else str(value)
