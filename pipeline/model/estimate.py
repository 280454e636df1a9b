"""Estimates each row of a file of runs, for ``gpufare estimate``: peak memory, fit and tokens per second.

The file has the layout of catalog/measured_runs.csv or of the published compilation; a row that cannot be
estimated gets the reason as its answer, and does not stop other rows.
"""

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from pipeline.catalog.own import OwnCatalogue, OwnModel, read_own_catalogue
from pipeline.catalog.own_corrections import OwnCorrections
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.own_runs import MEMBERS, corrections
from pipeline.contracts.training import ADAPTER_METHODS
from pipeline.export.cells import safe_text
from pipeline.gpus import identify
from pipeline.home import paths
from pipeline.home.csv_rows import read_csv
from pipeline.home.disk import is_exhaustion
from pipeline.home.paths import Home
from pipeline.model.model_names import Architecture, RunError
from pipeline.model.published_runs import PUBLISHED_COLUMNS, is_published_layout, read_published
from pipeline.model.run_settings import (
    MODEL_COLUMNS,
    SETTINGS,
    RunRow,
    check_sharding,
    read_run,
)
from pipeline.parsing.printable import printable
from pipeline.warehouse.database import in_memory
from pipeline.warehouse.load import load_own

OUTPUT_COLUMNS = (
    "run_id",
    "memory_gib",
    "memory_gib_low",
    "memory_gib_high",
    "fits",
    "tokens_per_second_per_gpu",
    "tokens_per_second_per_gpu_low",
    "tokens_per_second_per_gpu_high",
    "assumptions",
    "error",
)
Answers = list[dict[str, Any]]

_PROBLEM = "_problem"
"""The key under which a row's problem with the CSV format is stored."""

# The form factor used in training servers, for cards whose form factor a published run leaves open.
USUAL_FORM_FACTORS = {
    "a100-80gb": "a100-sxm-80gb",
    "a100-40gb": "a100-sxm-40gb",
    "h100-80gb": "h100-sxm-80gb",
    "h200-141gb": "h200-sxm-141gb",
}
_PART_OF_A_CARD = re.compile(
    r"(?<![\w.])0?\.\d+|(?<![\w.])[1-9]/\d|\b(half|third|quarter|fraction\w*|slice\w*|partition\w*|shared?|mig|vgpu)\b"
    r"|time-?slic|\d\s*%",
    re.IGNORECASE,
)
_UNSTATED = re.compile(
    r",? *(?:\bform[ -]factor )?(?:unspecified|not stated|not given|unknown)\b", re.IGNORECASE
)
_WATTS = re.compile(r"(?<![\w.])(\d{2,4})\s*w(?:atts?)?\b", re.IGNORECASE)
_CAPPED = re.compile(r"\b(power|capp?ed|cap|limit\w*|undervolt\w*|throttl\w*|underclock\w*)\b", re.IGNORECASE)


_MODELS = """
SELECT
    model, params_total::DOUBLE, experts, params_active::DOUBLE, experts_active,
    (layers - coalesce(dense_layers, 0))::DOUBLE * hidden * intermediate * (2 + gated_mlp), hf_id,
    cross_attention_layers IS NULL, coalesce(linear_attention_layers, 0) > 0,
    gated_mlp = 1 AND kv_latent IS NULL AND sliding_window IS NULL AND extra_embedding_params IS NULL, vocab
FROM main.models
"""

_GPUS = """
SELECT
    gpu_id, tdp_w::DOUBLE, bf16_dense_tflops IS NOT NULL, fp8_dense_tflops IS NOT NULL,
    fp4_dense_tflops IS NOT NULL
FROM main.gpus
WHERE has_full_specs
"""

