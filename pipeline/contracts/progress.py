"""How a long job reports where it is."""

from collections.abc import Callable

Progress = Callable[[str], None]
"""Takes one line of text for each step; from several threads while sources are captured in parallel."""


def no_progress(line: str) -> None:
    """Report nothing."""
