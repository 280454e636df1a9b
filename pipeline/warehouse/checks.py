"""Runs sql/checks: queries that return the rows that must not, or should not, be published."""

import re

import duckdb

from pipeline.warehouse.scripts import BuildError, scripts


class CheckFailedError(BuildError):
    """A check marked "fail" found rows."""


def run_checks(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Run every check. Returns the warnings. Raises CheckFailedError on the first failed check."""
    warnings = []
    for path in scripts("checks"):
        query = path.read_text(encoding="utf-8")
        header = re.match(r"-- (fail|warn): (.+)", query)
        if header is None:
            raise BuildError(
                f"sql/checks/{path.name}: the first line must be '-- fail: ...' or '-- warn: ...'"
            )
        try:
            rows = connection.execute(query).fetchmany(3)
        except duckdb.Error as error:
            raise BuildError(f"sql/checks/{path.name}: {error}") from error
        if rows:
            message = f"{header[2]} (sql/checks/{path.name}; first: {rows[0]})"
            if header[1] == "fail":
                raise CheckFailedError(message)
            warnings.append(message)
    return warnings