_SHAPE = """
WITH _likeness AS (
    SELECT
        *,
        least(
            params_total - params_linear + ($vocab - vocab) * hidden * (2 - tied_embeddings), 0.5 * $active
        ) AS embeddings,
        greatest(1, round(
            layers * ($active - embeddings) / (params_active - (params_total - params_linear))
        )) AS depth,
        depth / layers AS ratio
    FROM main.models WHERE model = $like
)

INSERT INTO main.models BY NAME
SELECT * EXCLUDE (embeddings, depth, ratio) REPLACE (
    $name AS model, $name AS title,
    $total AS params_total, $total - embeddings AS params_linear, $active AS params_active,
    depth AS layers, $vocab AS vocab,
    CASE
        WHEN experts > 1 THEN greatest(
            experts_active + 1, round(experts * ($total - embeddings) / (params_linear * ratio))
        )
        ELSE 1
    END AS experts,
    floor(full_attention_layers * ratio) AS full_attention_layers,
    floor(linear_attention_layers * ratio) AS linear_attention_layers,
    floor(dense_layers * ratio) AS dense_layers
)
FROM _likeness
"""

_IMPOSSIBLE = """
SELECT
    s.job::INTEGER AS job,
    impossible_groups(
        s.gpu_count, s.node_count, s.tensor_parallel, s.pipeline_parallel, s.context_parallel,
        s.expert_parallel, m.layers, m.experts
    ) AS reason
FROM assumed_settings('estimate_rows') AS s
JOIN main.models AS m USING (model)
WHERE reason IS NOT NULL
"""

_REPLICAS = """
SELECT job::INTEGER, gpu_count / (tensor_parallel * pipeline_parallel)
FROM resolved_settings('estimate_rows')
WHERE list_contains($jobs, job::INTEGER)
"""

# A row whose model borrows the shape of a similar known model, or whose framework is unknown, gets the wider
# of its own band and the band for the weakest evidence.
_ESTIMATES = """
WITH _far AS (
    SELECT
        g.gpu_id AS gpu, b.method,
        max({'low': b.low_ratio, 'high': b.high_ratio}) FILTER (b.quantity = 'memory') AS memory,
        max({'low': b.low_ratio, 'high': b.high_ratio}) FILTER (b.quantity = 'speed') AS speed
    FROM main.model_bands AS b
    JOIN main.gpus AS g
        ON b.gpu_class IN ('any', gpu_class(g.vendor, g.architecture, g.segment, g.form_factor))
    WHERE b.evidence IN ('formulas', 'extrapolated')
    GROUP BY ALL
)

SELECT
    m.job::INTEGER, r.carried, m.memory_gib, m.memory_gib_low, m.memory_gib_high, m.fits,
    s.tokens_per_second_per_gpu, s.tokens_per_second_per_gpu_low, s.tokens_per_second_per_gpu_high,
    m.assumptions, s.assumptions, s.evidence = 'extrapolated', f.memory, f.speed
FROM memory_of('estimate_rows') AS m
JOIN speed_of('estimate_rows') AS s USING (job)
JOIN estimate_rows AS r USING (job)
LEFT JOIN _far AS f ON f.gpu = m.gpu AND f.method = coalesce(r.method, 'lora')
ORDER BY m.job::INTEGER
"""


@dataclass(frozen=True, slots=True)
class _Card:
    watts: float | None
    has_bf16: bool
    has_fp8: bool
    has_fp4: bool


