"""The data home of the assets, the same as the command line's."""

import os
from pathlib import Path

import dagster as dg
from pydantic import Field

from pipeline.home import paths
from pipeline.home.paths import Home

REPLAY_VARIABLE = "GPUFARE_REPLAY_URL"


class GpufareHome(dg.ConfigurableResource[Home]):
    """The data home, and the server to ask."""

    root: str = Field(default="", description="Empty: $GPUFARE_HOME or the user's data folder.")
    replay_url: str = Field(
        default="",
        description="A replay server (python -m pipeline.capture.replay PAGES) that answers every request "
        f"in place of the providers. Empty: ${REPLAY_VARIABLE}, or the providers themselves.",
    )

    def folders(self) -> Home:
        """Return the home at ``root``."""
        return Home(Path(self.root)) if self.root else paths.home()

    def replay_server(self) -> str | None:
        """Return the replay server's address; None to ask the providers."""
        return self.replay_url or os.environ.get(REPLAY_VARIABLE) or None
