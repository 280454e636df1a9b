"""The report on a measured run: the measurement beside the estimate, and the run's row."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from gpufare_tracer.measuring.card import Card
from gpufare_tracer.measuring.result import Measured, Request
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.settings import cut_to_layers, run_settings
from pipeline.catalog.own_corrections import OwnCorrections
from pipeline.contracts.own_runs import corrections_among
from pipeline.home.disk import UnwritableError
from pipeline.home.paths import Home
from pipeline.model.corrections import own_corrections
from pipeline.model.estimate import OUTPUT_COLUMNS, Estimator
from pipeline.model.model_names import RunError
from pipeline.model.own_runs import add_own_run, catalogue_columns
from pipeline.model.run_settings import RunRow
from pipeline.parsing.printable import printable

GIB = 1 << 30
MIB_PER_GIB = 1024
OWN_SOURCE = "own"
UNKNOWN_GPU = "unknown"
CONFIG_MODEL = "config"
"""The estimator's name for the model that a config.json describes."""
MEMORY_TOLERANCE = 0.08
"""Error correction takes a sixteenth of some cards' memory; a partition has at most half a card's memory."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One quantity, measured and estimated, in GiB or in tokens per second per GPU."""

    quantity: str
    measured: float | None
    estimated: float
    low: float
    high: float
    corrected: float | None
    """The estimate, corrected by the user's own earlier runs."""

    @property
    def is_inside(self) -> bool | None:
        """True if the measurement is inside the estimate's band; None without a measurement."""
        return None if self.measured is None else self.low <= self.measured <= self.high


@dataclass(slots=True)
class Report:
    """A measurement, its estimate, and its row."""

    request: Request
    measured: Measured
    gpu: str
    """The card's id in the catalogue, or ``unknown``."""
    row: dict[str, str]
    """The run as a row, keyed by the columns of catalog/measured_runs.csv and of the user's own runs."""
    comparisons: tuple[Comparison, ...] = ()
    no_estimate: str = ""
    """Why there is no estimate."""
    corrections: str = ""
    not_ready: list[str] = field(default_factory=list)
    """Why the row does not qualify for the catalogue; empty if it does."""
    notes: list[str] = field(default_factory=list)
    own_runs: Path | None = None
    """The file that the row was added to."""
    not_kept: str = ""
    """Why the row was not added to a file; empty if it was."""
    is_to_fit: bool | None = None
    """True if the run is estimated to fit; None without an estimate."""

    @property
    def step_seconds(self) -> float | None:
        """Median duration of the timed steps, in seconds."""
        return statistics.median(self.measured.step_seconds) if self.measured.step_seconds else None

    @property
    def quartiles(self) -> tuple[float, float] | None:
        """Lower and upper quartiles of the timed steps' durations, in seconds."""
        if len(self.measured.step_seconds) < 2:
            return None
        low, _, high = statistics.quantiles(self.measured.step_seconds, n=4, method="inclusive")
        return low, high

    @property
    def tokens_per_second(self) -> float | None:
        """Speed of the median step, in tokens per second."""
        shape = self.request.shape
        tokens = shape.micro_batch * shape.seq_len * micro_steps(self.request.recipe)
        return tokens / self.step_seconds if self.step_seconds else None

    @property
    def process_gib(self) -> float | None:
        """Memory of the whole process on the card, according to nvidia-smi; None if unknown."""
        return float(self.row["process_gib"]) if self.row.get("process_gib") else None


def report(
    request: Request,
    measured: Measured,
    before: dict[str, Card],
    estimator: Estimator,
    home: Home,
    now: datetime,
    *,
    gpu: str | None = None,
    notes: Sequence[str] = (),
) -> Report:
    """Return the measurement, its estimate and its row, which is added to the user's own runs.

    ``before`` contains the cards as they were before the run. ``estimator`` knows the model of a config.json
    as ``CONFIG_MODEL`` if the model's shape is known. A model cut to some layers is compared with its
    estimate at that depth, and gets no row.
    """
    done = Report(request, measured, UNKNOWN_GPU, {}, notes=[*notes, *filter(None, [measured.note])])
    done.gpu = _gpu(done, gpu, estimator)
    _note_other_users(done, before)
    if request.shape.layers:
        done.not_ready.append(f"the model is cut to {request.shape.layers} layers")
    if request.shape.config:
        done.not_ready.append("the model is not one of the catalogue")
    done.row = _row(done, before, now)
    _compare(done, estimator, home)
    _keep(done, home)
    return done


def _keep(done: Report, home: Home) -> None:
    """Add the row to the user's own runs. The measurement is not lost if the row cannot be added."""
    if done.request.shape.layers:
        done.not_kept = "a cut model is no row"
        return
    try:
        problem = add_own_run(home, done.row)
    except UnwritableError as error:
        done.not_kept = str(error)
        return
    done.own_runs = home.own_runs
    done.notes += filter(None, [problem])


