"""Whether a calibration today gives the reviewed files, to the digit."""

import tempfile
from datetime import date
from pathlib import Path

from pipeline import settings
from pipeline.model.calibrate import BANDS_FILE, CONSTANTS_FILE, calibrate


def changed_files(today: date) -> list[str]:
    """The files of the catalogue that a calibration would change; none when they are reproduced."""
    with tempfile.TemporaryDirectory() as folder:
        calibrate(today, Path(folder))
        return [
            name
            for name in (CONSTANTS_FILE, BANDS_FILE)
            if (Path(folder) / name).read_bytes() != (settings.CATALOG_DIR / name).read_bytes()
        ]
