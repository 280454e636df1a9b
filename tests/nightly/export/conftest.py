"""The environment of the tools that read the exports."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.export.conftest import exported  # noqa: F401 - the same export
from tests.nightly.processes import output_of

CONSUMERS = Path(__file__).parents[3] / ".venv-consumers"


@pytest.fixture(scope="session")
def consumers() -> Path:
    """The Python of the environment that has the tools which read the exports."""
    if not (CONSUMERS / ".ready").exists():
        pytest.skip("the tools that read the exports are not installed: make .venv-consumers/.ready")
    return CONSUMERS / "bin" / "python"


def ask_tool(python: Path, script: str, *arguments: object, home: Path) -> Any:
    """Run a script with the tools' Python and return the JSON that it prints; ``home`` is the tools' home."""
    variables = {"PATH": os.environ["PATH"], "HOME": str(home), "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"}
    said = output_of([python, "-c", script, *map(str, arguments)], env=variables)
    return json.loads(said.splitlines()[-1])
