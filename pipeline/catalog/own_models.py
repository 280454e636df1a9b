"""A user's own models: models.csv in the home, in the columns of catalog/models.csv.

Upgrades leave the file alone. Parameters are counted from the shape when it is read. What cannot be read is
named and left out; the catalogue's own models keep their names.
"""

import csv
import io
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator

from pipeline.catalog.model_shapes import Shape, counted
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
        params = counted(self)
        if not 0 < params.params_linear < params.params_total < 1 << 50:
            raise ValueError(f"it has {params.params_total} parameters")
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


def read_own_models(path: Path, taken: Collection[str]) -> OwnModels:
    """The models of a file, none where there is no file; ``taken`` are the names of the catalogue. Never
    raises for what the file contains."""
    found = OwnModels()
    try:
        rows = _rows(path)
    except FileNotFoundError:
        return found
    except (OSError, ValueError, csv.Error) as error:
        found.problems.append(f"{path} cannot be read, its models are left out: {error}")
        return found
    seen: set[str] = set()
    for number, row in rows:
        name = row.get("model") or ""
        if name in taken or name in seen:
            of = "a model of the catalogue, which is used" if name in taken else "another row, which is used"
            found.problems.append(f"{path}, line {number}: left out: '{name}' is the name of {of}")
            continue
        try:
            found.models.append(OwnModel.model_validate(row))
        except ValidationError as error:
            found.problems.append(f"{path}, line {number}: left out: {_reason(error)}")
        seen.add(name)
    return found


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    with path.open("rb") as file:
        body = file.read(MAX_FILE_BYTES + 1)
    if len(body) > MAX_FILE_BYTES:
        raise ValueError(f"it is larger than {MAX_FILE_BYTES} bytes")
    reader = csv.DictReader(
        io.StringIO(body.decode("utf-8-sig"), newline=""), restkey="_surplus", strict=True
    )
    columns = list(reader.fieldnames or [])
    if "model" not in columns:
        raise ValueError("it has no column model")
    if unknown := sorted(set(columns) - {*COLUMNS, "params_total", "params_linear", "params_active"}):
        raise ValueError(f"its column {unknown[0]!r} is none of catalog/models.csv")
    rows = []
    for row in reader:
        if "_surplus" in row:
            raise ValueError(f"line {reader.line_num} has more values than there are columns")
        rows.append((reader.line_num, {name: text for name, text in row.items() if text}))
    return rows


def _reason(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"].removeprefix("Value error, ")


def add_own_model(path: Path, model: OwnModel, taken: Collection[str]) -> None:
    """Append a model to the file.

    Raises OwnModelError where its name is taken or the file cannot be read.
    """
    if model.model in taken:
        raise OwnModelError(f"'{model.model}' is a model of the catalogue: give yours another --name")
    rows = _rows_to_edit(path)
    if any(row.get("model") == model.model for row in rows):
        raise OwnModelError(f"{path} has a model '{model.model}': remove it first, or give another --name")
    values = {name: value for name, value in model.model_dump().items() if value is not None}
    _write(path, [*rows, values])


def remove_own_model(path: Path, name: str) -> None:
    """Remove a model from the file. Raises OwnModelError where it is not there or the file cannot be read."""
    rows = _rows_to_edit(path)
    left = [row for row in rows if row.get("model") != name]
    if len(left) == len(rows):
        raise OwnModelError(f"{path} has no model '{name}'")
    _write(path, left)


def _rows_to_edit(path: Path) -> list[dict[str, Any]]:
    try:
        return [dict(row) for _, row in _rows(path)]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, csv.Error) as error:
        raise OwnModelError(f"{path} cannot be read ({error}): mend it, or move it away") from error


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    temporary.replace(path)
