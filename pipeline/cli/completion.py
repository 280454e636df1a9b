"""Completion of values in a shell: the names that the published file knows, and the home's own models.

Opening the database at every Tab would take longer than one likes to wait, so the names are kept in a file of
the user's cache until another file is published.
"""

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import click
import platformdirs
from click.shell_completion import CompletionItem

from pipeline.contracts.errors import GpufareError
from pipeline.home import paths
from pipeline.home.csv_rows import read_csv

Names = dict[str, list[str]]

_NAMES = """
SELECT setting, list_sort(list(DISTINCT replace(lower(name), ' ', '-')))
FROM (
    SELECT setting, name FROM main.job_names
    UNION ALL
    SELECT 'model', model FROM main.models
)
WHERE name <> ''
GROUP BY setting
"""


def names_of(kind: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return a function that completes the last of several comma-separated names: those of GPUs
    ("gpu"), models, countries or of another setting that has names."""

    def complete(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
        before, comma, last = typed.rpartition(",")
        known = _published_names().get(kind, [])
        if kind == "model":
            known = sorted({*known, *_own_models()})
        return [CompletionItem(f"{before}{comma}{name}") for name in known if name.startswith(last.lower())]

    return complete


def _published_names() -> Names:
    """Return the names in the published file, keyed by kind; none if the file cannot be read now."""
    # An error would be printed among what the user types.
    with contextlib.suppress(OSError, GpufareError):
        published = paths.home().published
        state = published.stat()
        version = [str(published), state.st_mtime_ns, state.st_size]
        kept = Path(platformdirs.user_cache_dir("gpufare", appauthor=False)) / "names.json"
        with contextlib.suppress(OSError, ValueError, KeyError):
            cached = json.loads(kept.read_text(encoding="utf-8"))
            if cached["version"] == version:
                names: Names = cached["names"]
                return names
        names = _read_names(published)
        with contextlib.suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            draft = kept.with_suffix(f".{os.getpid()}")
            draft.write_text(json.dumps({"version": version, "names": names}), encoding="utf-8")
            draft.replace(kept)
        return names
    return {}


def _own_models() -> list[str]:
    """Return the names of the home's own models; none if they cannot be read now."""
    with contextlib.suppress(GpufareError):
        return [row.values["model"] for row in read_csv(paths.home().models).rows if row.values.get("model")]
    return []


def _read_names(published: Path) -> Names:
    from pipeline.warehouse.query import ask, reader

    with reader(published) as connection:
        return dict(ask(connection, _NAMES).rows)
