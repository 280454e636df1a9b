"""The environment of the tools that read the exports."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.export.conftest import exported  # noqa: F401 - the same export

CONSUMERS = Path(__file__).parents[3] / ".venv-consumers"


@pytest.fixture(scope="session")
def consumers() -> Path:
    """The Python of the environment that has the tools which read the exports."""
    if not (CONSUMERS / ".ready").exists():
        pytest.skip("the tools that read the exports are not installed: make .venv-consumers/.ready")
    return CONSUMERS / "bin" / "python"


def ask_tool(python: Path, script: str, *arguments: object, home: Path) -> Any:
    """Run a script with the tools' Python and return the JSON that it prints; ``home`` is the tools' home."""
    done = subprocess.run(
        [str(python), "-c", script, *map(str, arguments)],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])
