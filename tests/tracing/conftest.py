"""Tests of traces run torch's own code: `make trace-check` has torch, the default tests do without."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

NO_TORCH = "traces need torch (gpufare[trace]): make trace-check"


class _Skipped(pytest.File):
    """A test file that is not even imported."""

    def collect(self) -> Iterator[pytest.Item]:
        pytest.skip(NO_TORCH, allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if find_spec("torch") is None:
        return _Skipped.from_parent(parent, path=module_path)
    return None
