"""The one kind of error whose message is meant for the person at the command line."""


class GpufareError(Exception):
    """A one-line error: the problem, its place and the remedy; no traceback, and exit code 1."""


def sentence_of(problem: Exception) -> str:
    """Return an error as text, preceded by its type unless it is a GpufareError."""
    return str(problem) if isinstance(problem, GpufareError) else f"{type(problem).__name__}: {problem}"
