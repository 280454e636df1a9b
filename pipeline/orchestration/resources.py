"""The data home of the assets, which is the same as the command line's."""

import os
from pathlib import Path

import dagster as dg
from pydantic import Field

from pipeline.home import paths
from pipeline.home.paths import Home

PAGES_VARIABLE = "GPUFARE_PAGES"


class GpufareHome(dg.ConfigurableResource[Home]):
    """The data home, and the saved pages to read in place of the providers' pages."""

    root: str = Field(default="", description="Empty: $GPUFARE_HOME or the user's data folder.")
    pages: str = Field(
        default="",
        description="A folder of saved pages, or the URL of a replay server, that answers in place of the "
        f"providers. Empty: ${PAGES_VARIABLE}, or the providers themselves.",
    )

    def folders(self) -> Home:
        """Return the home at ``root``."""
        return Home(Path(self.root)) if self.root else paths.home()

    def saved_pages(self) -> str | None:
        """Return the folder or URL of the saved pages; None to ask the providers."""
        return self.pages or os.environ.get(PAGES_VARIABLE) or None
