"""Traces kept on disk: no step is traced again until its recipe, a package or the tracer changes.

catalog/traces.csv (grid.py) and catalog/traced_runs.csv (traced_runs.py) are kept in the same way.
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
"""Fields of a recipe that name it and change nothing in its trace."""


REVISIONS: dict[str, Callable[[Recipe], bool]] = {}
"""Changes of the tracer's own code, each with the recipes whose traces it changed: part of their digests, so
that only those recipes are traced again.

A changed kernel rule gets an entry if it changes bytes: ``gpufare trace-grid --check`` shows whether it does.
"""


def digest_of(recipe: Recipe, shape: TraceShape | None = None) -> str:
    """Return a hash of what decides a trace: switches, shape and the tracer's revisions.

    A new field changes nothing while at its default. Without a shape, the digest covers traces of all shapes.
    """
    traced: list[Any] = [recipe.model_dump(mode="json", exclude_defaults=True, exclude=set(NOT_TRACED))]
    if shape is not None:
        traced.append(shape.model_dump(mode="json", exclude_defaults=True))
    traced += [name for name, applies in REVISIONS.items() if applies(recipe)]
    return hashlib.sha256(json.dumps(traced, sort_keys=True).encode()).hexdigest()[:16]


class Kept:
    """Traces by digest: those of a table, and those of the journal beside it.

    A row has the values of ``to_row``, the ``versions`` of its packages, and a failed trace's ``problem``.
    """

    def __init__(self, journal: Path, rows: Mapping[str, Row], to_row: ToRow) -> None:
        self.rows = dict(rows)
        self._journal, self._to_row = journal, to_row
        for line in journal.read_text(encoding="utf-8").splitlines() if journal.exists() else ():
            try:
                digest, row = json.loads(line)
            except ValueError:
                continue  # the unfinished last line of a killed process
            self.rows[digest] = row

    def has(self, digest: str) -> bool:
        """Return True if a trace is known and still valid; a failed one is repeated."""
        row = self.rows.get(digest)
        if row is None or row["problem"]:
            return False
        return installed_versions(row["versions"]) == row["versions"]

    def trace(self, wanted: Iterable[Job], jobs: int, show: Callable[[str], None]) -> None:
        """Make the missing traces in ``jobs`` processes, and keep each on disk as it arrives."""
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
        """Delete the journal: the table has its rows."""
        self._journal.unlink(missing_ok=True)


def traced_row(to_row: ToRow, recipe: Recipe, shape: TraceShape) -> Row:
    """Trace a step; if that fails, the row's ``problem`` says why."""
    from gpufare_tracer.trace import trace

    try:
        found = trace(recipe, shape)
        values = {name: str(value) for name, value in to_row(found).items()}
    except Exception as error:  # any framework's own error
        return {"problem": reason_of(error), "versions": ""}
    return values | {"problem": "", "versions": versions_text(found.versions)}


def read_table(path: Path, header: Sequence[str] | None = None) -> list[Row]:
    """Return the rows of a CSV; none if there is no file, or its columns are not ``header``."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        return [] if header is not None and reader.fieldnames != list(header) else list(reader)


def write_table(path: Path, header: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write the columns of ``header`` as a CSV, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, header, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    part.replace(path)


def reason_of(error: Exception) -> str:
    """Return the first line of an error, without paths of this machine."""
    line = (str(error).strip().splitlines() or [""])[0]
    line = re.sub(r"(?<![\w.:/])(/[\w.+-]+)+/", "", line)
    text = "".join(character for character in line if character.isprintable())
    return f"{type(error).__name__}: {text}"[:REASON_CHARACTERS]


def versions_text(versions: Mapping[str, str]) -> str:
    """Return ``package version`` of each package, sorted, without the build's name (+cpu)."""
    return ", ".join(f"{name} {number.split('+')[0]}" for name, number in sorted(versions.items()))


def installed_versions(text: str) -> str | None:
    """Return the installed versions of the packages in a ``versions_text``; None if one is not installed."""
    names = [each.split(" ")[0] for each in text.split(", ")]
    try:
        return versions_text({name: version(name) for name in names})
    except PackageNotFoundError:
        return None
