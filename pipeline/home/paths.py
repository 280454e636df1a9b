"""Paths of gpufare's data, SQL, catalogue and sample pages.

One environment variable, ``GPUFARE_HOME``, moves everything that gpufare writes.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

HOME_VARIABLE = "GPUFARE_HOME"


_BUNDLED = Path(__file__).parents[1] / "bundled"
_CLONE = Path(__file__).parents[2]
# A wheel bundles these folders; in a clone, they are at the top level.
IS_CLONE = not _BUNDLED.is_dir()
SQL_DIR = _CLONE / "sql" if IS_CLONE else _BUNDLED / "sql"
CATALOG_DIR = _CLONE / "catalog" if IS_CLONE else _BUNDLED / "catalog"
PAGES_DIR = _CLONE / "tests" / "pages" if IS_CLONE else _BUNDLED / "pages"


def command_to_install(extra: str = "") -> str:
    """Return the command that installs the packages that a small install lacks: in a clone, all of them;
    elsewhere, those of a default install or of an extra."""
    if IS_CLONE:
        return "make .venv/.ready"
    return f"pip install 'gpufare[{extra}]'" if extra else "pip install gpufare"


class _Place:
    """A file or folder of a home, by its path below the root."""

    def __init__(self, *path: str) -> None:
        self._path = path

    def __get__(self, home: "Home", _owner: type["Home"]) -> Path:
        return home.root.joinpath(*self._path)


@dataclass(frozen=True, slots=True)
class Home:
    """The files and folders under one GPUFARE_HOME.

    ``archive`` and ``record`` cannot be recreated; ``cache``, ``published`` and ``report`` are built from
    them.
    """

    root: Path

    archive = _Place("archive")
    """Raw answers, which are never changed: archive/<source>/<day>/<capture>/."""
    record = _Place("record")
    """Offers, rejects and outcomes of each source and day; only pipeline/record knows their paths."""
    digests = _Place("digests")
    """The digests that were posted, one each morning, as one text file per day."""
    damaged = _Place("damaged")
    """Files from the other folders that could not be read, under the same relative paths."""
    cache = _Place("cache")
    """Results that depend only on the catalogue and the model, named after the hash of their inputs."""
    models = _Place("models.csv")
    """The user's own models, with the columns of catalog/models.csv."""
    gpus = _Place("gpus.csv")
    """The user's own GPUs, with the columns of catalog/gpus.csv."""
    workloads = _Place("workloads.csv")
    """The user's own workloads; see pipeline/catalog/own.py."""
    reviews = _Place("reviews.json")
    """The user's word on held prices and refused readings; see pipeline/gates/reviews.py."""
    permissions = _Place("permissions.json")
    """The sources that the user enabled or disabled; see pipeline/capture/permissions.py."""
    permissions_lock = _Place("permissions.lock")
    """Lock held while permissions.json or reviews.json is changed."""
    own_runs = _Place("measured_runs.csv")
    """The user's own measured runs; see pipeline/model/own_runs.py."""
    own_corrections = _Place("cache", "own_corrections.json")
    """The corrections of the model's estimates from own runs; see pipeline/model/corrections.py."""
    own_runs_lock = _Place("measured_runs.lock")
    """Lock held while a run is added."""
    lock = _Place("publish.lock")
    """Lock held while building and publishing: one writer at a time."""
    report = _Place("report")
    """The page that Dagster writes after each publication."""
    demo = _Place("demo.json")
    """The file that marks a home as containing sample prices; see pipeline/refresh/demo.py."""
    published = _Place("published", "gpufare.duckdb")
    """The read-only database that users query."""

    @property
    def is_demo(self) -> bool:
        """True if the home contains the demo's sample prices, beside which no other prices belong."""
        return self.demo.exists()

    def places(self) -> list[Path]:
        """Return every file and folder of a home; only the files' names have a suffix."""
        return [getattr(self, name) for name, place in vars(Home).items() if isinstance(place, _Place)]


def home() -> Home:
    """Return the data home: $GPUFARE_HOME, or else gpufare's folder in the user's data folder."""
    chosen = os.environ.get(HOME_VARIABLE)
    root = Path(chosen) if chosen else Path(platformdirs.user_data_dir("gpufare", appauthor=False))
    return Home(root.expanduser().absolute())
