"""Tables on a terminal. Rich, which lays them out, takes long to import: answers in a pipe do without it."""

from typing import Any

from click import unstyle
from rich.cells import cell_len
from rich.console import Console
from rich.containers import Lines
from rich.table import Table
from rich.text import Text

from pipeline.cli.columns import GAP, SHORT_TEXT, Column, broken
from pipeline.cli.terminal import is_styled


class _Broken(Text):
    """Text whose lines are also broken after underscores."""

    def wrap(self, console: Console, width: int, **options: Any) -> Lines:
        """Return lines of at most ``width`` cells; a word is broken only if it is longer than that."""
        return Text(broken(self.plain, width)).wrap(console, width, **options)


def lines_of(columns: list[Column], rows: list[list[str]], terminal_cells: int) -> list[str]:
    """Return the lines of a table no wider than the terminal: if it does not fit, headings are broken and the
    widest text is narrowed."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    unbroken = sum(max(column.least, min(column.whole, SHORT_TEXT)) + len(GAP) for column in columns)
    has_room = unbroken <= terminal_cells + len(GAP)
    for column in columns:
        heading = column.heading if has_room else broken(column.heading, column.least)
        table.add_column(
            Text(heading, overflow="fold"),
            justify="right" if column.is_number else "left",
            no_wrap=not column.yields,
        )
    for row in rows:
        table.add_row(
            *(
                _Broken(cell, overflow="fold")
                if column.wraps
                else Text(cell, no_wrap=True, overflow="ellipsis")
                for cell, column in zip(row, columns, strict=False)
            )
        )
    # Rich counts a blank after the last column, which matters to a table that just fits.
    lines = _printed(table, terminal_cells + 1)
    is_too_wide = max(map(cell_len, map(unstyle, lines))) > terminal_cells
    return _printed(table, terminal_cells) if is_too_wide else lines


def _printed(table: Table, terminal_cells: int) -> list[str]:
    console = Console(width=terminal_cells, force_terminal=is_styled(), highlight=False)
    with console.capture() as written:
        console.print(table)
    return [line.rstrip() for line in written.get().splitlines()]
