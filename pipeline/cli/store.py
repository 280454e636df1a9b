"""Commands for the bucket with the published file: sending it, and finding the newest one."""

import os
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.parameters import FORMAT
from pipeline.cli.terminal import progress_shown, tell
from pipeline.home import paths
from pipeline.home.paths import Home

if TYPE_CHECKING:
    from pipeline.store.bucket import Bucket
    from pipeline.store.publication import Writer


@click.group()
@click.option("--store", "address", help="The bucket and prefix; by default, those in GPUFARE_STORE.")
@click.pass_context
def store(context: click.Context, address: str | None) -> None:
    """Keep the published file in a bucket: s3://, gs:// or az://BUCKET/PREFIX, or file:///FOLDER.

    Keys are read from the environment, under the variable names that each provider uses;
    docs/how-to/object-stores.md lists these variables.
    """
    context.obj = address


@store.command("publish")
@click.option("--page", is_flag=True, help="Also send the page, as `gpufare report` writes it.")
@click.option(
    "--export",
    "forms",
    type=click.Choice(["csv", "parquet"]),
    multiple=True,
    help="Also send every table in this format, as `gpufare export` writes it.",
)
@click.pass_obj
def publish_command(address: str | None, page: bool, forms: tuple[str, ...]) -> None:
    """Send the published file and mark it as the newest, unless the bucket has a newer one.

    If GPUFARE_STORE is set, each refresh also does this.
    """
    from pipeline.store.publication import publish

    writers: dict[str, Writer] = {form: partial(_write_export, form) for form in forms}
    if page:
        writers["page"] = _write_page
    with progress_shown("sending") as progress:
        line = publish(paths.home(), _bucket(address), writers, progress)
    tell(line)


@store.command("newest")
@FORMAT
@click.pass_obj
def newest_command(address: str | None, form: str) -> None:
    """Print the time of the newest publication, and each part's address, SHA-256 and size."""
    from pipeline.cli.printing import show
    from pipeline.contracts.errors import GpufareError
    from pipeline.store.publication import newest
    from pipeline.warehouse.query import Result

    bucket = _bucket(address)
    found = newest(bucket)
    if found is None:
        remedy = "run `gpufare store publish` on the machine that publishes"
        raise GpufareError(f"nothing is published at {bucket.address}: {remedy}")
    rows = [
        (part, bucket.url(file.name), file.sha256, file.bytes, found.as_of_day, found.as_of_time)
        for part, file in {"database": found.database, **found.others}.items()
    ]
    types = ("VARCHAR", "VARCHAR", "VARCHAR", "BIGINT", "DATE", "TIMESTAMP WITH TIME ZONE")
    show(Result(("part", "url", "sha256", "bytes", "as_of_day", "as_of_time"), types, rows), form)


def _bucket(address: str | None) -> "Bucket":
    from pipeline.store.address import STORE_VARIABLE, StoreError, checked_address, store_address
    from pipeline.store.publication import bucket_at

    chosen = checked_address(address) if address else store_address(os.environ)
    if chosen is None:
        raise StoreError(
            f"no bucket is named: set {STORE_VARIABLE} or give --store, such as s3://BUCKET/PREFIX"
        )
    return bucket_at(chosen)


def _write_page(published: Home, folder: Path) -> Path:
    from pipeline.page.write import write_report

    return write_report(published, folder, datetime.now(UTC))


def _write_export(form: str, published: Home, folder: Path) -> Path:
    from pipeline.export.folder import DESCRIPTOR
    from pipeline.export.layouts import write
    from pipeline.warehouse.query import reader

    with reader(published.published, writes_files=True) as connection:
        write(connection, folder, None, form, [], None)
    return folder / DESCRIPTOR