class Estimator:
    """Estimates rows, using a throwaway database with the catalogue and the model."""

    def __init__(self, given: OwnModel | None = None, home: Home | None = None) -> None:
        """``given`` is the model for rows without one. The home, by default the user's, gives further models
        and GPUs; problems with them go to stderr. Its runs correct nothing before ``correct``."""
        self.connection = in_memory("memory_of", "speed_of")
        self.given = given
        own = read_own_catalogue(home or paths.home())
        own.corrections = []
        if given is not None:
            own.models = [given, *(model for model in own.models if model.model != given.model)]
            self.connection.execute("DELETE FROM main.models WHERE model = ?", [given.model])
        load_own(self.connection, own)
        for _, problem in own.problems:
            print(problem, file=sys.stderr)
        self.models = {row[0]: Architecture(*row) for row in self.connection.execute(_MODELS).fetchall()}
        self.likenesses: set[str] = set()
        self.assumed: set[str] = set()
        """Settings that at least one of the last estimated rows left open."""
        self.gpus = {row[0]: _Card(*row[1:]) for row in self.connection.execute(_GPUS).fetchall()}
        described = self.connection.execute(
            "SELECT column_name FROM (DESCRIBE main.measured_runs)"
        ).fetchall()
        self.columns = {row[0] for row in described} | {*SETTINGS, *MODEL_COLUMNS, *OUTPUT_COLUMNS}
        """The columns of a file of runs and of a file of answers, which may itself be estimated again."""

    def close(self) -> None:
        """Close the database."""
        self.connection.close()

    def correct(self, corrections: OwnCorrections) -> None:
        """Correct further estimates from these own runs, and from no earlier ones."""
        self.connection.execute("DELETE FROM main.own_corrections")
        load_own(self.connection, OwnCatalogue(corrections=corrections.rows))

    def gpu_of(self, label: str, read: RunRow) -> str:
        """Return the catalogue's id for a GPU given by id or in free text. Raises RunError if no GPU fits."""
        if label in self.gpus:
            return label
        identity = identify(_UNSTATED.sub("", _CAPPED.sub("", label)))
        found = identity.gpu_id
        if identity.gpu_fraction is not None or _PART_OF_A_CARD.search(label):
            raise RunError(f"gpu '{label}' is a part of a card: only whole cards are estimated")
        if found is None:
            raise RunError(f"gpu '{label}' is not one card of the catalogue")
        usual = USUAL_FORM_FACTORS.get(found)
        if usual:
            read.assumptions.append(("gpu", f"form factor not given, taken as {usual}"))
            found = usual
        if found not in self.gpus:
            raise RunError(f"gpu '{found}' has no full specifications in the catalogue")
        self._note_power_cap(label, found, read)
        return found

    def _note_power_cap(self, label: str, gpu: str, read: RunRow) -> None:
        rated = self.gpus[gpu].watts
        stated = _WATTS.search(label)
        watts = float(stated[1]) if stated else None
        if (watts is not None and rated and watts < rated) or (watts is None and _CAPPED.search(label)):
            capped = f"the cap of {watts:g} W" if watts else "the power cap"
            at = f"{rated:g} W" if rated else "its full power"
            read.assumptions.append(("gpu", f"{capped} is not modelled, estimated at {at}"))

    def _check_precision(self, read: RunRow) -> None:
        """Raise RunError for number formats that the card does not support; note emulated bf16."""
        gpu, settings = str(read.settings["gpu"]), read.settings
        card = self.gpus.get(gpu)
        if card is None:
            return
        for fp8, has, form in ((1.0, card.has_fp8, "fp8"), (2.0, card.has_fp4, "fp4")):
            if settings.get("fp8") == fp8 and not has:
                raise RunError(f"fp8: {gpu} has no {form}")
        precision = settings.get("training_precision")
        if not card.has_bf16 and precision in (None, "bf16", "amp", "deepspeed_bf16"):
            usual = "bf16" if settings["method"] in ADAPTER_METHODS else "amp"
            read.assumptions.append(
                ("training_precision", f"{precision or usual}, which {gpu} only emulates")
            )

    def _ignored(self, columns: Sequence[str], published: bool) -> list[tuple[str, str]]:
        """Note the columns that no layout contains: a misspelt setting would silently get its default."""
        known = self.columns | (PUBLISHED_COLUMNS if published else set())
        ignored = [printable(name)[:100] for name in columns if name and name not in known]
        return [("ignored columns", ", ".join(ignored))] if ignored else []

    def estimate(self, rows: Iterable[Mapping[str, str]], columns: list[str]) -> Answers:
        """Return one output row per input row, in order."""
        published = is_published_layout(columns)
        ignored = self._ignored(columns, published)
        answers: Answers = []
        settings: list[dict[str, Any]] = []
        for number, row in enumerate(rows):
            answer: dict[str, Any] = dict.fromkeys(OUTPUT_COLUMNS, "") | {"assumptions": []}
            answer["run_id"] = row.get("id" if published else "run_id") or ""
            answers.append(answer)
            try:
                read = self._read(row, read_published if published else read_run)
            except RunError as error:
                answer["error"] = str(error)
                continue
            except (ArithmeticError, ValueError) as error:
                # Unforeseen free text is an error in the row, not in the file.
                answer["error"] = f"the row cannot be read: {printable(str(error))[:200]}"
                continue
            answer["assumptions"] = read.assumptions
            far = read.extrapolated or read.settings["model"] in self.likenesses
            given = {"job": str(number), "carried": far, "at_once": read.at_once}
            settings.append({**read.settings, **given})
        self._fill(answers, settings)
        self.assumed = {name for answer in answers for name, _ in answer["assumptions"]}
        for answer in answers:
            if not answer["error"] and not answer["memory_gib"]:
                answer["error"] = "the settings give no estimate"
            texts = (f"{name}: {what}" if name else what for name, what in answer["assumptions"] + ignored)
            answer["assumptions"] = "; ".join(texts)
        # Text from the user's file is shown in terminals and spreadsheets.
        return [{column: safe_text(printable(text)) for column, text in each.items()} for each in answers]

    def _read(self, row: Mapping[str, str], reader: Callable[..., RunRow]) -> RunRow:
        """Return a row's settings, and add a model of unknown shape to the database. Raises RunError."""
        if row.get(_PROBLEM):
            raise RunError(row[_PROBLEM])
        if self.given is not None and not (row.get("model") or "").strip():
            row = {**row, "model": self.given.model}
        read = reader(row, self.models, self.gpu_of)
        check_sharding(read.settings)
        self._check_precision(read)
        self._shape(read)
        return read

    def _shape(self, read: RunRow) -> None:
        """Add a model of unknown shape: its likeness, with layers and experts scaled to the model's size."""
        if read.scaled_to is None:
            return
        size = read.scaled_to
        like = str(read.settings["model"])
        vocab = read.vocab or self.models[like].vocab
        name = f"{like} scaled to {size.params_b:g}B ({size.active_b:g}B active, {vocab} tokens)"
        if name not in self.likenesses:
            numbers = {"total": size.params_b * 1e9, "active": size.active_b * 1e9, "vocab": vocab}
            self.connection.execute(_SHAPE, {"name": name, "like": like, **numbers})
            self.likenesses.add(name)
        read.settings["model"] = name

    def _fill(self, answers: Answers, settings: Sequence[Mapping[str, Any]]) -> None:
        """Write the estimates of each row, or its error, into the row's answer.

        If the model fails, the rows are split in half until the failing row is alone and stops no other row.
        """
        try:
            self._evaluate(answers, settings)
        except duckdb.Error as error:
            if is_exhaustion(error):
                raise
            if len(settings) == 1:
                reason = printable(str(error).splitlines()[0])
                answers[int(settings[0]["job"])]["error"] = f"the model cannot be evaluated: {reason}"
                return
            middle = len(settings) // 2
            self._fill(answers, settings[:middle])
            self._fill(answers, settings[middle:])

    def _evaluate(self, answers: Answers, settings: Sequence[Mapping[str, Any]]) -> None:
        names = ("job", "carried", *SETTINGS)
        rows = [{name: row.get(name) for name in names} for row in settings]
        self.connection.execute(
            "CREATE OR REPLACE TEMP TABLE estimate_rows AS SELECT unnest($rows, recursive := TRUE)",
            {"rows": rows or [dict.fromkeys(names)]},  # an empty list has no columns
        )
        if not rows:
            return
        refused = dict(self.connection.execute(_IMPOSSIBLE).fetchall())
        for job, reason in refused.items():
            answers[job]["error"] = reason
        self.connection.execute(
            "DELETE FROM estimate_rows WHERE list_contains($refused, job::INTEGER)",
            {"refused": list(refused)},
        )
        self._share_sequences(answers, settings)
        estimates = self.connection.execute(_ESTIMATES).fetchall()
        for job, is_far, *values, of_memory, of_speed, speed_is_far, far_memory, far_speed in estimates:
            _assume(answers[job], json.loads(of_speed) | json.loads(of_memory), speed_is_far)
            _write_answer(answers[job], values, (far_memory, far_speed) if is_far else None)

    def _share_sequences(self, answers: Answers, settings: Sequence[Mapping[str, Any]]) -> None:
        """Assume context parallelism where a batch has fewer micro-batches than replicas of the model."""
        at_once = {int(row["job"]): row["at_once"] for row in settings if row["at_once"]}
        replicas = self.connection.execute(_REPLICAS, {"jobs": list(at_once)}).fetchall()
        for job, count in replicas:
            shared = count / at_once[job]
            if shared > 1 and shared.is_integer():
                answers[job]["assumptions"].append(
                    ("context_parallel", f"{shared:g}, as the global batch has fewer sequences than GPUs")
                )
                self.connection.execute(
                    "UPDATE estimate_rows SET context_parallel = ? WHERE job = ?", [shared, str(job)]
                )


