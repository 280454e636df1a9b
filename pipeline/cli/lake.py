"""The record in a DuckLake that several machines share."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.parameters import DAY
from pipeline.cli.terminal import progress_shown, say
from pipeline.contracts.progress import Step
from pipeline.home import paths
from pipeline.parsing.printable import printable

if TYPE_CHECKING:
    from pipeline.record.months import SourceDay
    from pipeline.record.records import Records

PACKAGES = Path(sys.prefix) / "lake"
"""The folder in this environment that holds the packages listed in requirements-lake.lock."""

SINCE = click.option("--since", type=DAY, help="Only days from this one on (UTC); all by default.")


@click.group()
def lake() -> None:
    """Share the record with other machines through a DuckLake whose catalogue is set in GPUFARE_LAKE.

    DuckLake is not yet available for DuckDB 2, so these commands run with DuckDB 1.5.5 and its extensions,
    which `make .venv/lake/.ready` installs alongside gpufare's own packages.
    """


@lake.command()
@click.option("--data", required=True, help="The lake's folder: an absolute path, or s3://BUCKET/PREFIX.")
def create(data: str) -> None:
    """Create the lake whose catalogue is set in GPUFARE_LAKE."""
    _need_extensions("create", "--data", data)
    from pipeline.lake.exchange import create as make

    make(data)
    say(f"created the lake; its data is at {data}")


@lake.command()
@SINCE
def push(since: datetime | None) -> None:
    """Copy the days that are newer in this home's record to the lake."""
    _need_extensions("push", *_since(since))
    from pipeline.lake.exchange import push as run

    _exchange("pushed", run, since)


@lake.command()
@SINCE
def pull(since: datetime | None) -> None:
    """Copy the days that are newer in the lake to the record; `gpufare refresh` publishes them."""
    _need_extensions("pull", *_since(since))
    from pipeline.lake.exchange import pull as run

    _exchange("pulled", run, since)


def _since(since: datetime | None) -> list[str]:
    return ["--since", f"{since:%Y-%m-%d}"] if since else []


def _need_extensions(*arguments: str) -> None:
    """Unless this process has the lake's packages, run the command in a new process with those packages first
    on its path, and exit with its exit code. Raises click.ClickException if the packages are not installed.
    """
    if find_spec("duckdb_extension_ducklake") is not None:
        return
    if str(PACKAGES) in sys.path or not (PACKAGES / "duckdb_extension_ducklake").is_dir():
        raise click.ClickException(
            f"DuckLake cannot be used from {PACKAGES}: run `make .venv/lake/.ready` in a clone, or the "
            "`pip install --target` command of docs/how-to/scaling.md"
        )
    command = [sys.executable, "-P", "-m", "pipeline.cli", "lake", *arguments]
    first = os.pathsep.join([str(PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = subprocess.run(command, env=os.environ | {"PYTHONPATH": first}, check=False)  # noqa: S603 - this Python
    raise SystemExit(run.returncode)


def _exchange(
    what: str, run: "Callable[[Records, date], Iterator[tuple[SourceDay, str]]]", since: datetime | None
) -> None:
    from pipeline.lake.exchange import MOVED, OTHER_SIDE, SAME
    from pipeline.record.records import Records

    counts: Counter[str] = Counter()
    skipped = []
    with progress_shown(what) as progress:
        for (source, day), verdict in run(Records(paths.home()), since.date() if since else date.min):
            progress(Step(f"{what} {printable(source)} {day}"))
            counts[verdict] += 1
            if verdict not in (MOVED, SAME, OTHER_SIDE):
                skipped.append(f"skipped {printable(source)} {day}: {printable(verdict)}")
    other = {"pushed": "newer in the lake", "pulled": "newer here"}[what]
    say(f"{what} {counts[MOVED]} days; {counts[SAME]} are the same, {counts[OTHER_SIDE]} are {other}")
    for line in skipped:
        say(line)
    if skipped:
        raise SystemExit(1)
