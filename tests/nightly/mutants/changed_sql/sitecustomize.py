"""Takes sql/ from the folder in GPUFARE_CHANGED_SQL, in this process and in those that it starts."""

import os
from pathlib import Path

from pipeline.home import paths

paths.SQL_DIR = Path(os.environ["GPUFARE_CHANGED_SQL"])
