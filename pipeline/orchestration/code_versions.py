"""Code versions: Dagster marks an asset whose definition changed since it was materialized."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from pipeline.home import paths
from pipeline.sources import source_module


def source_version(source: str) -> str:
    """Of the source's yaml and reader."""
    reader = source_module(source).__file__
    return _hash([paths.CATALOG_DIR / "sources" / f"{source}.yaml", *([Path(reader)] if reader else [])])


def table_version(files: Iterable[Path]) -> str:
    """Of the SQL files that define a table."""
    return _hash(files)


def _hash(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]
