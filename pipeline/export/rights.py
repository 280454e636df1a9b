"""Whether an export may be published, as far as the terms of its sources are known."""

import duckdb

from pipeline.catalog.source_config import configs
from pipeline.export.folder import ExportError
from pipeline.warehouse.query import ask

SOURCES = """SELECT source FROM main.offers UNION SELECT source FROM main.price_history
              UNION SELECT source FROM main.ranking_history UNION SELECT source FROM main.rejects"""
"""Whoever published one of them published prices of these sources; all rankings rest on them."""


ROWS_OF_PAGES = {"rejects": ("raw",)}
"""Columns, by table, with rows of the sources' pages as they stand there: a tool's own use needs them, and
whoever publishes an export publishes prices, not pages."""


def forbidden() -> list[str]:
    """Return the sources whose terms are known to forbid that their prices are published again, by name."""
    return [name for name, config in configs().items() if config.rights.republishing == "forbidden"]


def check_republishable(connection: duckdb.DuckDBPyConnection) -> None:
    """Raise ExportError where the published file has anything of such a source; rankings with some of their
    rows taken out would be wrong. Raises QueryError."""
    present = {source for (source,) in ask(connection, SOURCES).rows}
    if found := [name for name in forbidden() if name in present]:
        raise ExportError(
            f"the published file has prices of {', '.join(found)}, whose terms forbid publishing them again "
            "as far as is known (docs/reference/sources.md): export from a home that never had them, after "
            f"`gpufare sources disable {' '.join(found)}`"
        )
