"""Progress reports of long jobs."""

from collections.abc import Callable

Progress = Callable[[str], None]
"""Called with one line of text for each note and each Step, from several threads while sources are captured
in parallel."""


class Step(str):
    """The current step, for someone who watches. Other lines are notes, to be kept."""

    __slots__ = ()


def no_progress(line: str) -> None:
    """Report nothing."""
