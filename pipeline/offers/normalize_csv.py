"""``gpufare normalize``: adds the GPU of each label to a table of labels."""

import csv
from pathlib import Path
from typing import Annotated, TextIO

from pydantic import BaseModel, BeforeValidator

from pipeline.catalog.tables import checked
from pipeline.contracts.listing import LabelKind
from pipeline.gpus import Identity, identify
from pipeline.home.csv_rows import CsvError, read_csv
from pipeline.parsing.printable import printable

LABEL = "raw_label"

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


class _Label(BaseModel):
    """A row of the table of labels, with its optional columns."""

    raw_label: str = ""
    provider: str = ""
    kind: Annotated[LabelKind, BeforeValidator(str.strip)] = "gpu_name"
    context: str = ""
    gpu_count: float | None = None


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _answer(identity: Identity) -> dict[str, str | None]:
    return {name: getattr(identity, name) for name in ANSWER_COLUMNS} | {
        "memory_gb": _shown(identity.memory_gb),
        "gpu_count": _shown(identity.gpu_count),
        "candidates": " ".join(identity.candidates) if identity.status == "ambiguous" else "",
    }


def normalized(path: Path) -> tuple[list[str], list[dict[str, str | None]], str]:
    """Return the columns of ``path`` and of the answer, the rows with all these columns, and the separator.

    The ``raw_label`` column is required; ``provider``, ``kind``, ``context`` and ``gpu_count`` are optional.
    An input column with the same name as an answer column is overwritten. Raises CsvError.
    """
    table = read_csv(path)
    if LABEL not in table.columns:
        raise CsvError(
            f"{path}: no column is called {LABEL}; its columns are "
            f"{printable(', '.join(table.columns)) or 'none'}; provider, kind, context and gpu_count are "
            "read if given"
        )
    rows = []
    for row, label, problem in checked(table.rows, _Label):
        if label is None:
            raise CsvError(f"{path}, line {row.line}: {problem}")
        rows.append({**row.values, **_answer(identify(**label.model_dump()))})
    answers = [name for name in ANSWER_COLUMNS if name not in table.columns]
    return [*table.columns, *answers], rows, table.separator


def normalize_csv(path: Path, out: TextIO) -> None:
    """Write the rows of ``path``, extended by the answer columns, to ``out``, using the file's separator.
    Raises CsvError."""
    columns, rows, separator = normalized(path)
    writer = csv.DictWriter(out, columns, lineterminator="\n", delimiter=separator)
    writer.writeheader()
    writer.writerows(rows)
