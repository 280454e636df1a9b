"""Writes an export: the published tables, or the catalogue of another tool."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import duckdb

from pipeline.export.folder import ExportError
from pipeline.export.gpuhunt import GPUHUNT
from pipeline.export.machines import export_machines
from pipeline.export.rights import ROWS_OF_PAGES, check_republishable
from pipeline.export.skypilot import SKYPILOT
from pipeline.export.whole import NOTHING, export

CATALOGUES = {layout.tool: layout for layout in (SKYPILOT, GPUHUNT)}


def write(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    tool: str | None,
    form: str | None,
    tables: Sequence[str],
    since: date | None,
    *,
    republishable: bool = False,
) -> list[str]:
    """Write an export and return lines for the user. Raises ExportError and QueryError.

    A tool's layout takes no form, tables or days. ``republishable`` rejects prices whose source is known to
    forbid republishing them, and omits rows of the sources' pages.
    """
    if republishable:
        check_republishable(connection)
    if tool is None:
        omitted = ROWS_OF_PAGES if republishable else NOTHING
        return export(connection, folder, "csv" if form == "csv" else "parquet", tables, since, omitted)
    if form:
        raise ExportError(f"--for {tool} has a format of its own: leave --format out")
    if tables or since:
        raise ExportError(f"--for {tool} writes the newest offers: leave --tables and --since out")
    return export_machines(connection, folder, CATALOGUES[tool])
