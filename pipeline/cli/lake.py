"""The record in a DuckLake that several machines share."""

from datetime import date, datetime
from typing import TYPE_CHECKING

import click

from pipeline.cli.parameters import DAY
from pipeline.cli.terminal import progress_shown, say
from pipeline.home import paths

if TYPE_CHECKING:
    from pipeline.lake.exchange import Exchange

SINCE = click.option("--since", type=DAY, help="Only days from this one on (UTC); all by default.")


@click.group()
def lake() -> None:
    """Share the record with other machines through a DuckLake: GPUFARE_LAKE names its catalogue."""


@lake.command()
@click.option("--data", required=True, help="Where its files go: an absolute folder, or s3://BUCKET/PREFIX.")
def create(data: str) -> None:
    """Make the lake whose catalogue GPUFARE_LAKE names."""
    from pipeline.lake.exchange import create as make
    from pipeline.lake.settings import lake_of

    make(lake_of(), data)
    say(f"made the lake; its data are at {data}")


@lake.command()
@SINCE
@click.option(
    "--published",
    is_flag=True,
    help="Also the rankings and the tables of the published file: on the machine that publishes.",
)
def push(since: datetime | None, published: bool) -> None:
    """Put what changed in the record here into the lake."""
    from pipeline.lake.exchange import push as run
    from pipeline.lake.settings import lake_of
    from pipeline.lake.tables import publish_tables

    with progress_shown("pushing") as progress:
        if published:
            found = publish_tables(paths.home(), lake_of())
            say(f"published {found.tables} tables in the lake, {found.replaced} of them new")
        exchange = run(paths.home(), lake_of(), _day(since), progress, rankings=published)
    _report("pushed", exchange)


@lake.command()
@SINCE
def pull(since: datetime | None) -> None:
    """Write what the lake has and the record here lacks into the record; `gpufare refresh` publishes it."""
    from pipeline.lake.exchange import pull as run
    from pipeline.lake.settings import lake_of

    with progress_shown("pulling") as progress:
        exchange = run(paths.home(), lake_of(), _day(since), progress)
    _report("pulled", exchange)


def _day(since: datetime | None) -> date:
    return since.date() if since else date.min


def _report(what: str, exchange: "Exchange") -> None:
    own = f"; {len(exchange.own)} made here stay" if exchange.own else ""
    say(f"{what} {len(exchange.moved)} days; {len(exchange.same)} were there already{own}")
    for name, why in exchange.left.items():
        say(f"left alone: {name}: {why}")
    if exchange.left:
        raise SystemExit(1)
