"""Where gpufare stores its data and where it finds its SQL, catalogue and sample pages.

One environment variable, ``GPUFARE_HOME``, moves everything that gpufare writes.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

HOME_VARIABLE = "GPUFARE_HOME"


_BUNDLED = Path(__file__).parents[1] / "bundled"
_CLONE = Path(__file__).parents[2]
# A wheel carries them; a clone has them where they are edited.
SQL_DIR = _BUNDLED / "sql" if _BUNDLED.is_dir() else _CLONE / "sql"
CATALOG_DIR = _BUNDLED / "catalog" if _BUNDLED.is_dir() else _CLONE / "catalog"
PAGES_DIR = _BUNDLED / "pages" if _BUNDLED.is_dir() else _CLONE / "tests" / "pages"


@dataclass(frozen=True, slots=True)
class Home:
    """The folders under one GPUFARE_HOME.

    ``archive`` and ``record`` cannot be made again; ``cache``, ``published`` and ``report`` are built from
    them.
    """

    root: Path

    @property
    def archive(self) -> Path:
        """Raw answers, immutable: archive/<source>/<day>/<capture>/."""
        return self.root / "archive"

    @property
    def record(self) -> Path:
        """What was read of each source and day; only pipeline/record knows what lies where in it."""
        return self.root / "record"

    @property
    def digests(self) -> Path:
        """The digest of each morning that was posted, one text file per day."""
        return self.root / "digests"

    @property
    def damaged(self) -> Path:
        """Files of the other folders that could not be read, under the same relative path."""
        return self.root / "damaged"

    @property
    def calibration(self) -> Path:
        """Constants and bands that a calibration proposes, for review."""
        return self.root / "calibration"

    @property
    def cache(self) -> Path:
        """Results that depend on the catalogue and the model only, by the hash of their inputs."""
        return self.root / "cache"

    @property
    def models(self) -> Path:
        """The user's own models, in the columns of catalog/models.csv."""
        return self.root / "models.csv"

    @property
    def gpus(self) -> Path:
        """The user's own GPUs, in the columns of catalog/gpus.csv."""
        return self.root / "gpus.csv"

    @property
    def workloads(self) -> Path:
        """The user's own workloads; see pipeline/catalog/own.py."""
        return self.root / "workloads.csv"

    @property
    def permissions(self) -> Path:
        """Which sources the user enabled and disabled; see pipeline/capture/permissions.py."""
        return self.root / "permissions.json"

    @property
    def permissions_lock(self) -> Path:
        """Held while they are changed."""
        return self.root / "permissions.lock"

    @property
    def own_runs(self) -> Path:
        """The user's own measured runs; see pipeline/model/measuring/own_runs.py."""
        return self.root / "measured_runs.csv"

    @property
    def own_runs_lock(self) -> Path:
        """Held while a run is added."""
        return self.root / "measured_runs.lock"

    @property
    def lock(self) -> Path:
        """Held by whoever builds and publishes: one writer at a time."""
        return self.root / "publish.lock"

    @property
    def store(self) -> Path:
        """What this home exchanged with the lake."""
        return self.root / "store"

    @property
    def report(self) -> Path:
        """The page that Dagster writes after each publication."""
        return self.root / "report"

    @property
    def demo(self) -> Path:
        """The mark of a home of sample prices; see pipeline/refresh/demo.py."""
        return self.root / "demo.json"

    @property
    def published(self) -> Path:
        """The read-only database that users query."""
        return self.root / "published" / "gpufare.duckdb"


def home() -> Home:
    """Return the data home: $GPUFARE_HOME, or the user's data folder."""
    chosen = os.environ.get(HOME_VARIABLE)
    root = Path(chosen) if chosen else Path(platformdirs.user_data_dir("gpufare", appauthor=False))
    return Home(root.expanduser().absolute())
