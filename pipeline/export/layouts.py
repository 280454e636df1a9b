"""Writes an export: the published tables, a static JSON API, or a catalogue in another tool's format. Checks
whether the known terms of the sources allow an export to be republished."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import duckdb

from pipeline.catalog.source_config import configs
from pipeline.export.api import API, export_api
from pipeline.export.folder import ExportError
from pipeline.export.gpuhunt import GPUHUNT
from pipeline.export.machines import export_machines
from pipeline.export.skypilot import SKYPILOT
from pipeline.export.whole import Form, export
from pipeline.warehouse.query import ask

CATALOGUES = {layout.tool: layout for layout in (SKYPILOT, GPUHUNT)}

SOURCES = """SELECT source FROM main.offers UNION SELECT source FROM main.price_history
              UNION SELECT source FROM main.ranking_history UNION SELECT source FROM main.rejects"""
"""Sources whose prices are published in one of these tables; all rankings depend on these sources."""


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

    ``tool`` is a key of CATALOGUES, or API; ``form``, ``tables`` and ``since`` do not apply to them.
    ``republishable`` rejects prices whose source is known to forbid republishing them, and omits columns that
    quote the sources' pages.
    """
    if republishable:
        check_republishable(connection)
    if tool is None:
        chosen: Form = "csv" if form == "csv" else "parquet"
        return export(connection, folder, chosen, tables, since, republishable=republishable)
    if form:
        raise ExportError(f"--for {tool} has its own format: leave out --format")
    if tables or since:
        raise ExportError(f"--for {tool} writes the newest offers: leave out --tables and --since")
    if tool == API:
        export_api(connection, folder)
        return []
    return export_machines(connection, folder, CATALOGUES[tool])


def forbidden() -> list[str]:
    """Return the sources whose terms are known to forbid republishing their prices."""
    return [name for name, config in configs().items() if config.rights.republishing == "forbidden"]


def check_republishable(connection: duckdb.DuckDBPyConnection) -> None:
    """Raise ExportError if the published file contains rows of a ``forbidden`` source, since rankings without
    some of their rows would be wrong. Raises QueryError."""
    present = {source for (source,) in ask(connection, SOURCES).rows}
    if found := [name for name in forbidden() if name in present]:
        raise ExportError(
            f"the published file has prices of {', '.join(found)}, whose terms forbid publishing them again "
            "as far as is known (docs/reference/sources.md): export from a home that never had them, after "
            f"`gpufare sources disable {' '.join(found)}`"
        )
