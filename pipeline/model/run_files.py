"""A CSV file of runs as rows, each slip of the file named: its encoding, its header, an unclosed quote."""

import codecs
import csv
import io
from collections import Counter
from itertools import islice
from pathlib import Path

from pipeline.contracts.errors import GpufareError
from pipeline.parsing.printable import printable

SURPLUS = "_surplus"
"""The key of the values for which a row has no column."""
BROKEN = "_broken"
"""The key of what is wrong with a line that is no row of CSV."""
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class EstimateError(GpufareError):
    """A file that cannot be estimated at all; the message says what is wrong with it."""


def read_rows(path: Path, needed: set[str]) -> tuple[list[dict[str, str]], list[str]]:
    """The rows of a file and its columns, their names in lower case.

    A line with an unclosed quote is a row that says so under ``BROKEN``; the lines after it are read. Raises
    EstimateError where the file is not a CSV of runs with the columns ``needed``.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise EstimateError(f"{path} cannot be read as CSV: {error}") from error
    if content.startswith(_UTF_16) or b"\x00" in content.partition(b"\n")[0]:
        raise EstimateError(f"{path} is UTF-16: save it as CSV in UTF-8")
    # A byte that is not UTF-8 is its row's error, not the file's.
    text = content.decode("utf-8-sig", errors="replace")
    lines = list(io.StringIO(text, newline=""))
    columns, first = _header(path, lines, needed)
    return _rows(lines, first, columns), columns


def _header(path: Path, lines: list[str], needed: set[str]) -> tuple[list[str], int]:
    """The columns, and how many lines they take."""
    reader = csv.reader(lines, strict=True)
    try:
        columns = [name.strip().lower() for name in next((row for row in reader if row), [])]
    except csv.Error as error:
        raise EstimateError(f"{path} cannot be read as CSV: line 1: {error}") from error
    if not needed <= set(columns):
        wanted = " and ".join(name for name in ("model", "gpu") if name in needed)
        for separator, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            split = {name.strip().strip('"') for column in columns for name in column.split(separator)}
            if needed <= split:
                raise EstimateError(f"{path} separates its columns by {word}: save it with commas")
        raise EstimateError(f"{path} has no columns {wanted}: it is not a file of runs")
    twice = [name for name, count in Counter(columns).items() if name and count > 1]
    if twice:
        raise EstimateError(f"{path} has column '{printable(twice[0])}' more than once: keep one")
    return columns, reader.line_num


def _rows(lines: list[str], first: int, columns: list[str]) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    done = first
    while done < len(lines):
        reader = csv.reader(islice(lines, done, None), strict=True)
        start, read = done, 0
        try:
            for values in reader:
                read = reader.line_num
                if values:
                    rows.append(_row(values, columns))
            return rows
        except csv.Error as error:
            start += read
            rows.append(_broken(lines[start], start + 1, str(error), columns))
            done = start + 1
    return rows


def _row(values: list[str], columns: list[str]) -> dict[str, str]:
    row = dict.fromkeys(columns, "") | dict(zip(columns, values, strict=False))
    surplus = values[len(columns) :]
    return row | ({SURPLUS: str(len(surplus))} if surplus else {})


def _broken(line: str, number: int, error: str, columns: list[str]) -> dict[str, str]:
    """A row of what can be read of a line up to its slip, which it names."""
    try:
        values = next(csv.reader([line.partition('"')[0]]), [])
    except csv.Error:
        values = []
    reason = "a quote is opened and not closed" if line.count('"') % 2 else f"not CSV ({error})"
    return _row(values, columns) | {BROKEN: f"line {number}: {reason}"}
