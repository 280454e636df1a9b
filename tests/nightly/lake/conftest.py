"""One PostgreSQL server per process of tests, and a database for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.cli.lake import PACKAGES
from pipeline.lake.catalogue import LAKE_VARIABLE
from tests.conftest import gpufare_process
from tests.nightly.lake.postgres import new_database, programs, server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Skips where PostgreSQL is not installed."""
    with server() as address:
        yield address


@pytest.fixture
def postgres(postgres_server: str) -> str:
    """The address of an empty database."""
    return new_database(postgres_server)


@pytest.fixture(scope="session")
def extensions() -> None:
    """Skips where DuckDB's extensions for a lake are not installed."""
    if not (PACKAGES / ".ready").exists():
        pytest.skip("DuckDB 1.5.5 and its extensions are not installed: make .venv/lake/.ready")


def made_lake(catalogue: str, data: Path) -> str:
    """Make a lake and return its catalogue."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LAKE_VARIABLE, catalogue)
        made = gpufare_process("lake", "create", "--data", str(data))
    assert made.returncode == 0, made.stderr
    return catalogue


@pytest.fixture(scope="session")
def postgres_lake(extensions: None, postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The catalogue of a lake that tests copy; their data are in one folder, in files whose names differ."""
    return made_lake(new_database(postgres_server), tmp_path_factory.mktemp("lake"))


@pytest.fixture
def file_lake(extensions: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty lake whose catalogue is a file, set as the one to use."""
    monkeypatch.setenv(LAKE_VARIABLE, str(tmp_path / "lake.ducklake"))
    return made_lake(str(tmp_path / "lake.ducklake"), tmp_path / "data")


@pytest.fixture
def lake(request: pytest.FixtureRequest, extensions: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty lake, set as the one to use: in PostgreSQL where there is one, otherwise in a file."""
    if programs() is None:
        return str(request.getfixturevalue("file_lake"))
    made = str(request.getfixturevalue("postgres_lake"))
    copy = new_database(request.getfixturevalue("postgres_server"), of=made)
    monkeypatch.setenv(LAKE_VARIABLE, copy)
    return copy
