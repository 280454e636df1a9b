"""``gpufare normalize``: adds to a table of labels the GPU of each."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from pipeline.contracts.errors import GpufareError
from pipeline.contracts.listing import LABEL_KINDS, LabelKind
from pipeline.gpus import Identity, identify
from pipeline.home.csv_rows import CsvRow, read_csv
from pipeline.parsing.printable import printable

LABEL = "raw_label"
OPTIONAL = ("provider", "kind", "context", "gpu_count")

ANSWER_COLUMNS = (
    "status",
    "gpu_id",
    "vendor",
    "model",
    "form_factor",
    "memory_gb",
    "gpu_count",
    "rule",
    "confidence",
    "candidates",
)


class LabelFileError(GpufareError):
    """The file of labels is malformed; the message names the line and what was expected."""


def _kind(row: Mapping[str, str], line: int) -> LabelKind:
    given = (row.get("kind") or "gpu_name").strip()
    for kind in LABEL_KINDS:
        if given == kind:
            return kind
    raise LabelFileError(f"line {line}: kind is {given!r}; write gpu_name or instance_type")


def _count(row: Mapping[str, str], line: int) -> float | None:
    given = (row.get("gpu_count") or "").strip()
    try:
        return float(given) if given else None
    except ValueError as error:
        raise LabelFileError(f"line {line}: gpu_count is {given!r}, which is not a number") from error


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _answer(identity: Identity) -> dict[str, str | None]:
    return {name: getattr(identity, name) for name in ANSWER_COLUMNS} | {
        "memory_gb": _shown(identity.memory_gb),
        "gpu_count": _shown(identity.gpu_count),
        "candidates": " ".join(identity.candidates) if identity.status == "ambiguous" else "",
    }


def _answers(rows: Sequence[CsvRow], path: Path) -> Iterator[dict[str, str | None]]:
    for row in rows:
        given = row.values
        if row.problem:
            raise LabelFileError(f"{path}, line {row.line}: {row.problem}")
        try:
            identity = identify(
                given[LABEL],
                provider=given.get("provider") or "",
                kind=_kind(given, row.line),
                context=given.get("context") or "",
                gpu_count=_count(given, row.line),
            )
        except LabelFileError as error:
            raise LabelFileError(f"{path}, {error}") from error
        yield {**given, **_answer(identity)}


@dataclass(frozen=True, slots=True)
class Normalized:
    """A table of labels with its answers: the columns, the rows, and what separates the cells of the file."""

    columns: list[str]
    rows: list[dict[str, str | None]]
    separator: str


def normalized(path: Path) -> Normalized:
    """The rows of ``path`` with the answer columns, in their order.

    The column ``raw_label`` is required; ``provider``, ``kind``, ``context`` and ``gpu_count`` are optional.
    An input column with the name of an answer column is overwritten. Raises LabelFileError and CsvError.
    """
    table = read_csv(path)
    if LABEL not in table.columns:
        raise LabelFileError(
            f"{path}: no column is called {LABEL}; its columns are "
            f"{printable(', '.join(table.columns)) or 'none'}; {', '.join(OPTIONAL)} are read if given"
        )
    answers = [name for name in ANSWER_COLUMNS if name not in table.columns]
    return Normalized([*table.columns, *answers], list(_answers(table.rows, path)), table.separator)


def normalize_csv(path: Path, out: TextIO) -> int:
    """Write the rows of ``path`` with the answer columns to ``out``, separated as the file is.

    Returns the number of rows. Raises LabelFileError and CsvError.
    """
    found = normalized(path)
    writer = csv.DictWriter(out, found.columns, lineterminator="\n", delimiter=found.separator)
    writer.writeheader()
    writer.writerows(found.rows)
    return len(found.rows)
