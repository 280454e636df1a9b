"""The tables beside these tests: each row has what is asked, and every part of the answer."""

import csv
from collections.abc import Callable, Mapping
from pathlib import Path

from pipeline.gpus import Identity, identify

Row = Mapping[str, str]


def rows(name: str) -> list[Row]:
    """Return the rows of a table in this folder."""
    with Path(__file__).with_name(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def identified(row: Row, label: str) -> Identity:
    """Return what the matcher says of a label and the columns beside it."""
    return identify(
        label,
        provider=row["provider"],
        kind="instance_type" if row["kind"] == "instance_type" else "gpu_name",
        context=row["context"],
        gpu_count=float(row["gpu_count"]) if row["gpu_count"] else None,
    )


def shown(value: object) -> str:
    """Return a value as the tables have it; what is not stated is empty."""
    if isinstance(value, frozenset):
        return shown(tuple(sorted(value)))
    if isinstance(value, tuple):
        return "|".join(map(shown, value))
    if isinstance(value, float | int) and not isinstance(value, bool):
        return f"{value:.7g}"
    return str(value) if value else ""


def mistakes(name: str, answer: Callable[[Row], Mapping[str, object]]) -> list[str]:
    """Return the rows of a table whose answer is not the row's, with the parts that differ."""
    found = []
    for row in rows(name):
        wrong = {
            column: text for column, value in answer(row).items() if (text := shown(value)) != row[column]
        }
        if wrong:
            found.append(f"{' '.join(filter(None, row.values()))}: {wrong}")
    return found
