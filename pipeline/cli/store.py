"""The object store that keeps the home: push, pull, and where the newest published file is."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.parameters import FORMATS
from pipeline.cli.terminal import progress_shown, say, tell
from pipeline.home import paths
from pipeline.home.paths import Home
from pipeline.parsing.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.store.bucket import Bucket
    from pipeline.store.left import Left

MAX_SHOWN = 20


@click.group()
@click.option("--store", "address", help="The store; by default the one in GPUFARE_STORE.")
@click.pass_context
def store(context: click.Context, address: str | None) -> None:
    """Keep the home in an object store: s3://, gs:// or az://BUCKET/PREFIX, or file:///FOLDER.

    Keys are read from the environment, under each provider's own names:
    docs/how-to/object-stores.md says which.
    """
    context.obj = address


@store.command("push")
@click.option(
    "--replace", is_flag=True, help="Where another machine changed the same file, keep this home's."
)
@click.pass_obj
def push_command(address: str | None, replace: bool) -> None:
    """Send what the store lacks of this home. Each refresh does so, too, where GPUFARE_STORE is set."""
    from pipeline.store.push import push

    with progress_shown("sending") as progress:
        report = push(paths.home(), _bucket(address), datetime.now(UTC), replace=replace, progress=progress)
    tell(report.line())
    _show_left([*report.conflicts, *report.problems], "not stored")


@store.command("pull")
@click.argument("home", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option("--without-archive", is_flag=True, help="Leave out the raw answers: no day can be read again.")
@click.option("--published-only", is_flag=True, help="Only the newest published file: enough to ask.")
@click.pass_obj
def pull_command(address: str | None, home: Path | None, without_archive: bool, published_only: bool) -> None:
    """Fetch record, archive and published file into HOME, by default this one, and check every byte.

    What is here already is not fetched again. A file that differs here and was never in the store stays.
    """
    from pipeline.store.pull import pull

    with progress_shown("fetching") as progress:
        report = pull(
            Home(home.absolute()) if home else paths.home(),
            _bucket(address),
            datetime.now(UTC),
            with_archive=not without_archive,
            with_record=not published_only,
            progress=progress,
        )
    tell(report.line())
    _show_left([*report.conflicts, *report.problems], "not fetched")


@store.command("prune")
@click.option(
    "--keep", type=click.IntRange(min=1), default=7, show_default=True, help="So many newest files stay."
)
@click.option(
    "--grace-days",
    type=click.FloatRange(min=0),
    default=7,
    show_default=True,
    help="So long a file stays after a prune first saw that it is not the newest.",
)
@click.pass_obj
def prune_command(address: str | None, keep: int, grace_days: float) -> None:
    """Delete old published files: never the newest, none that a reader may still read.

    Record and archive are not touched. The store's key needs the right to delete.
    """
    from pipeline.home.disk import size_text
    from pipeline.store.prune import prune

    found = prune(_bucket(address), datetime.now(UTC), keep=keep, grace=timedelta(days=grace_days))
    deleted = f"deleted {len(found.deleted)} published files ({size_text(found.deleted_bytes)})"
    waiting = f"{len(found.waiting)} more until {grace_days:g} days after they were replaced"
    say(f"{deleted}; {len(found.kept)} are kept, {waiting}")


@store.command("newest")
@click.option("--format", "form", type=FORMATS, default="table", show_default=True)
@click.pass_obj
def newest_command(address: str | None, form: Any) -> None:
    """Print the address of the newest published file, its SHA-256, and what it is as of."""
    from pipeline.cli.printing import show
    from pipeline.contracts.errors import GpufareError
    from pipeline.store.publication import newest
    from pipeline.warehouse.query import Result

    bucket = _bucket(address)
    found = newest(bucket)
    if found is None:
        raise GpufareError(
            f"nothing is published at {bucket.address}: run `gpufare store push` where there is"
        )
    row = (bucket.url(found.name), found.sha256, found.bytes, found.as_of_day, found.as_of_time)
    types = ("VARCHAR", "VARCHAR", "BIGINT", "DATE", "TIMESTAMP WITH TIME ZONE")
    show(Result(("url", "sha256", "bytes", "as_of_day", "as_of_time"), types, [row]), form)


def _bucket(address: str | None) -> "Bucket":
    from pipeline.store.address import STORE_VARIABLE, StoreError, checked_address, store_address
    from pipeline.store.bucket import Bucket

    chosen = checked_address(address) if address else store_address(os.environ)
    if chosen is None:
        raise StoreError(
            f"no store is named: set {STORE_VARIABLE} or give --store, such as s3://BUCKET/PREFIX"
        )
    return Bucket(chosen, os.environ)


def _show_left(left: "Sequence[Left]", what: str) -> None:
    """What was left out, on stderr. Raises ClickException, for exit code 1."""
    for each in left[:MAX_SHOWN]:
        say(printable(f"{what}: {each.line()}"))
    if left:
        raise click.ClickException(f"{len(left)} {what}")
