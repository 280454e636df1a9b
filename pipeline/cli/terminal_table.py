"""Tables on a terminal. Rich, which lays them out, takes long to import: answers in a pipe do without it."""

from typing import Any

from rich.console import Console
from rich.containers import Lines
from rich.table import Table
from rich.text import Text

from pipeline.cli.columns import GAP, Column, broken
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
    has_room = sum(column.whole + len(GAP) for column in columns) <= terminal_cells + len(GAP)
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
    # Rich measures the last column with a padding that it does not print.
    cells = terminal_cells + 1 if has_room else terminal_cells
    console = Console(width=cells, force_terminal=is_styled(), highlight=False)
    with console.capture() as written:
        console.print(table)
    return [line.rstrip() for line in written.get().splitlines()]
