"""Traces kept on disk: no step is traced again until its recipe, a package or the tracer changes.

This module keeps catalog/traces.csv (for grid.py) and catalog/traced_runs.csv (for traced_runs.py).
"""

import csv
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from gpufare_tracer.processes import in_processes
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import Trace, TraceShape

Row = dict[str, str]
"""One row of a table, as text."""
ToRow = Callable[[Trace], Mapping[str, str | int]]
Job = tuple[Recipe, TraceShape]
REASON_CHARACTERS = 300
NOT_TRACED = frozenset({"name", "title", "source", "emulates"})
"""Fields that only describe a recipe, and change nothing in its trace."""


REVISIONS: dict[str, Callable[[Recipe], bool]] = {}
"""Changes to the tracer's own code, each with a function that picks the recipes whose traces changed. A
change is part of the digests of its recipes, so that only these recipes are traced again.

A changed kernel rule gets an entry if it changes bytes: ``gpufare trace-grid --check`` shows whether it does.
"""


def digest_of(recipe: Recipe, shape: TraceShape | None = None) -> str:
    """Return a hash of everything that determines a trace: switches, shape and the tracer's revisions.

    A field at its default leaves the hash unchanged. Without a shape, the hash covers traces of all shapes.
    """
    traced: list[Any] = [recipe.model_dump(mode="json", exclude_defaults=True, exclude=set(NOT_TRACED))]
    if shape is not None:
        traced.append(shape.model_dump(mode="json", exclude_defaults=True))
    traced += [name for name, applies in REVISIONS.items() if applies(recipe)]
    return hashlib.sha256(json.dumps(traced, sort_keys=True).encode()).hexdigest()[:16]


class Kept:
    """Traces keyed by digest, from a table and from the journal beside the table.

    A row contains the values from ``to_row``, the packages' ``versions``, and a failed trace's ``problem``.
    """

    def __init__(self, journal: Path, rows: Mapping[str, Row], to_row: ToRow) -> None:
        self.rows = dict(rows)
        self._journal, self._to_row = journal, to_row
        for line in journal.read_text(encoding="utf-8").splitlines() if journal.exists() else ():
            try:
                digest, row = json.loads(line)
            except ValueError:
                continue  # a line that a killed process left unfinished
            self.rows[digest] = row

    def has(self, digest: str) -> bool:
        """Return True if a trace is known and still valid; a failed trace is never valid, and is repeated."""
        row = self.rows.get(digest)
        if row is None or row["problem"]:
            return False
        return installed_versions(row["versions"]) == row["versions"]

    def trace(self, wanted: Iterable[Job], jobs: int, show: Callable[[str], None]) -> None:
        """Make the missing traces in ``jobs`` processes, and save each trace to disk as it arrives."""
        missing = {digest: job for job in wanted if not self.has(digest := digest_of(*job))}
        show(f"{len(missing)} traces to make")
        calls = [(self._to_row, *job) for job in missing.values()]
        for number, (index, row) in enumerate(in_processes(traced_row, calls, jobs), start=1):
            digest, (recipe, shape) = list(missing.items())[index]
            self._add(digest, row)
            sizes = f"{shape.layers or 'all'} layers, {shape.micro_batch} x {shape.seq_len}"
            done = row["problem"] or "traced"
            show(f"{number} of {len(missing)}: {recipe.name}, {shape.model}, {sizes}: {done}")

    def _add(self, digest: str, row: Row) -> None:
        self.rows[digest] = row
        self._journal.parent.mkdir(parents=True, exist_ok=True)
        torn = self._journal.exists() and not self._journal.read_bytes().endswith(b"\n")
        with self._journal.open("a", encoding="utf-8") as file:
            file.write("\n" * torn + json.dumps([digest, row]) + "\n")

    def end(self) -> None:
        """Delete the journal, whose rows are now in the table."""
        self._journal.unlink(missing_ok=True)


def traced_row(to_row: ToRow, recipe: Recipe, shape: TraceShape) -> Row:
    """Trace a step and return its row; if the trace fails, the row's ``problem`` says why."""
    from gpufare_tracer.trace import trace

    try:
        found = trace(recipe, shape)
        values = {name: str(value) for name, value in to_row(found).items()}
    except Exception as error:  # a framework may raise any error
        return {"problem": reason_of(error), "versions": ""}
    return values | {"problem": "", "versions": versions_text(found.versions)}


def read_table(path: Path, header: Sequence[str] | None = None) -> list[Row]:
    """Return the rows of a CSV file, or no rows if the file is missing or its columns are not ``header``."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        return [] if header is not None and reader.fieldnames != list(header) else list(reader)


def write_table(path: Path, header: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write the columns in ``header`` to a CSV file, completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, header, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    part.replace(path)


def reason_of(error: Exception) -> str:
    """Return the type and the first line of an error, with the folders removed from paths."""
    line = (str(error).strip().splitlines() or [""])[0]
    line = re.sub(r"(?<![\w.:/])(/[\w.+-]+)+/", "", line)
    text = "".join(character for character in line if character.isprintable())
    return f"{type(error).__name__}: {text}"[:REASON_CHARACTERS]


def versions_text(versions: Mapping[str, str]) -> str:
    """Return ``package version`` for each package, sorted, without the build's name (such as +cpu)."""
    return ", ".join(f"{name} {number.split('+')[0]}" for name, number in sorted(versions.items()))


def installed_versions(text: str) -> str | None:
    """Return the installed versions of the packages in a ``versions_text``; None if any is not installed."""
    names = [each.split(" ")[0] for each in text.split(", ")]
    try:
        return versions_text({name: version(name) for name in names})
    except PackageNotFoundError:
        return None
