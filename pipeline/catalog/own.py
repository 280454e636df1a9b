"""A user's own GPUs, models and workloads: gpus.csv, models.csv and workloads.csv in the home, with the same
columns as the catalogue's files.

Upgrades do not change these files. An unusable row is reported with its file, line and column, and skipped.
If the catalogue contains a row with the same name, now or after an upgrade, the catalogue's row is used.
"""

import difflib
import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipeline.catalog.model_shapes import Shape, counted
from pipeline.catalog.own_corrections import read_kept
from pipeline.catalog.tables import catalog_rows, checked
from pipeline.catalog.workloads import Workload, workloads
from pipeline.contracts.errors import GpufareError
from pipeline.home.csv_rows import CsvError, CsvTable, append_row, read_csv
from pipeline.home.paths import Home

MAX_FILE_BYTES = 1 << 20

USABLE_SHARE = 0.975
"""Assumed usable share of the nominal memory, as in catalog/gpus.csv, if a row does not state the share."""

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$")]
_Text = Annotated[str, Field(max_length=300)]
_Amount = Annotated[float, Field(gt=0, le=1e7, allow_inf_nan=False)]


class OwnRowError(GpufareError):
    """A row cannot be added; the message says why and what to do."""


class OwnGpu(BaseModel):
    """A row of gpus.csv: the specifications of one GPU, with dense peaks in 10^12 operations per second, and
    the ``labels`` that offers use for this GPU, separated by |."""

    model_config = ConfigDict(frozen=True)
    noun: ClassVar = "GPU"
    key: ClassVar = "gpu_id"
    ignored: ClassVar = {"has_full_specs", "named_without_memory", "derived_from", "confidence"}

    gpu_id: Name
    vendor: Literal["nvidia", "amd", "intel"]
    architecture: _Text
    model: _Text
    form_factor: _Text | None = None
    memory_gb: _Amount
    memory_type: _Text | None = None
    bandwidth_gb_s: _Amount
    cache_mib: _Amount | None = None
    bf16_dense_tflops: _Amount | None = None
    fp16_dense_tflops: _Amount
    fp8_dense_tflops: _Amount | None = None
    fp4_dense_tflops: _Amount | None = None
    fp32_tflops: _Amount
    gemm_bf16_measured_tflops: _Amount | None = None
    gemm_fp16_measured_tflops: _Amount | None = None
    tdp_w: _Amount
    year: Annotated[int, Field(ge=2010, le=2100)]
    nvlink_gb_s: _Amount | None = None
    nvlink_topology: Literal["switched", "mesh", "bridge"] | None = None
    pcie_gen: Annotated[float, Field(ge=1, le=9)]
    peer_to_peer: bool
    max_gpus_per_node: Annotated[int, Field(ge=1, le=64)]
    segment: Literal["datacenter", "workstation", "consumer", "legacy"]
    usable_memory_gib: _Amount | None = None
    gpus_per_board: Annotated[int, Field(ge=1, le=16)] = 1
    source: _Text | None = None
    notes: _Text | None = None
    labels: Annotated[str, Field(max_length=2000)] = ""

    @model_validator(mode="after")
    def _check_specifications(self) -> "OwnGpu":
        if (self.nvlink_gb_s is None) != (self.nvlink_topology is None):
            raise ValueError("nvlink_gb_s and nvlink_topology belong together: give both or neither")
        if (self.usable_memory_gib or 0) > self.memory_gb:
            raise ValueError(f"usable_memory_gib is {self.usable_memory_gib:g}, of {self.memory_gb:g} GB")
        measured = self.gemm_bf16_measured_tflops or 0
        if measured > (self.bf16_dense_tflops or 0):
            raise ValueError(f"gemm_bf16_measured_tflops is {measured:g}, above bf16_dense_tflops")
        return self

    def names(self) -> list[str]:
        """Return the labels in lower case with single spaces, for comparison."""
        return [" ".join(label.lower().split()) for label in self.labels.split("|") if label.strip()]

    def row(self) -> dict[str, Any]:
        """Return the GPU as a row of main.gpus, with confidence "own"."""
        taken = self.usable_memory_gib is None
        share = f"usable memory taken as {USABLE_SHARE:.1%} of nominal" if taken else None
        return self.model_dump(exclude={"labels"}) | {
            "usable_memory_gib": self.usable_memory_gib or round(USABLE_SHARE * self.memory_gb, 2),
            "has_full_specs": True,
            "named_without_memory": False,
            "source": self.source or "your own GPUs",
            "confidence": "own",
            "notes": "; ".join(filter(None, (self.notes, share))) or None,
        }


