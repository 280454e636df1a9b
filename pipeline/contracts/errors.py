"""The one kind of error that is meant for the person at the command line."""


class GpufareError(Exception):
    """What was wrong, where, and what to do, in one line; shown without a traceback, exit code 1."""
