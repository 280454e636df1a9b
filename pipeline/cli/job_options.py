"""The options that describe a training job, and what its answers must meet: one list for all commands."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pipeline.cli.parameters import EXISTING_FILE, Tokens
from pipeline.contracts.training import CHECKPOINTINGS, METHODS, STACKS

if TYPE_CHECKING:
    from pipeline.catalog.own_models import OwnModel
    from pipeline.questions.job import Job

Command = TypeVar("Command", bound=Callable[..., Any])

_COUNT = click.IntRange(min=1)
_ABOVE_0 = click.FloatRange(min=0, min_open=True)


def _names(option: str, text: str) -> Any:
    """An option that names something: repeatable, and with commas."""
    return click.option(option, multiple=True, metavar="NAME", help=text)


MODEL = (
    click.option("--model", help="For example llama-3.1-8b."),
    click.option("--config", type=EXISTING_FILE, help="A config.json instead of --model."),
)
RECIPE = (
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
AMOUNT = (
    click.option("--tokens", type=Tokens(), help="Tokens of one epoch, e.g. 100M."),
    click.option("--examples", type=Tokens(), help="Instead of --tokens: training examples ..."),
    click.option("--tokens-per-example", type=Tokens(), help="... of this many tokens."),
    click.option("--epochs", type=_ABOVE_0, help="Times that all of them are seen; by default 1."),
)


def with_options(*groups: tuple[Any, ...]) -> Callable[[Command], Command]:
    """Give a command the options of some groups, in their order."""

    def decorate(command: Command) -> Command:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return decorate


def job_of(
    model: str | None, config: Path | None, settings: dict[str, Any]
) -> "tuple[Job, OwnModel | None, list[str]]":
    """The job that options describe, the model of a config.json, and what is left out of that model."""
    from pipeline.questions.job import Job

    if (model is None) == (config is None):
        raise click.UsageError("give either --model or --config")
    if config is None:
        return Job(model=model, **settings), None, []
    from pipeline.model.given_models import model_of_file

    given, left_out = model_of_file(config)
    return Job(model=given.model, **settings), given, [f"{config}: {line}" for line in left_out]
