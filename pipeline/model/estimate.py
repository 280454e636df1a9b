"""Estimates for a CSV of runs: peak memory, fit and tokens per second, row by row.

Behind ``gpufare estimate``. Takes the layout of catalog/measured_runs.csv or of the published compilation;
a row that cannot be estimated says why and never stops the rest.
"""

import csv
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb

from pipeline.contracts.errors import GpufareError
from pipeline.model.published_runs import is_published_layout, read_published
from pipeline.model.run_settings import SETTING_TYPES, Architecture, RunError, RunRow, read_run
from pipeline.offers.gpu_matching import identify
from pipeline.warehouse.database import in_memory

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
# The form factor that training servers have, for cards whose form factor a published run leaves open.
USUAL_FORM_FACTORS = {
    "a100-80gb": "a100-sxm-80gb",
    "a100-40gb": "a100-sxm-40gb",
    "h100-80gb": "h100-sxm-80gb",
    "h200-141gb": "h200-sxm-141gb",
}


class EstimateError(GpufareError):
    """A file that cannot be estimated at all; the message says what is wrong with it."""


class Estimator:
    """Estimates rows on a throw-away database of catalogue and model."""

    def __init__(self) -> None:
        self.connection = in_memory("memory_of", "speed_of")
        self.models = {
            row[0]: Architecture(*row)
            for row in self.connection.execute(
                "SELECT model, params_total::DOUBLE, experts FROM main.models"
            ).fetchall()
        }
        self.gpus = {
            row[0]
            for row in self.connection.execute("SELECT gpu_id FROM main.gpus WHERE has_full_specs").fetchall()
        }

    def close(self) -> None:
        """Close the database."""
        self.connection.close()

    def gpu_of(self, label: str, read: RunRow) -> str:
        """The catalogue's id of a GPU given by id or in free text. Raises RunError when there is none."""
        found = label if label in self.gpus else identify(label).gpu_id
        if found is None:
            raise RunError(f"gpu '{label}' is not one card of the catalogue")
        usual = USUAL_FORM_FACTORS.get(found)
        if usual:
            read.assumptions.append(f"gpu: form factor not given, taken as {usual}")
            return usual
        if found not in self.gpus:
            raise RunError(f"gpu '{found}' has no full specifications in the catalogue")
        return found

    def estimate(self, rows: Iterable[Mapping[str, str]], columns: list[str]) -> list[dict[str, Any]]:
        """One output row per input row, in order."""
        published = is_published_layout(columns)
        answers: list[dict[str, Any]] = []
        settings: list[dict[str, Any]] = []
        for number, row in enumerate(rows):
            answer = dict.fromkeys(OUTPUT_COLUMNS, "")
            answer["run_id"] = row.get("id" if published else "run_id") or ""
            answers.append(answer)
            try:
                reader = read_published if published else read_run
                read = reader(row, self.models, self.gpu_of)
                self._shape(read)
            except RunError as error:
                answer["error"] = str(error)
                continue
            answer["assumptions"] = "; ".join(read.assumptions)
            settings.append({**read.settings, "job": str(number)})
        if settings:
            self._fill(answers, settings)
        return answers

    def _shape(self, read: RunRow) -> None:
        """Add a model that the catalogue lacks: its likeness, with layers scaled to its size."""
        if read.scaled_to is None:
            return
        size = read.scaled_to
        name = f"{read.settings['model']} scaled to {size.params_b:g}B ({size.active_b:g}B active)"
        if name not in self.models:
            self.connection.execute(
                """
                WITH _likeness AS (
                    SELECT *, least(params_total - params_linear, 0.5 * $active) AS embeddings
                    FROM main.models WHERE model = $like
                )
                INSERT INTO main.models BY NAME
                SELECT * EXCLUDE (embeddings) REPLACE (
                    $name AS model, $name AS title,
                    $total AS params_total, $total - embeddings AS params_linear, $active AS params_active,
                    greatest(1, round(layers * ($active - embeddings) / params_linear)) AS layers,
                    CASE WHEN $active < $total THEN 8 ELSE 1 END AS experts
                )
                FROM _likeness
                """,
                {
                    "name": name,
                    "total": size.params_b * 1e9,
                    "active": size.active_b * 1e9,
                    "like": read.settings["model"],
                },
            )
            self.models[name] = Architecture(name, size.params_b * 1e9, 2)
        read.settings["model"] = name

    def _fill(self, answers: list[dict[str, Any]], settings: list[dict[str, Any]]) -> None:
        names = ["job", *SETTING_TYPES]
        columns = ", ".join(f"{name} {SETTING_TYPES.get(name, 'VARCHAR')}" for name in names)
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE estimate_rows ({columns})")
        unnested = ", ".join(
            f"unnest(${i + 1}::{SETTING_TYPES.get(name, 'VARCHAR')}[])" for i, name in enumerate(names)
        )
        self.connection.execute(
            f"INSERT INTO estimate_rows SELECT {unnested}",
            [[row.get(name) for row in settings] for name in names],
        )
        cursor = self.connection.execute(
            """
            SELECT m.job::INTEGER, m.memory_gib, m.memory_gib_low, m.memory_gib_high, m.fits,
                s.tokens_per_second_per_gpu, s.tokens_per_second_per_gpu_low,
                    s.tokens_per_second_per_gpu_high,
                concat_ws('; ', nullif(m.assumptions, ''),
                    CASE WHEN m.evidence = 'extrapolated' THEN 'far from any published run' END)
            FROM memory_of('estimate_rows') m JOIN speed_of('estimate_rows') s USING (job) ORDER BY
                m.job::INTEGER
            """
        )
        for job, memory, low, high, fits, speed, slow, fast, defaults in cursor.fetchall():
            answer = answers[job]
            stated = answer["assumptions"]
            open_settings = [
                part for part in defaults.split("; ") if part and part.split(":")[0] + ":" not in stated
            ]
            answer["assumptions"] = "; ".join(([stated] if stated else []) + open_settings)
            if not all(math.isfinite(value) and value > 0 for value in (memory, speed)):
                answer["error"] = "the settings give no finite estimate"
                continue
            values = (memory, low, high, "true" if fits else "false", speed, slow, fast)
            answer.update(zip(OUTPUT_COLUMNS[1:8], (_text(value) for value in values), strict=True))
        for answer in answers:
            if not answer["error"] and not answer["memory_gib"]:
                answer["error"] = "the settings give no estimate"


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4f}"


def estimate_file(path: Path) -> list[dict[str, Any]]:
    """Estimate every row of a CSV file.

    Raises EstimateError where the file is not a CSV of runs; a single bad row only fills its ``error``.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, restkey="_surplus", restval="")
            rows = list(reader)
            columns = list(reader.fieldnames or [])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise EstimateError(f"{path} cannot be read as CSV: {error}") from error
    if not {"model", "gpu"} <= set(columns):
        raise EstimateError(f"{path} has no columns model and gpu: it is not a file of runs")
    estimator = Estimator()
    try:
        return estimator.estimate(rows, columns)
    except duckdb.Error as error:
        raise EstimateError(f"{path}: the model cannot be evaluated: {error}") from error
    finally:
        estimator.close()
