"""Where the assets store their data: in the same home as the command line."""

from pathlib import Path

import dagster as dg

from pipeline.contracts import paths
from pipeline.contracts.paths import Home


class GpufareHome(dg.ConfigurableResource[Home]):
    """The data home. ``root`` is for tests; empty means $GPUFARE_HOME or the user's data folder.

    ``replay_url`` sends every request to a replay server instead of to the providers.
    """

    root: str = ""
    replay_url: str = ""

    def folders(self) -> Home:
        """The folders under ``root``."""
        return Home(Path(self.root)) if self.root else paths.home()
