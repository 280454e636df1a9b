"""The one kind of error that is meant for the person at the command line."""


class GpufareError(Exception):
    """One line with the problem, its place and the remedy; shown without a traceback, exit code 1."""


def sentence_of(problem: Exception) -> str:
    """Return an error as one text, with its type unless it is a GpufareError."""
    return str(problem) if isinstance(problem, GpufareError) else f"{type(problem).__name__}: {problem}"
