"""CSV files that people write, read row by row: each problem is reported with its line, and the other rows
remain valid."""

import csv
import io
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pipeline.contracts.errors import GpufareError
from pipeline.home.disk import replacing

MAX_FILE_BYTES = 50_000_000

SEPARATORS = (",", ";", "\t", "|")
"""Possible separators; a file uses the one that divides its header into the most columns."""

_REPLACED = "\ufffd"
"""The character that stands for a byte that is not valid UTF-8."""


class CsvError(GpufareError):
    """A file cannot be read as CSV; the message gives the path, the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class CsvRow:
    """A row: the number of its first line, its values by column, its text with the line break, and its
    problem ('' if it has none). A row with a problem keeps the values that can be read."""

    line: int
    values: dict[str, str]
    text: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A file's columns, in order and without spaces around their names; its separator; the text of its
    header; and its rows, without blank lines."""

    columns: list[str]
    separator: str
    heading: str
    rows: list[CsvRow]


def read_csv(path: Path, *, max_bytes: int = MAX_FILE_BYTES, lower_case: bool = False) -> CsvTable:
    """Read a CSV file in UTF-8; if ``lower_case`` is set, convert its column names to lower case.

    A row has a problem if a quote is not closed, a byte is not valid UTF-8, or there are more or fewer values
    than columns. Raises CsvError if the file cannot be read, is larger than ``max_bytes``, is in another
    encoding, or names a column twice.
    """
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except OSError as error:
        raise CsvError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(content) > max_bytes:
        raise CsvError(f"{path} is larger than {max_bytes / 1e6:g} MB: divide it")
    return parse_csv(content, str(path), lower_case=lower_case)


def parse_csv(content: bytes, name: str, *, lower_case: bool = False) -> CsvTable:
    """Read the bytes of a CSV file as ``read_csv`` does; errors call the file ``name``. Raises CsvError."""
    lines = list(io.StringIO(_text(content, name), newline=""))
    separator = _separator(lines)
    reader = csv.reader(lines, delimiter=separator, strict=True)
    try:
        columns = [column.strip() for column in next((row for row in reader if row), [])]
    except csv.Error as error:
        raise CsvError(f"{name} cannot be read as CSV: line 1: {_reason(lines[0], error)}") from error
    columns = [column.lower() for column in columns] if lower_case else columns
    twice = [column for column, count in Counter(columns).items() if column and count > 1]
    if twice:
        raise CsvError(f"{name} has the column {twice[0]!a} more than once: keep one")
    heading = "".join(lines[: reader.line_num])
    return CsvTable(columns, separator, heading, _rows(lines, reader.line_num, columns, separator))


def append_row(path: Path, row: Mapping[str, Any], columns: Sequence[str]) -> None:
    """Append a row with the file's columns and separator, without changing other lines; create a missing file
    with ``columns``. Raises CsvError, OSError and UnwritableError."""
    kept, separator = row_text(columns).encode(), ","
    if path.exists():
        table, kept = read_csv(path), path.read_bytes()
        columns, separator = table.columns, table.separator
        if not columns:
            raise CsvError(f"{path} has no heading: delete it, or give it its columns")
    line = row_text([row.get(name, "") for name in columns], separator).encode()
    with replacing(path) as temporary:
        temporary.write_bytes((kept if kept.endswith(b"\n") else kept + b"\n") + line)


def row_text(values: Iterable[Any], separator: str = ",") -> str:
    """Return one line of CSV; within a value, each run of whitespace or line breaks becomes one space."""
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator="\n").writerow(
        [" ".join(str(value).split()) for value in values]
    )
    return text.getvalue()


def _text(content: bytes, name: str) -> str:
    if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) or b"\x00" in content.partition(b"\n")[0]:
        raise CsvError(f"{name} is UTF-16: save it as CSV in UTF-8")
    return content.decode("utf-8-sig", errors="replace")


def _separator(lines: Sequence[str]) -> str:
    first = next((line for line in lines if line.strip()), "")
    return max(SEPARATORS, key=lambda each: len(next(csv.reader([first], delimiter=each), [])))


def _rows(lines: list[str], first: int, columns: list[str], separator: str) -> list[CsvRow]:
    rows: list[CsvRow] = []
    done = first
    while done < len(lines):
        reader = csv.reader(islice(lines, done, None), delimiter=separator, strict=True)
        read = 0
        try:
            for values in reader:
                text = "".join(lines[done + read : done + reader.line_num])
                if values:
                    rows.append(_row(done + read + 1, values, text, columns))
                read = reader.line_num
            return rows
        except csv.Error as error:
            line = lines[done + read]
            values = line.partition('"')[0].split(separator)
            known = dict.fromkeys(columns, "") | dict(zip(columns, values, strict=False))
            rows.append(CsvRow(done + read + 1, known, line, _reason(line, error)))
            done += read + 1
    return rows


def _row(number: int, values: list[str], text: str, columns: list[str]) -> CsvRow:
    problem = ""
    if len(values) != len(columns):
        problem = f"it has {len(values)} values for {len(columns)} columns"
    elif _REPLACED in text:
        problem = "it has bytes that are not UTF-8"
    row = dict.fromkeys(columns, "") | dict(zip(columns, values, strict=False))
    return CsvRow(number, row, text, problem)


def _reason(line: str, error: csv.Error) -> str:
    return "a quote is not closed" if line.count('"') % 2 else f"not CSV ({error})"
