"""Which lake, and which Python talks to it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.contracts.errors import GpufareError

LAKE_VARIABLE = "GPUFARE_LAKE"
PYTHON_VARIABLE = "GPUFARE_LAKE_PYTHON"

_OF_A_CLONE = Path(__file__).parents[2] / ".venv-lake" / "bin" / "python"


class LakeError(GpufareError):
    """The lake cannot be used, or refused something: says why and what to do."""


@dataclass(frozen=True, slots=True)
class Lake:
    """``catalogue``: the address of the PostgreSQL database, with its password. ``python``: an interpreter
    whose environment has requirements-lake.lock."""

    catalogue: str
    python: Path


def lake_of(environment: Mapping[str, str] = os.environ) -> Lake:
    """The lake that is set. Raises LakeError."""
    catalogue = environment.get(LAKE_VARIABLE, "")
    if not catalogue.startswith(("postgresql://", "postgres://")):
        raise LakeError(
            f"set {LAKE_VARIABLE}=postgresql://USER:PASSWORD@HOST/DATABASE, the catalogue of the lake"
        )
    python = Path(environment.get(PYTHON_VARIABLE) or _OF_A_CLONE)
    if not python.exists():
        raise LakeError(
            f"there is no {python}: run `make .venv-lake/.ready`, or set {PYTHON_VARIABLE} to a Python with "
            "the packages of requirements-lake.lock"
        )
    return Lake(catalogue, python)
