"""Which export a choice of layout, tables and days means."""

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
    """Write an export. Returns what there is to say of it, in lines. Raises ExportError and QueryError.

    A tool's own layout takes no form, tables or days. ``republishable`` refuses prices whose source is known
    to forbid publishing them again, and leaves rows of the sources' pages out.
    """
    if republishable:
        check_republishable(connection)
    if tool is None:
        left_out = ROWS_OF_PAGES if republishable else NOTHING
        return export(connection, folder, "csv" if form == "csv" else "parquet", tables, since, left_out)
    if form:
        raise ExportError(f"--for {tool} has a format of its own: leave --format out")
    if tables or since:
        raise ExportError(f"--for {tool} writes the newest offers: leave --tables and --since out")
    return export_machines(connection, folder, CATALOGUES[tool])
