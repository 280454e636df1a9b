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

    ``archive``, ``offers``, ``rejects``, ``outcomes``, ``exchange_rates``, ``rankings`` and ``incidents`` are
    the record; ``cache``, ``published`` and ``report`` can be built again from it.
    """

    root: Path

    @property
    def archive(self) -> Path:
        """Raw answers, immutable: archive/<source>/<day>/<capture>/."""
        return self.root / "archive"

    @property
    def offers(self) -> Path:
        """Accepted offers, one Parquet file per source and day, or month (see record/compaction.py)."""
        return self.root / "offers"

    @property
    def rejects(self) -> Path:
        """Rejected rows with their reason, one Parquet file per source and day, or month."""
        return self.root / "rejects"

    @property
    def outcomes(self) -> Path:
        """The outcome of each attempt, one JSON file each: outcomes/<source>/<day>/<attempt>.json; or one
        Parquet file per source and month."""
        return self.root / "outcomes"

    @property
    def incidents(self) -> Path:
        """What went wrong with files, the disk or runs, one JSON file each."""
        return self.root / "incidents"

    @property
    def digests(self) -> Path:
        """The digest of each morning that was posted, one text file per day."""
        return self.root / "digests"

    @property
    def damaged(self) -> Path:
        """Files of the other folders that could not be read, under the same relative path."""
        return self.root / "damaged"

    @property
    def exchange_rates(self) -> Path:
        """The exchange rates of each day, one JSON file per day, or one Parquet file per month."""
        return self.root / "exchange_rates"

    @property
    def calibration(self) -> Path:
        """Constants and bands that a calibration proposes, for review."""
        return self.root / "calibration"

    @property
    def cache(self) -> Path:
        """Results that depend on the catalogue and the model only, by the hash of their inputs."""
        return self.root / "cache"

    @property
    def rankings(self) -> Path:
        """The best of the ranking of each published day as it was published, one Parquet file per day."""
        return self.root / "rankings"

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
        """What is known of the object store that keeps this home; made again from the store."""
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
