"""Versions of the published columns, and their changes: catalog/schema_versions."""

from functools import cache
from typing import Any

import yaml

from pipeline.home import paths

FOLDER = "schema_versions"
CHANGES = "changes.yaml"


@cache
def schema_changes() -> list[dict[str, Any]]:
    """Return the schema versions, newest first; a separate file lists all columns of the first version."""
    text = (paths.CATALOG_DIR / FOLDER / CHANGES).read_text(encoding="utf-8")
    changes: list[dict[str, Any]] = yaml.safe_load(text)
    return changes


def schema_version() -> str:
    """Return the newest version: three numbers, the first of which changes if a column is renamed, dropped or
    retyped."""
    return str(schema_changes()[0]["version"])
