"""The command ``gpufare``: each of its subcommands is a few lines on top of other packages in pipeline.

The module of a command is imported when the command is used, and heavy modules inside the commands that use
them, so that a question is answered at once.
"""

import os
import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.terminal import say
from pipeline.contracts.errors import GpufareError
from pipeline.home import paths

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_EXTRA_OF = {"numpy": "calibrate", "scipy": "calibrate", "obstore": "store", "mcp": "mcp"}
"""Packages that a default install lacks, each with the extra that installs it."""


_IN_TRACER = ("measure", "trace")
"""Commands of the project in ``tracer/``, which is installed separately."""


class _Problem(click.ClickException):
    """A problem reported in one line, which is wrapped on a terminal."""

    def show(self, file: Any = None) -> None:
        """Print the problem on stderr."""
        say(f"Error: {self.format_message()}")


class _UsageError(_Problem):
    """A wrong option, argument or value, without click's usage text around it."""

    exit_code = 2


FIRST = ("demo", "cheapest", "explain", "prices", "sql")
"""The commands that a new user needs first."""

GROUPS = {
    "Ask": {
        "cheapest": "questions",
        "explain": "questions",
        "fit": "questions",
        "compare": "questions",
        "history": "questions",
        "watch": "questions",
        "mcp": "assistant",
    },
    "Prices and names": {"prices": "market", "gpus": "market", "models": "market"},
    "Every day": {
        "refresh": "daily",
        "demo": "daily",
        "sources": "daily",
        "digest": "daily",
        "doctor": "daily",
        "confirm": "daily",
        "refuse": "daily",
    },
    "What is published": {
        "sql": "database",
        "export": "database",
        "report": "database",
        "store": "store",
    },
    "Your own data": {"run": "runs", "model": "models", "import": "files", "estimate": "files"},
    "Maintain": {
        "rebuild": "database",
        "lake": "lake",
        "read": "files",
        "normalize": "files",
        "calibrate": "models",
    },
}
"""The commands by what they are for, each with its module in pipeline.cli."""

_MODULES = {name: module for group in GROUPS.values() for name, module in group.items()}


class _Commands(click.Group):
    """The commands of gpufare, and those of its plugins, which are imported on demand. Errors meant for users
    are shown as one line, without a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in order."""
        return sorted({*_MODULES, *_plugins()})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return the command with this name, or None if the name is unknown."""
        if name not in self.commands and name in _MODULES:
            module = import_module(f"pipeline.cli.{_MODULES[name]}")
            self.add_command(next(each for each in vars(module).values() if _is_command(each, name)), name)
        elif name not in self.commands and name in _plugins():
            self.add_command(_loaded(name), name)
        if name not in self.commands and name in _IN_TRACER:
            raise _Problem(
                f"gpufare {name} is a command of gpufare-tracer, which is not installed: "
                "pip install ./tracer, in a clone of gpufare"
            )
        return self.commands.get(name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by what they are for, those that a new user needs on top, each with the first
        sentence of its help."""
        of_groups = {title: [each for each in names if each not in FIRST] for title, names in GROUPS.items()}
        plugins = [name for name in self.list_commands(ctx) if name not in _MODULES]
        for title, names in {"Start with": FIRST, **of_groups, "Plugins": plugins}.items():
            found = [(name, self.get_command(ctx, name)) for name in names]
            if found:
                with formatter.section(title):
                    formatter.write_dl(
                        [(name, each.get_short_help_str(limit=1000)) for name, each in found if each]
                    )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and report errors meant for users as one line."""
        try:
            answer = super().invoke(ctx)
            sys.stdout.flush()
            return answer
        except GpufareError as error:
            is_usage = error.exit_code == _UsageError.exit_code
            raise (_UsageError if is_usage else _Problem)(str(error)) from error
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            path = error.ctx.command_path if error.ctx else ctx.command_path
            message = " ".join(error.format_message().split())
            raise _UsageError(f"{message} (see: {path} --help)") from error
        except click.ClickException as error:
            raise _Problem(error.format_message()) from error
        except BrokenPipeError:
            # The program that reads our output closed the pipe (`gpufare ... | head`), which is not an error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return None
        except ModuleNotFoundError as error:
            if (missing := _package(error)) is None:
                raise
            raise _Problem(_how_to_install(missing)) from error
        except OSError as error:
            # An unwritable folder or a full disk is a problem of the machine, not a defect in gpufare.
            from pipeline.home.disk import disk_error_text

            raise _Problem(disk_error_text(error, paths.home())) from error


def _is_command(thing: Any, name: str) -> bool:
    return isinstance(thing, click.Command) and thing.name == name


@cache
def _plugins() -> "dict[str, EntryPoint]":
    """Return the commands that packages register as entry points in the group ``gpufare.commands``."""
    from importlib.metadata import entry_points

    return {plugin.name: plugin for plugin in entry_points(group="gpufare.commands")}


def _loaded(plugin: str) -> click.Command:
    try:
        command: click.Command = _plugins()[plugin].load()
    except ImportError as error:
        raise _Problem(f"the plugin {_plugins()[plugin].value} cannot be loaded: {error}") from error
    return command


def _package(error: ModuleNotFoundError) -> str | None:
    """Return the package that is not installed, or None if it is part of gpufare, which would be a bug."""
    package = (error.name or "").partition(".")[0]
    return None if package in ("", "gpufare", "pipeline") else package


def _how_to_install(package: str) -> str:
    extra = _EXTRA_OF.get(package, "")
    needs = f"this needs {package}, which is not installed: {paths.command_to_install(extra)}"
    if extra:
        return needs
    return f"{needs} installs all packages; a smaller install has only those that questions need"


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gpufare")
def main() -> None:
    """Dollars per finished training job: which GPU is cheapest today, where, and why."""
