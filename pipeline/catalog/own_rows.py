"""Rows of the user's own beside the catalogue's: CSV files at the top of the home.

Upgrades leave them alone. One line is one row, so a damaged line damages no other: it is named, left out, and
kept in the file. The catalogue's own rows keep their names.
"""

import csv
import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, Field, ValidationError

from pipeline.contracts.errors import GpufareError

MAX_FILE_BYTES = 1 << 20

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$")]

Row = TypeVar("Row", bound=BaseModel)


class OwnRowError(GpufareError):
    """A row that cannot be added or removed: says why and what to do."""


@dataclass(slots=True)
class OwnRows(Generic[Row]):
    """The rows that could be read, and what could not be, one line each."""

    rows: list[Row] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of the file under its heading, and why it cannot be read; no cells where quotes are open."""

    number: int
    raw: bytes
    cells: dict[str, str]
    damage: str = ""


@dataclass(frozen=True, slots=True)
class OwnFile(Generic[Row]):
    """A kind of file: what its rows are called and are, the column with their names, and all columns. Columns
    that the catalogue has besides (``ignored``) may be there, so that a row of it can be copied."""

    noun: str
    kind: type[Row]
    key: str
    columns: tuple[str, ...]
    like: str
    ignored: frozenset[str] = frozenset()

    def read(self, path: Path, taken: Collection[str]) -> OwnRows[Row]:
        """The rows of a file, none where there is no file; ``taken`` are the names of the catalogue. Never
        raises for what the file contains."""
        found: OwnRows[Row] = OwnRows()
        try:
            _, lines = self._lines(path)
        except FileNotFoundError:
            return found
        except (OSError, ValueError) as error:
            found.problems.append(f"{path} cannot be read, its {self.noun}s are left out: {error}")
            return found
        names: set[str] = set()
        for line in lines:
            problem = line.damage
            try:
                if line.cells and not problem:
                    problem = self._taken(line.cells.get(self.key, ""), taken, names)
                    if not problem:
                        found.rows.append(self.kind.model_validate(line.cells))
                        names.add(line.cells[self.key])
            except ValidationError as error:
                problem = in_one_line(error)
            if problem:
                found.problems.append(f"{path}, line {line.number}: left out: {problem}")
        return found

    def _taken(self, name: str, taken: Collection[str], names: Collection[str]) -> str:
        if name in taken:
            return f"'{name}' is the name of a {self.noun} of the catalogue, which is used"
        return f"'{name}' is the name of another row, which is used" if name in names else ""

    def add(self, path: Path, row: Row, taken: Collection[str]) -> None:
        """Append a row to the file, whose other lines are kept as they are, damaged or not.

        Raises OwnRowError where its name is taken or the file's heading cannot be read.
        """
        values = {name: value for name, value in row.model_dump().items() if value is not None}
        name = values[self.key]
        if name in taken:
            raise OwnRowError(f"'{name}' is a {self.noun} of the catalogue: give yours another name")
        columns, lines = self._lines_to_edit(path)
        if any(line.cells.get(self.key) == name for line in lines):
            raise OwnRowError(f"{path} has a {self.noun} '{name}': remove it first, or give another name")
        missing = [column for column in self.columns if column not in columns]
        # Damaged lines get as many values more as the heading: they stay as damaged as they were.
        kept = [_longer(line.raw, len(missing)) for line in lines if line.raw.strip()]
        new = _written([values.get(column, "") for column in (*columns, *missing)])
        _write(path, [*columns, *missing], [*kept, new])

    def remove(self, path: Path, name: str) -> None:
        """Remove a row from the file, whose other lines are kept as they are.

        Raises OwnRowError where it is not there or the file's heading cannot be read.
        """
        columns, lines = self._lines_to_edit(path)
        left = [line.raw for line in lines if line.cells.get(self.key) != name]
        if len(left) == len(lines):
            raise OwnRowError(f"{path} has no {self.noun} {name!a}")
        _write(path, columns, [raw for raw in left if raw.strip()])

    def _lines_to_edit(self, path: Path) -> tuple[list[str], list[_Line]]:
        try:
            return self._lines(path)
        except FileNotFoundError:
            return list(self.columns), []
        except (OSError, ValueError) as error:
            raise OwnRowError(f"{path} cannot be read ({error}): mend it, or move it away") from error

    def _lines(self, path: Path) -> tuple[list[str], list[_Line]]:
        """The columns of the file and the lines under them. Raises OSError, and ValueError where the heading
        cannot be read."""
        with path.open("rb") as file:
            body = file.read(MAX_FILE_BYTES + 1)
        if len(body) > MAX_FILE_BYTES:
            raise ValueError(f"it is larger than {MAX_FILE_BYTES} bytes")
        heading, *lines = body.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        columns = _cells(heading) or []
        if self.key not in columns:
            raise ValueError(f"it has no column {self.key}")
        if unknown := sorted(set(columns) - {*self.columns, *self.ignored}):
            raise ValueError(f"its column {unknown[0]!r} is none of {self.like}")
        if len(set(columns)) < len(columns):
            raise ValueError("it has two columns of one name")
        return columns, [_line(number, raw, columns) for number, raw in enumerate(lines, 2)]


def _line(number: int, raw: bytes, columns: Sequence[str]) -> _Line:
    values = _cells(raw)
    if values is None:
        return _Line(number, raw, {}, "its quotes are not closed")
    cells = {name: value for name, value in zip(columns, values, strict=False) if value}
    if not _is_utf_8(raw):
        return _Line(number, raw, cells, "it has bytes that are not UTF-8")
    if cells and len(values) != len(columns):
        return _Line(number, raw, cells, f"it has {len(values)} values for {len(columns)} columns")
    return _Line(number, raw, cells)


def _cells(raw: bytes) -> list[str] | None:
    """The values of a line, None where it is not one of CSV."""
    try:
        return next(csv.reader([raw.decode("utf-8", "replace").rstrip("\r")], strict=True), [])
    except csv.Error:
        return None


def _is_utf_8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def in_one_line(error: ValidationError) -> str:
    """What was wrong with a row first, in plain words."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "string_pattern_mismatch":
        return (
            f"{where}: {first['input']!a:.100} is not a name: up to 80 lower-case letters, "
            "digits, dots, dashes and underscores, a letter or digit first"
        )
    return f"{where}: {first['msg']}" if where else first["msg"].removeprefix("Value error, ")


def _longer(raw: bytes, values: int) -> bytes:
    return raw.rstrip(b"\r") + b"," * values


def _written(values: Sequence[Any]) -> bytes:
    """One line; a line break in a text is a space there."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow([" ".join(str(value).split()) for value in values])
    return text.getvalue().encode()


def _write(path: Path, columns: Sequence[str], lines: Sequence[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(b"".join(line + b"\n" for line in (_written(columns), *lines)))
    temporary.replace(path)
