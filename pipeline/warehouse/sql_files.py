"""Lists and runs the SQL files under sql/."""

from pathlib import Path

import duckdb

from pipeline.contracts.errors import GpufareError
from pipeline.home import paths


class BuildError(GpufareError):
    """The database could not be built; the message names the file or table and quotes DuckDB."""


def scripts(folder: str) -> list[Path]:
    """Return the files of sql/``folder``, sorted by name."""
    return sorted((paths.SQL_DIR / folder).glob("*.sql"))


MACRO_FOLDERS = ("model", "jobs", "claims")
"""The folders of sql/ that define macros, each after the folders that it reads."""


def macro_scripts() -> list[Path]:
    """Return the files of sql/ that define macros, each after the files that it reads."""
    return [path for folder in MACRO_FOLDERS for path in scripts(folder)]


def run(connection: duckdb.DuckDBPyConnection, script: Path) -> None:
    """Execute a script. Raises BuildError."""
    try:
        connection.execute(script.read_text(encoding="utf-8"))
    except duckdb.Error as error:
        raise BuildError(f"sql/{script.parent.name}/{script.name}: {error}") from error