Ratios = dict[str, float]
"""The low and high ends of a band, as multiples of the estimate."""


_RULES = {
    "kbit_upcast": "1 on stack hf, else 0",
    "autocast": "1 in the Transformers Trainer, else 0",
    "lora_targets": "all linear layers",
    "sharding": "zero1 on stack te, else fsdp for full and pretrain, ddp for adapters",
    "tensor_parallel": "as few GPUs as hold the weights, with 6 bytes for each that is trained",
    "cuda_graph": "step for mixtures trained in fp8 on Blackwell, else none",
}
"""Defaults that are rules rather than values."""


def _assume(answer: dict[str, Any], defaults: Mapping[str, Any], speed_is_far: bool) -> None:
    """Note as assumptions the defaults that the reader did not list, corrections from own runs, and a speed
    far from any run."""
    stated = {name for name, _ in answer["assumptions"]}
    answer["assumptions"] += [
        (name, _RULES.get(name, str(value)))
        for name, value in defaults.items()
        if name not in (*stated, *MEMBERS, "old_software")
    ]
    answer["assumptions"] += [("", text) for text in corrections(defaults)]
    if "old_software" in defaults:
        answer["assumptions"].append(
            ("software_date", f"{defaults['old_software']} is old: newer software is faster")
        )
    if speed_is_far:
        answer["assumptions"].append(("speed", "far from any published run"))


