"""``gpufare normalize``: adds to a table of labels the GPU of each."""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from pipeline.contracts.errors import GpufareError
from pipeline.contracts.listing import LABEL_KINDS, LabelKind
from pipeline.offers.gpu_matching import Identity, identify

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


def _answers(rows: Iterator[dict[str, str]], path: Path) -> Iterator[dict[str, str | None]]:
    for line, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise LabelFileError(f"{path}, line {line}: the row does not have as many cells as the header")
        try:
            identity = identify(
                row["raw_label"],
                provider=row.get("provider") or "",
                kind=_kind(row, line),
                context=row.get("context") or "",
                gpu_count=_count(row, line),
            )
        except LabelFileError as error:
            raise LabelFileError(f"{path}, {error}") from error
        yield {**row, **_answer(identity)}


def normalize_csv(path: Path, out: TextIO) -> int:
    """Write the rows of ``path`` with the answer columns to ``out``, in their order, and return how many.

    The column ``raw_label`` is required; ``provider``, ``kind``, ``context`` and ``gpu_count`` are optional.
    An input column with the name of an answer column is overwritten. Raises LabelFileError.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns = list(reader.fieldnames or [])
            if "raw_label" not in columns:
                raise LabelFileError(f"{path}: no column is called raw_label; the columns are {columns}")
            answers = [name for name in ANSWER_COLUMNS if name not in columns]
            writer = csv.DictWriter(out, [*columns, *answers], lineterminator="\n")
            writer.writeheader()
            count = 0
            for row in _answers(reader, path):
                writer.writerow(row)
                count += 1
            return count
    except FileNotFoundError as error:
        raise LabelFileError(f"{path} does not exist") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise LabelFileError(f"{path} is not a CSV file in UTF-8: {error}") from error
