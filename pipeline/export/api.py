"""Writes a static JSON API: files under stable names, each a list of rows of a published table, and an index
that describes them. To rename a file or field, change VERSION."""

import json
import re
from pathlib import Path

import duckdb

from pipeline.export.folder import ExportError, replaced
from pipeline.export.package import resource, write_descriptor
from pipeline.export.tables import described
from pipeline.export.versions import schema_version
from pipeline.export.whole import SMALL, TITLE, Small, Writer, sources_of
from pipeline.warehouse.query import ask

API = "api"
"""Its name for ``--for``."""

VERSION = "v1"
"""The folder of the files."""

INDEX = "index.json"

ENDPOINTS = {
    "publication.json": SMALL["publication"],
    "workloads.json": Small("workloads", "The workloads that are ranked."),
    "cheapest/{workload}.json": SMALL["cheapest"],
    "gpus.json": SMALL["gpus"],
    "gpus/{gpu_id}.json": Small(
        "price_list",
        "The lowest price per hour of a GPU at each provider, for each price kind, among the ranked offers.",
        "TRUE QUALIFY 1 = row_number() OVER "
        "(PARTITION BY gpu_id, price_kind, provider ORDER BY usd_per_gpu_hour, source, rowid) "
        "ORDER BY rowid",
    ),
    "sources.json": SMALL["sources"],
}
"""Files, of which those with a column in their name exist once per value of that column."""

PASSING = ("age_days", "overdue")
"""Columns that describe the moment of a query; in a file, they would soon be wrong."""


def export_api(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Write the API below a folder, with ``datapackage.json``. Raises ExportError for a folder with other
    files and for a key that is no plain name, and QueryError."""
    with replaced(folder) as new:
        writer = Writer(connection, new, "parquet", None)
        resources, endpoints = [], []
        for path, small in ENDPOINTS.items():
            table = described(connection, small.table, (), only=small.columns, omitted=PASSING)
            for file, rows in _files(connection, path, small).items():
                resources.append(writer.part(table, rows, f"{VERSION}/{file}", small.description, None))
            fields = table.schema["fields"]
            endpoints.append({"path": path, "description": small.description, "fields": fields})
        index = {"title": TITLE, "version": schema_version(), "endpoints": endpoints}
        about = new / VERSION / INDEX
        about.write_text(json.dumps(index, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        resources.append(resource(about, new, "The other files and their fields."))
        write_descriptor(new, TITLE, resources, sources_of(connection))


def _files(connection: duckdb.DuckDBPyConnection, path: str, small: Small) -> dict[str, str]:
    """Return the files of an endpoint, each with its rows as a condition in SQL."""
    column = re.search(r"{(\w+)}", path)
    if column is None:
        return {path: small.rows}
    name = column[1]
    query = f'SELECT DISTINCT "{name}" FROM main."{small.table}" ORDER BY 1'  # noqa: S608 - our own names
    names = [_file_name(value) for (value,) in ask(connection, query).rows]
    return {path.format(**{name: each}): f"\"{name}\" = '{each}' AND {small.rows}" for each in names}


def _file_name(value: str) -> str:
    """Return a key that is a plain name. Raises ExportError for another one."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", value):
        raise ExportError(f"{value!r} cannot be the name of a file of the API")
    return value
