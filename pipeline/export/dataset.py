"""Exports the published tables as a dataset of the Hugging Face Hub: Parquet by day, and a card."""

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import yaml

from pipeline.export.folder import replaced
from pipeline.export.package import resource, write_descriptor
from pipeline.export.tables import BY_DAY, published_names
from pipeline.export.versions import schema_version
from pipeline.export.whole import (
    LATEST,
    NOTHING,
    TITLE,
    chosen,
    export_tables,
    sources_of,
    without_rows,
)
from pipeline.warehouse.query import ask

CARD = "README.md"

CARD_TEXT = """# {title}

As of {day}, schema version {version}. What each column means, its unit and the values that it may have are in
`datapackage.json`, as are the sources and what is known of the right to publish the prices of each.

The rights in the prices are those of the sources; gpufare's own part is under Apache-2.0. Prices are those
that the sources showed on the day, without taxes, and no offer to sell.

| table | rows are | files |
|---|---|---|
{rows}
"""


def export_dataset(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    tables: Sequence[str] = (),
    since: date | None = None,
    left_out: Mapping[str, Collection[str]] = NOTHING,
) -> list[str]:
    """Write the tables without columns ``left_out``, the card and the descriptor. Returns lines.

    Raises ExportError and QueryError.
    """
    wanted = chosen(connection, tables) - {LATEST}
    ((day,),) = ask(connection, "SELECT as_of_day FROM main.publication").rows
    with replaced(folder) as new:
        resources = export_tables(connection, new, "parquet", wanted, since, left_out)
        names = published_names(connection).items()
        written = {name: text for name, text in names if any(new.glob(_files(name)))}
        (new / CARD).write_text(
            card(written, day, sum(each["bytes"] for each in resources)), encoding="utf-8"
        )
        resources.append(resource("card", new / CARD, new, "The card of the dataset."))
        write_descriptor(new, TITLE, resources, sources_of(connection))
        empty = without_rows(new, wanted, since)
    return [f"a card with a configuration for each of {len(written)} tables", *empty]


def card(tables: Mapping[str, str], day: date, size_bytes: int) -> str:
    """The card: a heading in YAML with a configuration per table, and what a person should know.

    ``tables`` are names with what they are.
    """
    rows = [f"| `{name}` | {text.replace('|', ' ')} | `{_files(name)}` |" for name, text in tables.items()]
    heading: dict[str, Any] = {
        "pretty_name": "gpufare: cloud-GPU prices and the cost of finished training jobs",
        "license": "other",
        "license_name": "apache-2.0-and-rights-of-the-sources",
        "license_link": "datapackage.json",
        "language": ["en"],
        "tags": ["gpu", "cloud", "prices", "training-cost"],
        "dataset_size": size_bytes,
        "configs": [_configuration(name) for name in tables],
    }
    text = CARD_TEXT.format(title=TITLE, day=day, version=schema_version(), rows="\n".join(rows))
    return f"---\n{yaml.safe_dump(heading, sort_keys=False, width=110)}---\n{text}"


def _configuration(table: str) -> dict[str, Any]:
    shown_first = {"default": True} if table == "cheapest_gpu_per_workload" else {}
    return {"config_name": table, "data_files": _files(table), **shown_first}


def _files(table: str) -> str:
    return f"{table}/*.parquet" if table in BY_DAY else f"{table}.parquet"
