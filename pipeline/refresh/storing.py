from collections.abc import Mapping

from pipeline.contracts.progress import Progress, no_progress
from pipeline.home.paths import Home


def store_home(home: Home, environment: Mapping[str, str], progress: Progress = no_progress) -> str | None:
    return None
