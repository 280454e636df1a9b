"""A pytest plugin that takes sql/ from the folder in GPUFARE_MUTATED_SQL."""

import os
from pathlib import Path

from pipeline.home import paths

paths.SQL_DIR = Path(os.environ["GPUFARE_MUTATED_SQL"])
