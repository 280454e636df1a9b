"""The environment of processes that deal with what strangers wrote."""

import os
from contextlib import suppress

_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR", "LANG", "LC_ALL", "TZ")
"""The variables that such a process gets, besides those of Python itself."""


def environment_without_keys() -> dict[str, str]:
    """Return the variables of the environment that Python needs, and no others."""
    return {name: value for name, value in os.environ.items() if name in _PASSED_ON or name[:6] == "PYTHON"}


def limit_memory(limit_bytes: int) -> None:
    """Limit the memory of this process, on systems that can."""
    import resource

    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))
