"""What a trace can fail with."""


class CannotTraceError(Exception):
    """A step that cannot be traced: what was in the way, where, and what to do."""