def _gpu(done: Report, gpu: str | None, estimator: Estimator) -> str:
    """Return the card's catalogue id; ``unknown``, with a note, if its name and memory do not identify it."""
    if done.request.on_cpu:
        done.not_ready.append("the steps ran on the CPU")
        return UNKNOWN_GPU
    read = RunRow({})
    try:
        found = estimator.gpu_of(gpu or done.measured.device, read)
    except RunError as error:
        done.not_ready.append(f"{printable(str(error))}: name it with --gpu")
        return UNKNOWN_GPU
    done.notes += [f"{setting}: {what}" for setting, what in read.assumptions]
    (usable,) = estimator.connection.execute(
        "SELECT usable_memory_gib FROM main.gpus WHERE gpu_id = $gpu", {"gpu": found}
    ).fetchone() or (None,)
    has = (done.measured.memory_bytes or 0) / GIB
    if usable is None or abs(has / usable - 1) > MEMORY_TOLERANCE:
        done.not_ready.append(
            f"{printable(done.measured.device)} has {has:.1f} GiB here, {found} of the catalogue "
            f"{usable or 0:.1f}: a partition, or another card"
        )
        return UNKNOWN_GPU
    return found


def _note_other_users(done: Report, before: dict[str, Card]) -> None:
    mine = before.get(done.measured.card_uuid)
    if before and mine is None:
        done.notes.append(
            "nvidia-smi lists no card of this id: power limit and other processes are not known"
        )
    if mine is not None:
        partitioned = "the card is partitioned (MIG)" if mine.is_partitioned else ""
        done.not_ready += filter(None, [partitioned, mine.others, mine.power])


def micro_steps(recipe: Recipe) -> int:
    """Return the number of micro-batches in one optimizer step."""
    return 2 if recipe.gradient_accumulation else 1


def _row(done: Report, before: dict[str, Card], now: datetime) -> dict[str, str]:
    """Return the run as a row with the columns of the catalogue and of the user's own runs."""
    measured = done.measured
    values = run_settings(done.request.recipe, done.request.shape, done.gpu) | {
        "run_id": f"{OWN_SOURCE}-{now:%Y%m%dT%H%M%SZ}", "source": OWN_SOURCE, "tier": "A", "node_count": 1,
        "out_of_memory": int(bool(measured.out_of_memory)),
        "measured_tokens_per_second_per_gpu": done.tokens_per_second,
        "measured_at": now.isoformat(timespec="seconds"), "steps": len(measured.step_seconds),
        "versions": "; ".join(f"{name} {version}" for name, version in sorted(measured.versions.items())),
        "not_ready": "; ".join(done.not_ready),
        "note": "; ".join([*done.notes, *filter(None, [measured.out_of_memory])]),
    }  # fmt: skip
    if not measured.out_of_memory:
        values |= {
            "measured_memory_gib": _gib(measured.allocated_bytes),
            "reserved_gib": _gib(measured.reserved_bytes),
            "process_gib": _process_gib(measured, before.get(measured.card_uuid)),
        }  # fmt: skip
    return {name: _text(values.get(name)) for name in (*catalogue_columns(), *values)}


def _process_gib(measured: Measured, before: Card | None) -> float | None:
    """Return the increase in the card's memory use due to the run: all the memory of the run's process."""
    used = _gib(measured.used_at_end_bytes)
    return None if used is None or before is None else used - before.used_mib / MIB_PER_GIB


def _gib(size_bytes: int | None) -> float | None:
    return None if size_bytes is None else size_bytes / GIB


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else printable(str(value))


def _compare(done: Report, estimator: Estimator, home: Home) -> None:
    """Estimate the measured run, both without and with corrections from the user's own earlier runs."""
    if done.request.on_cpu:
        done.no_estimate = "the model is of GPUs"
        return
    shape = done.request.shape
    model = CONFIG_MODEL if shape.config else shape.model
    if model not in estimator.models:
        done.no_estimate = f"the shape of {shape.model} is not known"
        return
    if shape.layers:
        whole, model = model, cut_to_layers(estimator.connection, model, shape.layers)
        estimator.models[model] = estimator.models[whole]
    estimator.correct(OwnCorrections())
    answers = estimator.estimate([done.row | {"model": model}], list(OUTPUT_COLUMNS))
    if answers[0]["error"]:
        done.no_estimate = answers[0]["error"]
        return
    (answer,) = answers
    earlier = own_corrections(home)
    done.notes += earlier.problems
    estimator.correct(earlier)
    (corrected,) = estimator.estimate([done.row | {"model": model}], list(OUTPUT_COLUMNS))
    done.corrections = "; ".join(corrections_among(corrected["assumptions"].split("; ")))
    done.is_to_fit = corrected["fits"] == "true"
    allocated = None if done.measured.out_of_memory else _gib(done.measured.allocated_bytes)
    done.comparisons = (
        _comparison("peak allocated, GiB", "memory_gib", allocated, answer, corrected),
        _comparison(
            "tokens per second", "tokens_per_second_per_gpu", done.tokens_per_second, answer, corrected
        ),
    )


def _comparison(
    quantity: str,
    column: str,
    measured: float | None,
    answer: Mapping[str, str],
    corrected: Mapping[str, str],
) -> Comparison:
    estimated, low, high = (float(answer[f"{column}{end}"]) for end in ("", "_low", "_high"))
    is_corrected = corrected[column] != answer[column]
    return Comparison(
        quantity, measured, estimated, low, high, float(corrected[column]) if is_corrected else None
    )
