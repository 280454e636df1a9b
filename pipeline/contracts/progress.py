"""Progress reports from long jobs."""

from collections.abc import Callable

Progress = Callable[[str], None]
"""A function called with one line of text for each note and each Step, from several threads while sources are
captured in parallel."""


class Step(str):
    """A line that tells a person watching what the current step is; all other lines are notes to keep."""

    __slots__ = ()


def no_progress(line: str) -> None:
    """Report nothing."""
