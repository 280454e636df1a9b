"""Checks whether an export may be republished, as far as the terms of its sources are known."""

import duckdb

from pipeline.catalog.source_config import configs
from pipeline.export.folder import ExportError
from pipeline.warehouse.query import ask

SOURCES = """SELECT source FROM main.offers UNION SELECT source FROM main.price_history
              UNION SELECT source FROM main.ranking_history UNION SELECT source FROM main.rejects"""
"""Sources whose prices are published with one of these tables; all rankings depend on them."""


ROWS_OF_PAGES = {"rejects": ("raw",)}
"""Columns, by table, with verbatim rows of the sources' pages, which a republished export omits."""


def forbidden() -> list[str]:
    """Return the sources whose terms are known to forbid republishing their prices."""
    return [name for name, config in configs().items() if config.rights.republishing == "forbidden"]


def check_republishable(connection: duckdb.DuckDBPyConnection) -> None:
    """Raise ExportError if the published file has rows of such a source, as rankings without some of their
    rows would be wrong. Raises QueryError."""
    present = {source for (source,) in ask(connection, SOURCES).rows}
    if found := [name for name in forbidden() if name in present]:
        raise ExportError(
            f"the published file has prices of {', '.join(found)}, whose terms forbid publishing them again "
            "as far as is known (docs/reference/sources.md): export from a home that never had them, after "
            f"`gpufare sources disable {' '.join(found)}`"
        )
