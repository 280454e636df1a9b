"""The one kind of error that is meant for the person at the command line."""


class GpufareError(Exception):
    """What was wrong, where, and what to do, in one line; shown without a traceback, exit code 1."""


def sentence_of(problem: Exception) -> str:
    """What went wrong, for an outcome or an incident: only an error that is not ours needs its type."""
    return str(problem) if isinstance(problem, GpufareError) else f"{type(problem).__name__}: {problem}"
