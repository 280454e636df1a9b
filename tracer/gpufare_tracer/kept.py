"""Files that traces keep on disk: the digest of what was traced, a journal of finished traces, and tables.

catalog/traces.csv (grid.py) and catalog/traced_runs.csv (traced_runs.py) are kept alike.
"""

import csv
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import TraceShape

Row = dict[str, str]
"""One row of a table, as its file has it."""
REASON_CHARACTERS = 300
NOT_TRACED = frozenset({"name", "title", "source", "emulates"})
"""Fields of a recipe that name it and change nothing in its trace."""


class Revision(NamedTuple):
    """A change of the tracer's own code that changed traces, and whose."""

    name: str
    applies: Callable[[Recipe], bool]


REVISIONS: tuple[Revision, ...] = ()
"""Part of the digests of the recipes that they apply to, which so are traced again; others stay as they are.

A changed kernel rule gets an entry where it changes bytes: ``gpufare trace-grid --check`` finds that it does.
"""


def digest_of(recipe: Recipe, shape: TraceShape | None = None) -> str:
    """Names what decides a trace: switches, shape and the tracer's revisions.

    A new field changes nothing while at its default. Without a shape, the digest is of all shapes' traces.
    """
    traced: list[Any] = [recipe.model_dump(mode="json", exclude_defaults=True, exclude=set(NOT_TRACED))]
    if shape is not None:
        traced.append(shape.model_dump(mode="json", exclude_defaults=True))
    traced += [revision.name for revision in REVISIONS if revision.applies(recipe)]
    return hashlib.sha256(json.dumps(traced, sort_keys=True).encode()).hexdigest()[:16]


class Journal:
    """Finished traces since their table was written, one JSON line each: an interrupted run loses one."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> Iterator[Any]:
        """Return the added entries; an unfinished last line of a killed process is skipped."""
        if not self.path.exists():
            return
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue

    def add(self, line: Any) -> None:
        """Keep a trace on disk before the next one begins."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        torn = self.path.exists() and not self.path.read_bytes().endswith(b"\n")
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" * torn + json.dumps(line) + "\n")

    def end(self) -> None:
        """Forget all lines: their table has them."""
        self.path.unlink(missing_ok=True)


def read_table(path: Path, header: Sequence[str] | None = None) -> list[Row]:
    """Rows of a CSV; none where there is no file, or its columns are not ``header``."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        return [] if header is not None and reader.fieldnames != list(header) else list(reader)


def write_table(path: Path, header: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a CSV, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, header, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    part.replace(path)


def reason_of(error: Exception) -> str:
    """The first line of an error, without paths of this machine."""
    line = (str(error).strip().splitlines() or [""])[0]
    line = re.sub(r"(?<![\w.:/])(/[\w.+-]+)+/", "", line)
    text = "".join(character for character in line if character.isprintable())
    return f"{type(error).__name__}: {text}"[:REASON_CHARACTERS]


def versions_text(versions: Mapping[str, str]) -> str:
    """``package version`` of each package, sorted; a build's name (+cpu) is no part of the version."""
    return ", ".join(f"{name} {number.split('+')[0]}" for name, number in sorted(versions.items()))


def installed_versions(text: str) -> str | None:
    """The same packages as they are installed here; None where one is not."""
    names = [each.split(" ")[0] for each in text.split(", ")]
    try:
        return versions_text({name: version(name) for name in names})
    except PackageNotFoundError:
        return None
