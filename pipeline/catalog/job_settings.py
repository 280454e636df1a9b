"""A training job's settings, from catalog/job_settings.csv; the table ``job_settings`` explains the columns.

The file is read without the usual catalogue checks, whose imports would slow ``gpufare --help``.
"""

import csv
from dataclasses import dataclass
from functools import cache
from typing import Literal

from pipeline.home import paths

Kind = Literal["amount", "number", "whole", "flag", "name", "names", "machines"]


@dataclass(frozen=True, slots=True)
class JobSetting:
    """One row of job_settings.csv: a setting, under the name that SQL and Python use for it."""

    setting: str
    kind: Kind
    recipe: bool
    least: float | None
    most: float | None
    default_value: str
    unit: str
    named: str
    choices: tuple[str, ...]
    other_name: str
    meaning: str

    @property
    def option(self) -> str:
        """The command-line option for the setting."""
        return f"--{self.setting.replace('_', '-')}"


@cache
def job_settings() -> dict[str, JobSetting]:
    """Return the settings, keyed by name, in the order of the file."""
    with (paths.CATALOG_DIR / "job_settings.csv").open(newline="", encoding="utf-8") as file:
        return {row["setting"]: _setting(row) for row in csv.DictReader(file)}


DAILY_PRICE_SETTINGS = (
    "gpu", "exclude_gpu", "kind", "country", "exclude_country", "continent", "source", "exclude_source",
)  # fmt: skip
"""The settings that choose prices of past days, which are recorded without their other terms."""

PRICE_SETTINGS = (
    *DAILY_PRICE_SETTINGS, "provider", "exclude_provider", "tier", "gpus", "min_gpus", "max_term_days",
    "max_age_days",
)  # fmt: skip
"""The settings that choose today's prices."""


RUNS_PER_YEAR = {"day": 365, "week": 52, "month": 12}
"""The runs per year of a job that is run again every day, week or month."""


def default_count(name: str) -> int:
    """Return the default of a setting that takes whole numbers."""
    return int(job_settings()[name].default_value)


def recipe_settings() -> set[str]:
    """Return the names of the settings in the training recipe, which says how the model is trained."""
    return {name for name, setting in job_settings().items() if setting.recipe}


def _setting(row: dict[str, str]) -> JobSetting:
    return JobSetting(
        setting=row["setting"],
        kind=row["kind"],  # type: ignore[arg-type]  # the table checks it
        recipe=row["recipe"] == "true",
        least=float(row["least"]) if row["least"] else None,
        most=float(row["most"]) if row["most"] else None,
        default_value=row["default_value"],
        unit=row["unit"],
        named=row["named"],
        choices=tuple(row["choices"].split()),
        other_name=row["other_name"],
        meaning=row["meaning"],
    )