class OwnModel(Shape):
    """A row of models.csv; its parameters are counted from its shape."""

    noun: ClassVar = "model"
    key: ClassVar = "model"
    ignored: ClassVar = {"params_total", "params_linear", "params_active"}

    model: Name
    title: _Text | None = None
    licence: _Text | None = None
    hf_id: _Text | None = None
    source: _Text | None = None

    @model_validator(mode="after")
    def _check_shape(self) -> "OwnModel":
        bounds = (
            (1, 1 << 24, ("layers", "hidden", "intermediate", "heads", "kv_heads", "vocab", "experts")),
            (8, 1024, ("head_dim", "value_head_dim")),  # the sizes that attention kernels support
            (0, 1, ("gated_mlp", "tied_embeddings")),
            (1, self.experts, ("experts_active",)),
            (0, self.layers, ("full_attention_layers", "linear_attention_layers", "dense_layers")),
        )
        for least, most, names in bounds:
            for name in names:
                value = getattr(self, name)
                if value is not None and not least <= value <= most:
                    raise ValueError(f"{name} is {value}, not from {least} to {most}")
        if (self.linear_attention_layers or 0) + (self.full_attention_layers or 0) > self.layers:
            raise ValueError(f"linear and full attention layers exceed its {self.layers} layers")
        if self.heads % self.kv_heads:
            raise ValueError(f"{self.heads} heads cannot share {self.kv_heads} KV heads evenly")
        params = counted(self)
        if not 0 < params.params_linear < params.params_total < 1 << 50:
            raise ValueError(f"{params.params_total} parameters are impossible")
        return self

    def row(self) -> dict[str, Any]:
        """Return the model as a row of main.models, with parameter counts."""
        return {
            **self.model_dump(),
            **counted(self).model_dump(),
            "title": self.title or self.model,
            "source": self.source or "your own models",
        }


class OwnWorkload(Workload):
    """A row of workloads.csv: a job that is planned, ranked and recorded like those in
    catalog/workloads.yaml. An empty column gets the default that the setting has in a question."""

    noun: ClassVar = "workload"
    key: ClassVar = "workload"
    ignored: ClassVar = {"scenario"}

    workload: Name
    title: _Text = ""
    note: Annotated[str, Field(max_length=1000)] | None = None

    def row(self) -> dict[str, Any]:
        """Return the workload as a row of main.workloads."""
        return self.model_dump() | {
            "title": self.title or self.workload,
            "note": self.note or "One of your own workloads.",
        }


Row = TypeVar("Row", bound=OwnGpu | OwnModel | OwnWorkload)
"""A kind of row: ``noun`` is its name in messages, ``key`` the column with a row's name, and ``ignored`` the
catalogue columns that are skipped, so that rows can be copied from the catalogue."""


@dataclass(slots=True)
class OwnCatalogue:
    """The user's usable rows; ``problems`` gives a file and a line of text for each problem."""

    models: list[OwnModel] = field(default_factory=list)
    gpus: list[OwnGpu] = field(default_factory=list)
    workloads: list[OwnWorkload] = field(default_factory=list)
    corrections: list[dict[str, Any]] = field(default_factory=list)
    """Rows of own_corrections, which are learned from the user's own runs."""
    problems: list[tuple[Path, str]] = field(default_factory=list)

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """Return the usable rows, keyed by table, without empty tables."""
        rows = {
            "gpus": [gpu.row() for gpu in self.gpus],
            "models": [model.row() for model in self.models],
            "workloads": [job.row() for job in self.workloads],
            "own_corrections": self.corrections,
        }
        return {table: found for table, found in rows.items() if found}

    def labels(self) -> dict[str, str]:
        """Return the gpu_id for each label, used for offers that match no GPU in the catalogue."""
        return {label: gpu.gpu_id for gpu in self.gpus for label in gpu.names()}

    def state(self) -> str:
        """Return a hash of the rows and labels, or '' if the user has no usable rows."""
        decides = (self.rows(), self.labels())
        return hashlib.sha256(repr(decides).encode()).hexdigest()[:16] if any(decides) else ""