def _write_answer(answer: dict[str, Any], values: list[Any], far: tuple[Ratios, Ratios] | None) -> None:
    memory, low, high, fits, speed, slow, fast = values
    if not all(value is not None and math.isfinite(value) and value > 0 for value in (memory, speed)):
        answer["error"] = "the settings give no finite estimate"
        return
    if far is not None:
        low, high = _doubled(memory, low, high, far[0])
        slow, fast = _doubled(speed, slow, fast, far[1])
    shown = (memory, low, high, "true" if fits else "false", speed, slow, fast)
    answer.update(zip(OUTPUT_COLUMNS[1:8], (_text(value) for value in shown), strict=True))


def _doubled(middle: float, low: float, high: float, far: Ratios) -> tuple[float, float]:
    """Double, on a logarithmic scale, the wider of a band and the band for the weakest evidence."""
    return middle * min(low / middle, far["low"]) ** 2, middle * max(high / middle, far["high"]) ** 2


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4f}"


class EstimateError(GpufareError):
    """A file cannot be estimated at all; the message gives the reason."""


def estimate_file(estimator: Estimator, path: Path) -> Answers:
    """Estimate every row of a CSV file, whose column names may be in upper or lower case.

    Raises CsvError or EstimateError if the file is not a CSV of runs; a bad row only gets an ``error``.
    """
    table = read_csv(path, lower_case=True)
    needed = ["gpu"] if estimator.given else ["model", "gpu"]
    if not set(needed) <= set(table.columns):
        raise EstimateError(f"{path} has no columns {' and '.join(needed)}: it is not a file of runs")
    problems = ({_PROBLEM: f"line {row.line}: {row.problem}"} if row.problem else {} for row in table.rows)
    rows = [row.values | problem for row, problem in zip(table.rows, problems, strict=True)]
    return estimator.estimate(rows, table.columns)
