"""The terminal: its width, styles, wrapped text, and progress."""

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import click

from pipeline.contracts.progress import Progress, Step

WARNING = "CAREFUL:"
"""The word that begins a warning in an answer."""

LEAST_WIDTH = 20
"""Smallest width used for layout."""


def width(stream: TextIO | None = None) -> int | None:
    """Return the width for layout: the variable COLUMNS if it is a number above 0, else the terminal's width,
    or None for a pipe or a file. ``stream`` is stdout by default."""
    columns, stream = os.environ.get("COLUMNS", ""), stream or sys.stdout
    if not (columns.isdecimal() and int(columns)) and not stream.isatty():
        return None
    return max(LEAST_WIDTH, shutil.get_terminal_size().columns)


def height() -> int | None:
    """Return the number of lines that fit the terminal, or None for a pipe or a file."""
    return shutil.get_terminal_size().lines if sys.stdout.isatty() else None


def is_styled() -> bool:
    """True if stdout is a terminal that supports bold and colour, and NO_COLOR is not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def bold(text: str) -> str:
    """Return the text for stdout, in bold if stdout supports styles."""
    return click.style(text, bold=True) if is_styled() else text


def wrapped(text: str, columns: int | None, indent: str = "  ") -> str:
    """Return lines of at most ``columns`` characters, broken between words; a longer word, such as an
    address, stays whole.

    Continuation lines are indented like the first line, plus ``indent``.
    """
    if columns is None:
        return text
    return "\n".join(
        textwrap.fill(
            line,
            columns,
            subsequent_indent=re.match(r"\s*", line)[0] + indent,  # type: ignore[index]
            break_long_words=False,
            break_on_hyphens=False,
            replace_whitespace=False,
            drop_whitespace=True,
        )
        if len(line) > columns
        else line
        for line in text.split("\n")
    )


def tell(line: str = "", indent: str = "  ") -> None:
    """Print a line of an answer, wrapped on a terminal and unchanged in a pipe."""
    click.echo(warned(wrapped(line, width(), indent)))


def warned(text: str) -> str:
    """Return the text for stdout, with the word that begins a warning in colour if stdout supports styles."""
    return text.replace(WARNING, click.style(WARNING, fg="yellow", bold=True)) if is_styled() else text


def say(note: str | None) -> None:
    """Print a note for people on stderr, so that programs read only the answer; None prints nothing."""
    if note:
        sys.stdout.flush()
        click.echo(wrapped(note, width(sys.stderr)), err=True)


@contextmanager
def progress_shown(what: str) -> Iterator[Progress]:
    """Show the notes and steps of long work. Notes go to stderr; on a terminal, the newest step is shown
    beside a clock while the work lasts."""
    if not sys.stderr.isatty():
        yield lambda line: None if isinstance(line, Step) else say(line)
        return
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    def follow(line: str) -> None:
        if isinstance(line, Step):
            bar.update(task, description=line)
        else:
            bar.console.print(wrapped(line, width(sys.stderr)), markup=False, highlight=False)

    step = TextColumn(
        "{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")
    )
    with Bar(
        SpinnerColumn(),
        TimeElapsedColumn(),
        step,
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as bar:
        task = bar.add_task(what)
        yield follow
