"""The options that describe a training job and constrain its answers: one list for all commands."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pipeline.catalog.job_settings import PRICE_SETTINGS, JobSetting, job_settings
from pipeline.cli.completion import names_of
from pipeline.cli.parameters import EXISTING_FILE

if TYPE_CHECKING:
    from pipeline.catalog.own import OwnModel
    from pipeline.questions.job import Job

Command = TypeVar("Command", bound=Callable[..., Any])


def _option(setting: JobSetting) -> Any:
    default = f" Default: {setting.default_value}." if setting.default_value else ""
    choices = f" Names: {', '.join(setting.choices)}." if setting.kind == "names" and setting.choices else ""
    return click.option(setting.option, help=f"{setting.meaning}{choices}{default}", **_type(setting))


def _type(setting: JobSetting) -> dict[str, Any]:
    """Return the arguments that click.option needs for a setting of this kind. Values are passed on as they
    are written: the macros decide which are right."""
    match setting.kind:
        case "flag":
            return {"is_flag": True, "default": None}
        case "names" | "machines":
            metavar = "NAME" if setting.kind == "names" else "MACHINES"
            return {"multiple": True, "metavar": metavar, "shell_complete": names_of(setting.named)}
        case "amount" | "whole" | "number":
            return {"metavar": "NUMBER"}
    choices = f"[{'|'.join(setting.choices)}]" if setting.choices else None
    return {"metavar": choices, "shell_complete": names_of(setting.named)}


def _options(settings: Iterable[JobSetting]) -> tuple[Any, ...]:
    model, *others = settings
    config = click.option("--config", type=EXISTING_FILE, help="A config.json to use instead of --model.")
    return (_option(model), config, *map(_option, others))


JOB = _options(job_settings().values())
RECIPE = _options(setting for setting in job_settings().values() if setting.recipe)
OF_PRICES = tuple(_option(job_settings()[name]) for name in PRICE_SETTINGS if name != "gpu")
"""The options that choose prices, apart from the GPU."""


def with_options(*options: Any) -> Callable[[Command], Command]:
    """Return a decorator that adds options to a command, in the given order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def job_of(settings: dict[str, Any]) -> "tuple[Job, OwnModel | None, list[str]]":
    """Return the job that options describe, a config.json's model, and notes on that file's unread parts."""
    from pipeline.questions.job import given_job

    model, config = settings["model"], settings["config"]
    if (model is None) == (config is None):
        raise click.UsageError("give either --model or --config")
    given = {
        name: value for name, value in settings.items() if value != () and name not in ("model", "config")
    }
    return given_job(model, config, given)


def job_of_work(settings: dict[str, Any]) -> "tuple[Job, OwnModel | None, list[str]]":
    """Return the same as ``job_of``, after checking that the settings specify an amount of work."""
    job, given, left_out = job_of(settings)
    by_examples = (job["examples"], job["tokens_per_example"])
    if (None in by_examples) if job["tokens"] is None else any(by_examples):
        raise click.UsageError("give either --tokens, or --examples and --tokens-per-example")
    return job, given, left_out