def read_own_catalogue(home: Home) -> OwnCatalogue:
    """Return the user's own rows. Raises CatalogError only for problems in the catalogue's files."""
    found = OwnCatalogue(corrections=read_kept(home).rows)
    if not any(path.exists() for path in (home.models, home.gpus, home.workloads)):
        return found
    catalogue = catalog_rows("models.csv")
    found.models = _read(home.models, OwnModel, model_names(), found.problems)
    found.gpus = _read(home.gpus, OwnGpu, {row["gpu_id"] for row in catalog_rows("gpus.csv")}, found.problems)
    jobs = _read(home.workloads, OwnWorkload, {row["workload"] for row in workloads()}, found.problems)
    found.problems += [(home.gpus, f"{home.gpus}: {problem}") for problem in _shared_labels(found.gpus)]
    context = {row["model"]: int(row["max_context"]) if row["max_context"] else None for row in catalogue}
    context |= {model.model: model.max_context for model in found.models}
    for job in jobs:
        if problem := _why_not_planned(job, context):
            found.problems.append((home.workloads, f"{home.workloads}, {job.workload}: skipped: {problem}"))
        else:
            found.workloads.append(job)
    return found


def add_model(path: Path, model: OwnModel) -> None:
    """Append a model to models.csv without changing other lines; create the file if it is missing.

    Raises OwnRowError if the name is taken, or if the file cannot be read or lacks a column for one of the
    model's values.
    """
    if model.model in model_names():
        raise OwnRowError(f"'{model.model}' is a model of the catalogue: give yours another name")
    values = model.model_dump(exclude_none=True)
    if path.exists():
        try:
            table = _table(path, OwnModel)
        except CsvError as error:
            raise OwnRowError(f"{error}; fix it, or move it away") from error
        if any(row.values["model"] == model.model for row in table.rows):
            raise OwnRowError(f"{path} has a model '{model.model}': remove its line, or give another name")
        if missing := sorted(values.keys() - {*table.columns}):
            raise OwnRowError(
                f"{path} has no column {', '.join(missing)}: add it to the heading and each line"
            )
    append_row(path, values, _columns(OwnModel))


def model_names() -> set[str]:
    """Return the names of the catalogue's models."""
    return {row["model"] for row in catalog_rows("models.csv")}


def _columns(kind: type[Row]) -> list[str]:
    """Return the columns of a file with rows of this kind, starting with the name column."""
    return [kind.key, *(name for name in kind.model_fields if name not in {kind.key, *kind.ignored})]


def _table(path: Path, kind: type[Row]) -> CsvTable:
    table, columns = read_csv(path, max_bytes=MAX_FILE_BYTES), _columns(kind)
    if kind.key not in table.columns:
        raise CsvError(f"{path} has no column {kind.key}")
    if unknown := sorted({*table.columns} - {*columns, *kind.ignored}):
        raise CsvError(f"{path} has a column {unknown[0]!a}, which is none of {', '.join(columns)}")
    return table


def _read(path: Path, kind: type[Row], taken: Collection[str], problems: list[tuple[Path, str]]) -> list[Row]:
    """Return the usable rows of a file, which may be missing; add unusable rows to ``problems``."""
    if not path.exists():
        return []
    try:
        table = _table(path, kind)
    except CsvError as error:
        problems.append((path, f"{error}; its {kind.noun}s are skipped"))
        return []
    rows: dict[str, Row] = {}
    for row, found, problem in checked(table.rows, kind):
        if not row.problem and not any(row.values.values()):
            continue
        name = row.values[kind.key]
        if name in taken:
            problem = f"'{name}' is the name of a {kind.noun} of the catalogue, which is used"
        elif name in rows:
            problem = f"'{name}' is the name of another row, which is used"
        if found is None or problem:
            problems.append((path, f"{path}, line {row.line}: skipped: {problem}"))
        else:
            rows[name] = found
    return list(rows.values())


def _why_not_planned(job: OwnWorkload, context: dict[str, int | None]) -> str:
    """Return why a workload cannot be planned, or ''; ``context`` gives each model's longest sequence."""
    if job.model not in context:
        near = difflib.get_close_matches(job.model, context, 1)
        return f"model '{job.model}' is not known" + (f": did you mean '{near[0]}'?" if near else "")
    longest = context[job.model]
    if longest and job.seq_len > longest:
        return f"seq_len is {job.seq_len}, and {job.model} takes at most {longest}"
    return ""


def _shared_labels(gpus: Collection[OwnGpu]) -> Iterator[str]:
    first: dict[str, str] = {}
    for gpu in gpus:
        for label in gpu.names():
            if first.setdefault(label, gpu.gpu_id) != gpu.gpu_id:
                yield f"label '{label}' belongs to {first[label]} and {gpu.gpu_id}: it means the latter"
