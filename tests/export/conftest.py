"""One export of the sample home for all tests of a module, and the environment of the tools that read it."""

import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pipeline.export.whole import export
from pipeline.home.paths import Home
from pipeline.warehouse.query import reader
from tests.conftest import shared_folder

CONSUMERS = Path(__file__).parents[2] / ".venv-consumers"


@pytest.fixture(scope="session")
def exported(sample_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All tables as CSV. Read only."""
    from filelock import FileLock

    folder = shared_folder(tmp_path_factory) / "exported-csv"
    with FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            with reader(sample_home.published, writes_files=True) as connection:
                export(connection, folder, "csv")
    return folder


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


def package_of(folder: Path) -> dict[str, Any]:
    """The descriptor of an export."""
    package: dict[str, Any] = json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))
    assert datetime.fromisoformat(package["created"]).tzinfo == UTC
    return package
