"""The settings of a training job: catalog/job_settings.csv. The table ``job_settings`` explains its columns.

Read without the checks of other catalogues, whose imports would slow ``gpufare --help``.
"""

import csv
from dataclasses import dataclass
from functools import cache
from typing import Literal

from pipeline.home import paths

Kind = Literal["amount", "number", "whole", "flag", "name", "names", "machines"]


@dataclass(frozen=True, slots=True)
class JobSetting:
    """A row: a setting by its name in SQL and Python."""

    setting: str
    kind: Kind
    recipe: bool
    least: float | None
    most: float | None
    default_value: str
    unit: str
    choices: tuple[str, ...]
    other_name: str
    meaning: str

    @property
    def option(self) -> str:
        """The command-line option."""
        return f"--{self.setting.replace('_', '-')}"


@cache
def job_settings() -> dict[str, JobSetting]:
    """Return the settings by name, in the order of the file."""
    with (paths.CATALOG_DIR / "job_settings.csv").open(newline="", encoding="utf-8") as file:
        return {row["setting"]: _setting(row) for row in csv.DictReader(file)}


def default_count(name: str) -> int:
    """Return the default of a setting that is a whole number."""
    return int(job_settings()[name].default_value)


def recipe_settings() -> set[str]:
    """Return the names of the settings that say how a model is trained: not how much, where or for what."""
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
        choices=tuple(row["choices"].split()),
        other_name=row["other_name"],
        meaning=row["meaning"],
    )
