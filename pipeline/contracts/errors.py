"""The one kind of error whose message is meant for the person at the command line."""

from typing import ClassVar


class GpufareError(Exception):
    """A one-line error: the problem, its place and the remedy; no traceback. The command exits with
    ``exit_code``."""

    exit_code: ClassVar[int] = 1


def sentence_of(problem: Exception) -> str:
    """Return an error as text, preceded by its type unless it is a GpufareError."""
    return str(problem) if isinstance(problem, GpufareError) else f"{type(problem).__name__}: {problem}"
