"""Writes the report on the published file."""

from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from pipeline.contracts.errors import GpufareError
from pipeline.home.disk import replacing
from pipeline.home.paths import Home
from pipeline.page.facts import facts
from pipeline.page.html import page
from pipeline.warehouse.query import QueryError, reader

FILE = "index.html"


def write_report(home: Home, folder: Path, now: datetime) -> Path:
    """Write the report on the home's published file to ``index.html`` in a folder; an earlier report is
    replaced once the new report is complete. The page gives ``now`` (UTC) as the time when it was made.

    Raises GpufareError if the file is missing, damaged or of another version, and UnwritableError.
    """
    with reader(home.published) as connection:
        try:
            found, arrays = facts(connection)
        except QueryError as error:
            reason = str(error).splitlines()[0]
            raise GpufareError(
                f"{home.published} is of another version of gpufare: run `gpufare refresh` ({reason})"
            ) from error
    written = {"version": version("gpufare"), "written_ms": int(now.timestamp() * 1000)}
    path = folder / FILE
    with replacing(path) as temporary:
        temporary.write_text(page({**found, **written}, arrays), encoding="utf-8")
    return path
