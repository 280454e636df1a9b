"""docs/reference/commands.md: every command with its arguments and options."""

import inspect
from collections.abc import Iterator, Mapping

import click

from docs.generate.markdown import code, table, text
from pipeline.cli.main import GROUPS, main

INTRODUCTION = """# Commands

This file is made by `make docs` from the command line. `gpufare COMMAND --help` prints the same text.

`--format` is one of `table` (fits the terminal), `csv`, `json` (an array), `jsonl` (a line per row) and
`record` (a line per value). [Ask from the command line](../how-to/ask.md) shows how to write names and
numbers.
"""


def page() -> str:
    """Return the page."""
    own = {name: main.get_command(click.Context(main), name) for names in GROUPS.values() for name in names}
    return "\n".join([INTRODUCTION, *_sections(own, "gpufare")])


def _sections(commands: Mapping[str, click.Command | None], path: str) -> Iterator[str]:
    for name, command in sorted(commands.items()):
        if command is None:
            raise LookupError(f"{path} has no command {name}")
        whole = f"{path} {name}"
        context = click.Context(command, info_name=whole)
        yield f"## {whole}\n"
        usage = " ".join(command.collect_usage_pieces(context))
        yield f"```text\n{whole} {usage}\n```\n"
        yield from _paragraphs(command.help or "")
        options = [record for each in command.params if (record := each.get_help_record(context))]
        if options:
            yield table(["option", "meaning"], ([code(names), text(meaning)] for names, meaning in options))
            yield ""
        if isinstance(command, click.Group):
            yield from _sections(command.commands, whole)


def _paragraphs(help_text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; a paragraph that starts with \\b keeps its line breaks."""
    for paragraph in inspect.cleandoc(help_text).split("\n\n"):
        if paragraph.startswith("\b"):
            kept = paragraph.removeprefix("\b").strip("\n")
            yield f"```text\n{kept}\n```\n"
        else:
            yield f"{text(paragraph)}\n"
