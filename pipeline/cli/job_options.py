"""The options that describe a training job, and what its answers must meet: one list for all commands."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pipeline.cli.parameters import EXISTING_FILE, Tokens
from pipeline.contracts.listing import PRICE_KINDS, TIER_CLASSES
from pipeline.contracts.training import ADAPTER_METHODS, CHECKPOINTINGS, EVIDENCES, METHODS, STACKS

if TYPE_CHECKING:
    from pipeline.catalog.own import OwnModel
    from pipeline.questions.job import Job

Command = TypeVar("Command", bound=Callable[..., Any])

OBJECTIVES = ("cost", "time", "pareto")
_COUNT = click.IntRange(min=1)
_ABOVE_0 = click.FloatRange(min=0, min_open=True)


def _names(option: str, text: str) -> Any:
    """An option that names something: repeatable, and with commas."""
    return click.option(option, multiple=True, metavar="NAME", help=text)


RECIPE = (
    click.option("--model", help="For example llama-3.1-8b."),
    click.option("--config", type=EXISTING_FILE, help="A config.json instead of --model."),
    click.option("--method", type=click.Choice(METHODS), help="By default lora."),
    click.option("--seq-len", type=_COUNT, help="Tokens of one packed sequence; by default 2048."),
    click.option("--lora-rank", type=_COUNT, help="By default 16."),
    _names("--lora-targets", "Layers with adapters, such as q_proj,v_proj; by default all linear ones."),
    click.option("--micro-batch", type=_COUNT, help="Sequences per GPU and step."),
    click.option("--global-batch-tokens", type=Tokens(), help="Tokens of one optimizer step on all GPUs."),
    click.option("--checkpointing", type=click.Choice(CHECKPOINTINGS), help="By default what is fastest."),
    click.option(
        "--offload",
        type=click.Choice(["cpu"]),
        help="Plan with weights and optimizer in host memory, on two GPUs or more; not planned otherwise.",
    ),
    click.option("--stack", type=click.Choice(STACKS), help="Training software; by default liger."),
    click.option("--optimizer", help="Such as adamw_fused, the default, or paged8bit."),
    click.option("--training-precision", help="Such as bf16, the default, amp or fp16."),
    click.option("--quantization", help="With qlora: nf4dq, the default, nf4, int8 or gptq."),
)
JOB = (
    *RECIPE,
    click.option("--tokens", type=Tokens(), help="Tokens of one epoch, e.g. 100M."),
    click.option("--examples", type=Tokens(), help="Instead of --tokens: training examples ..."),
    click.option("--tokens-per-example", type=Tokens(), help="... of this many tokens."),
    click.option("--epochs", type=_ABOVE_0, help="Times that all of them are seen; by default 1."),
    _names(
        "--gpu",
        "Only these GPUs: an id, which is that card alone (rtx-4090: not its 48 GB or laptop variants), or a "
        "family: an id up to a dash (h100), a model, an architecture (hopper) or a vendor (nvidia).",
    ),
    _names("--exclude-gpu", "None of these GPUs, named as for --gpu."),
    click.option("--gpus", type=_COUNT, help="At most this many GPUs; by default 8."),
    click.option("--min-gpus", type=_COUNT, help="At least this many GPUs; exactly so many with --gpus."),
    click.option("--max-nodes", type=_COUNT, help="At most this many machines."),
    _names("--provider", "Only these providers."),
    _names("--exclude-provider", "None of these providers."),
    _names("--source", "Only prices of these sources (gpufare sources lists them)."),
    _names("--exclude-source", "No price of these sources."),
    _names("--tier", f"Only machines of these classes: {', '.join(TIER_CLASSES)}."),
    _names("--country", "Only machines in these countries: two letters, a name, or eu for its members."),
    _names("--continent", "Only machines on these continents, such as europe or north_america."),
    _names("--kind", f"{', '.join(PRICE_KINDS)}, or any (of all but reserved); by default on_demand."),
    click.option(
        "--max-term-days", type=click.IntRange(min=0), help="Longest term of a reservation, in days."
    ),
    click.option(
        "--max-usd", type=_ABOVE_0, help="Budget: the finished job costs at most so many US dollars."
    ),
    click.option("--max-age-days", type=click.IntRange(min=0), help="No price older than this many days."),
    click.option(
        "--quote",
        multiple=True,
        metavar="OFFER",
        help='Rank an offer that you have, too: "8 x h100-sxm-80gb at 1.50", USD per GPU and hour.',
    ),
    click.option(
        "--own",
        multiple=True,
        metavar="GPUS",
        help='Rank GPUs of your own, too: "2 x rtx-4090 at 0.12", electricity in USD per GPU and hour, or 0.',
    ),
    click.option(
        "--max-hours",
        type=_ABOVE_0,
        help="Finished within this many hours; by default a week where any answer is, inf for no limit.",
    ),
    click.option(
        "--min-fit-probability",
        type=click.FloatRange(min=0, max=1),
        help="Rank what does not run out of memory with this probability; by default 0.9.",
    ),
    click.option(
        "--evidence",
        type=click.Choice(EVIDENCES),
        help="Only speeds with at least this evidence.",
    ),
    click.option(
        "--assumed-sizes",
        is_flag=True,
        default=None,
        help="Also rank machines of which nothing says that they are sold: prices per GPU, times any number.",
    ),
    click.option(
        "--objective",
        type=click.Choice(OBJECTIVES),
        help="Cheapest first (cost, the default), fastest first (time), or only what nothing beats in both "
        "(pareto).",
    ),
)


def with_options(*options: Any) -> Callable[[Command], Command]:
    """Give a command some options, in their order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def job_of(settings: dict[str, Any]) -> "tuple[Job, OwnModel | None, list[str]]":
    """Return the job that options describe, the model of a config.json, and what is left out of that."""
    from pipeline.questions.job import given_job

    model, config = settings["model"], settings["config"]
    if (model is None) == (config is None):
        raise click.UsageError("give either --model or --config")
    given = {
        name: value for name, value in settings.items() if value != () and name not in ("model", "config")
    }
    return given_job(model, config, given)


def job_of_work(settings: dict[str, Any]) -> "tuple[Job, OwnModel | None, list[str]]":
    """Return the same for a question that needs an amount of work."""
    job, given, left_out = job_of(settings)
    by_examples = (job["examples"], job["tokens_per_example"])
    if (None in by_examples) if job["tokens"] is None else any(by_examples):
        raise click.UsageError("give either --tokens, or --examples and --tokens-per-example")
    if job["lora_rank"] and job["method"] not in (None, *ADAPTER_METHODS):
        raise click.UsageError(f"--lora-rank goes with lora and qlora, not with {job['method']}")
    return job, given, left_out
