"""Which version of the published columns this is: catalog/schema_versions says what each version changed."""

from functools import cache
from typing import Any

import yaml

from pipeline.home import paths

FOLDER = "schema_versions"
CHANGES = "changes.yaml"


@cache
def schema_changes() -> list[dict[str, Any]]:
    """Return the versions, newest first; the last one has all columns of its day in a file of its own."""
    text = (paths.CATALOG_DIR / FOLDER / CHANGES).read_text(encoding="utf-8")
    changes: list[dict[str, Any]] = yaml.safe_load(text)
    return changes


def schema_version() -> str:
    """The newest version: of three numbers the first one moves when a column is renamed, dropped or changes
    its type."""
    return str(schema_changes()[0]["version"])
