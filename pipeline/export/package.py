"""Writes the descriptor of an export, datapackage.json: a Data Package (version 2 of the standard)."""

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline.catalog.source_config import SourceConfig, configs
from pipeline.export.folder import DESCRIPTOR, PACKAGE
from pipeline.export.tables import resource_name
from pipeline.export.versions import schema_version

PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"

LICENSES = [
    {
        "name": "Apache-2.0",
        "path": "https://www.apache.org/licenses/LICENSE-2.0",
        "title": "Apache License 2.0, for gpufare's own work: the catalogue, the model and the "
        "arrangement. The rights in the prices are those of each source, as far as they are known.",
    }
]

MEDIA_TYPES = {
    "csv": "text/csv",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "txt": "text/plain",
    "zip": "application/zip",
}
BINARY = {"parquet", "zip"}


def resource(
    file: Path, folder: Path, description: str, schema: dict[str, Any] | str | None = None
) -> dict[str, Any]:
    """Return the resource for a file, with the file's size and hash, named after the file's path. ``schema``
    is a Table Schema, or the path of a schema in the folder."""
    form = file.suffix.removeprefix(".") or "txt"
    path = file.relative_to(folder)
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    described: dict[str, Any] = {
        "name": resource_name("-".join(path.with_suffix("").parts)),
        **({"type": "table"} if schema else {}),
        "path": path.as_posix(),
        "description": description,
        "format": form,
        "mediatype": MEDIA_TYPES[form],
        **({} if form in BINARY else {"encoding": "utf-8"}),
        "bytes": file.stat().st_size,
        "hash": f"sha256:{digest}",
    }
    return described | ({"schema": schema} if schema else {})


def write_descriptor(
    folder: Path, title: str, resources: list[dict[str, Any]], sources: Iterable[str]
) -> None:
    """Write datapackage.json. ``sources`` names the sources of the exported prices."""
    package = {
        "$schema": PROFILE,
        "name": PACKAGE,
        "title": title,
        "version": schema_version(),
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "licenses": LICENSES,
        "sources": [_source(configs()[name]) for name in sorted(sources) if name in configs()],
        "resources": resources,
    }
    text = json.dumps(package, indent=1, ensure_ascii=False) + "\n"
    (folder / DESCRIPTOR).write_text(text, encoding="utf-8")


def _source(config: SourceConfig) -> dict[str, Any]:
    """Return a source for the descriptor, with what is known about the right to republish its prices."""
    rights = config.rights
    return {
        "title": config.title,
        "path": config.homepage,
        "source": config.name,
        "rights": {
            "republishing": rights.republishing,
            **({"note": rights.note} if rights.note else {}),
            **({"path": rights.url} if rights.url else {}),
            **({"read_on": str(rights.read_on)} if rights.read_on else {}),
        },
    }
