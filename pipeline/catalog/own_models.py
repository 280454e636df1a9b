"""A user's own models: models.csv in the home, in the columns of catalog/models.csv.

Upgrades leave the file alone. Parameters are counted from the shape when it is read. One line is one model,
so a damaged line damages no other: it is named, left out, and kept in the file. The catalogue's own models
keep their names.
"""

import csv
import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator

from pipeline.catalog.model_shapes import Shape, check_heads, counted
from pipeline.contracts.errors import GpufareError

MAX_FILE_BYTES = 1 << 20
_TEXT = Field(default=None, max_length=300)


class OwnModelError(GpufareError):
    """A user's own model that cannot be added or removed: says why and what to do."""


class OwnModel(Shape):
    """A row of a user's own models."""

    model: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$")]
    title: str | None = _TEXT
    licence: str | None = _TEXT
    hf_id: str | None = _TEXT
    source: str | None = _TEXT

    @model_validator(mode="after")
    def _is_a_shape(self) -> "OwnModel":
        for name in ("layers", "hidden", "intermediate", "heads", "kv_heads", "head_dim", "vocab", "experts"):
            if not 1 <= getattr(self, name) <= 1 << 24:
                raise ValueError(f"{name} is {getattr(self, name)}, not from 1 to {1 << 24}")
        for name in ("gated_mlp", "tied_embeddings"):
            if getattr(self, name) not in (0, 1):
                raise ValueError(f"{name} is {getattr(self, name)}, neither 0 nor 1")
        if not 1 <= self.experts_active <= self.experts:
            raise ValueError(f"experts_active is {self.experts_active}, not from 1 to {self.experts}")
        for name in ("full_attention_layers", "linear_attention_layers", "dense_layers"):
            if not 0 <= (getattr(self, name) or 0) <= self.layers:
                raise ValueError(f"{name} is {getattr(self, name)}, not from 0 to {self.layers}")
        check_heads(self)
        params = counted(self)
        if not 0 < params.params_linear < params.params_total < 1 << 50:
            raise ValueError(f"{params.params_total} parameters are not those of a model")
        return self

    def row(self) -> dict[str, Any]:
        """The row of main.models, its parameters counted."""
        return {
            **self.model_dump(),
            **counted(self).model_dump(),
            "title": self.title or self.model,
            "source": self.source or "your own models",
        }


@dataclass(slots=True)
class OwnModels:
    """A user's models that could be read, and what could not be, one line each."""

    models: list[OwnModel] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


COLUMNS = ("model", "title", *Shape.model_fields, "licence", "hf_id", "source")


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of the file under its heading, and why it cannot be read; no cells where quotes are open."""

    number: int
    raw: bytes
    cells: dict[str, str]
    damage: str = ""


def read_own_models(path: Path, taken: Collection[str]) -> OwnModels:
    """The models of a file, none where there is no file; ``taken`` are the names of the catalogue. Never
    raises for what the file contains."""
    found = OwnModels()
    try:
        _, lines = _lines(path)
    except FileNotFoundError:
        return found
    except (OSError, ValueError) as error:
        found.problems.append(f"{path} cannot be read, its models are left out: {error}")
        return found
    for line in lines:
        problem = line.damage
        try:
            if line.cells and not problem:
                problem = _add(line.cells, found, taken)
        except ValidationError as error:
            problem = in_one_line(error)
        if problem:
            found.problems.append(f"{path}, line {line.number}: left out: {problem}")
    return found


def _add(cells: Mapping[str, str], found: OwnModels, taken: Collection[str]) -> str:
    """Add the model of a line to those found. Returns why not, else nothing; raises ValidationError."""
    name = cells.get("model") or ""
    if name in taken:
        return f"'{name}' is the name of a model of the catalogue, which is used"
    if any(model.model == name for model in found.models):
        return f"'{name}' is the name of another row, which is used"
    found.models.append(OwnModel.model_validate(cells))
    return ""


def _lines(path: Path) -> tuple[list[str], list[_Line]]:
    """The columns of the file and the lines under them. Raises OSError, and ValueError where the heading
    cannot be read."""
    with path.open("rb") as file:
        body = file.read(MAX_FILE_BYTES + 1)
    if len(body) > MAX_FILE_BYTES:
        raise ValueError(f"it is larger than {MAX_FILE_BYTES} bytes")
    heading, *lines = body.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    columns = _cells(heading) or []
    if "model" not in columns:
        raise ValueError("it has no column model")
    if unknown := sorted(set(columns) - {*COLUMNS, "params_total", "params_linear", "params_active"}):
        raise ValueError(f"its column {unknown[0]!r} is none of catalog/models.csv")
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
    """What was wrong with a model first, in plain words."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "string_pattern_mismatch":
        return (
            f"{where}: {first['input']!a:.100} is not a name: up to 80 lower-case letters, "
            "digits, dots, dashes and underscores, a letter or digit first"
        )
    return f"{where}: {first['msg']}" if where else first["msg"].removeprefix("Value error, ")


def add_own_model(path: Path, model: OwnModel, taken: Collection[str]) -> None:
    """Append a model to the file, whose other lines are kept as they are, damaged or not.

    Raises OwnModelError where its name is taken or the file's heading cannot be read.
    """
    if model.model in taken:
        raise OwnModelError(f"'{model.model}' is a model of the catalogue: give yours another --name")
    columns, lines = _lines_to_edit(path)
    if any(line.cells.get("model") == model.model for line in lines):
        raise OwnModelError(f"{path} has a model '{model.model}': remove it first, or give another --name")
    values = {name: value for name, value in model.model_dump().items() if value is not None}
    missing = [name for name in COLUMNS if name not in columns]
    # Damaged lines get as many values more as the heading: they stay as damaged as they were.
    kept = [_longer(line.raw, len(missing)) for line in lines if line.raw.strip()]
    _write(path, [*columns, *missing], [*kept, _written([values.get(n, "") for n in (*columns, *missing)])])


def remove_own_model(path: Path, name: str) -> None:
    """Remove a model from the file, whose other lines are kept as they are.

    Raises OwnModelError where it is not there or the file's heading cannot be read.
    """
    columns, lines = _lines_to_edit(path)
    left = [line.raw for line in lines if line.cells.get("model") != name]
    if len(left) == len(lines):
        raise OwnModelError(f"{path} has no model {name!a}")
    _write(path, columns, [raw for raw in left if raw.strip()])


def _lines_to_edit(path: Path) -> tuple[list[str], list[_Line]]:
    try:
        return _lines(path)
    except FileNotFoundError:
        return list(COLUMNS), []
    except (OSError, ValueError) as error:
        raise OwnModelError(f"{path} cannot be read ({error}): mend it, or move it away") from error


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
