"""What is on the market: prices per GPU-hour, and the names of GPUs and models."""

from collections.abc import Sequence
from decimal import Decimal
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.completion import names_of
from pipeline.cli.job_options import OF_PRICES, with_options
from pipeline.cli.parameters import FORMAT
from pipeline.cli.questions import NO_ANSWER, NOT_BELOW, not_asked, rows_on_screen
from pipeline.cli.questions import prices as published_prices
from pipeline.cli.terminal import say, tell
from pipeline.questions.numbers import price_text
from pipeline.warehouse.query import Result

if TYPE_CHECKING:
    from pipeline.questions.session import Session

DAILY = ("gpu_id", "price_kind", "usd_per_gpu_hour", "lowest", "highest", "history", "source")
GPUS = (
    "gpu_id", "memory_gb", "bf16_dense_tflops", "bandwidth_gb_s", "on_demand_usd_per_gpu_hour",
    "spot_usd_per_gpu_hour", "providers", "vendor", "architecture", "year",
)  # fmt: skip
MODELS = ("model", "params_billion", "active_billion", "max_context", "licence", "hf_id")
"""Columns of tables for people, most important first; csv and json give all columns."""

AROUND_PRICES = 9
"""Lines of a screen besides prices and their notes: the command, two of headings, two of hidden columns, how
many more there are, two of the prices' age, and the next prompt."""


@click.command()
@click.argument("gpu", nargs=-1, shell_complete=names_of("gpu"))
@with_options(*OF_PRICES)
@click.option("--history", "daily", is_flag=True, help="Show the lowest price on each day on record.")
@click.option(
    "--limit", type=click.IntRange(min=1), help="Rows to show; by default, all, or as many as fit the screen."
)
@click.option(
    "--below",
    help="Check whether the cheapest price is below this many US dollars per GPU-hour, for use in cron.",
)
@FORMAT
def prices(
    gpu: tuple[str, ...], daily: bool, limit: int | None, below: str | None, form: str, **constraints: Any
) -> None:
    """Show prices in dollars per GPU-hour, by card and provider, cheapest first.

    GPU is a card or a family of cards, such as rtx-4090, h100 or hopper. Without a GPU, the cheapest price of
    each card is shown. Prices are on demand, unless --kind says otherwise.

    With --below, the exit code is 0 if the cheapest price is below the limit, 3 if it is not, and 4 if there
    is no price; --max-age-days excludes old prices.
    """
    from pipeline.questions import gpu_prices
    from pipeline.questions.job import number

    if daily and below is not None:
        raise click.UsageError("--below looks at today's prices: leave out --history")
    below_usd = None if below is None else number("below", below, "USD")
    with published_prices() as session:
        ask = gpu_prices.daily_prices if daily else gpu_prices.prices
        found, asked = ask(session, {"gpu": gpu, **constraints})
        if found.rows:
            _show_prices(session, found, asked, limit, form)
        elif below_usd is None:
            raise click.ClickException(gpu_prices.no_price_text(asked))
        else:
            say(gpu_prices.no_price_text(asked))
            raise click.exceptions.Exit(NO_ANSWER)
        is_below = below_usd is None or _is_below(found, below_usd)
    if not is_below:
        raise click.exceptions.Exit(NOT_BELOW)


def _show_prices(
    session: "Session", found: Result, asked: dict[str, Any], limit: int | None, form: str
) -> None:
    from pipeline.cli.printing import show
    from pipeline.questions import gpu_prices
    from pipeline.questions.tables import prices_for_people

    if form != "table":
        show(found if limit is None else found.first(limit), form)
        return
    notes, missing = gpu_prices.price_notes(found, asked), not_asked(session)
    if "day" in found.columns:
        _show_daily(found, limit, [*notes, *missing])
    else:
        some = found if asked["asked"].get("gpu") else gpu_prices.cheapest_of_each(found)
        shown = prices_for_people(some)
        _show_some(shown, limit, [*notes, *missing], f"--limit {len(some.rows)} shows them")
    for line in notes:
        tell(line)
    for line in missing:
        say(line)


def _is_below(found: Result, below_usd: float) -> bool:
    """Print whether the cheapest price is below a limit in US dollars per GPU-hour; return True if it is."""
    cheapest_usd = next(found.dicts())["usd_per_gpu_hour"]
    is_below = float(cheapest_usd) < below_usd
    is_or_not = "below" if is_below else "not below"
    say(f"The cheapest price is ${price_text(cheapest_usd)} per GPU-hour, {is_or_not} ${below_usd:,.10g}.")
    return is_below


def _show_daily(found: Result, limit: int | None, others: Sequence[str]) -> None:
    """Print a row per card and price kind, cheapest first, with the newest, lowest and highest price and a
    line of prices: ``limit`` rows, or as many as fit the screen beside ``others``."""
    from pipeline.questions.tables import OF_OFFERS, for_people

    series = groupby(found.dicts(), key=lambda row: (row["gpu_id"], row["price_kind"]))
    rows = sorted((_with_line(list(days)) for _, days in series), key=lambda row: row["usd_per_gpu_hour"])
    types = dict(zip(found.columns, found.types, strict=True)) | dict.fromkeys(
        ("lowest", "highest"), "DOUBLE"
    )
    lined = Result(
        tuple(rows[0]),
        tuple(types.get(name, "VARCHAR") for name in rows[0]),
        [tuple(row.values()) for row in rows],
    )
    shown = for_people(lined, DAILY, price_kind=OF_OFFERS["price_kind"])
    _show_some(shown, limit, others, f"--limit {len(shown.rows)} shows them")
    days = sorted({row["day"] for row in found.dicts()})
    if len(days) == 1:
        tell(f"The only day on record is {days[0]}.")
    else:
        tell(f"{len(days)} days on record, {days[0]} to {days[-1]}; a line has those with a price.")


def _show_some(shown: Result, limit: int | None, others: Sequence[str], narrower: str) -> None:
    """Print ``limit`` rows of a table for people, or as many as fit the screen beside ``others``; unless a
    limit was given, count the rest and say with ``narrower`` how to see it."""
    from pipeline.cli.printing import show

    rows = limit or rows_on_screen(others, AROUND_PRICES) or len(shown.rows)
    show(shown.first(rows), "table")
    if limit is None and (more := len(shown.rows) - rows) > 0:
        say(f"{more:,} more: {narrower}")


def _with_line(days: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the newest of a card's daily prices, with the lowest, the highest and a line of all of them."""
    from pipeline.questions.tables import prices_line

    usd = [Decimal(f"{row['usd_per_gpu_hour']:.6f}") for row in days]
    line = prices_line([float(each) for each in usd])
    return days[-1] | {"usd_per_gpu_hour": usd[-1], "lowest": min(usd), "highest": max(usd), "history": line}


@click.command()
@click.argument("text", nargs=-1)
@FORMAT
def gpus(text: tuple[str, ...], form: str) -> None:
    """List the GPUs, or those whose names contain TEXT: memory, speed and the cheapest prices."""
    from pipeline.questions.gpu_prices import gpus as gpus_of

    with published_prices(with_age=False) as session:
        _show_list(gpus_of(session, " ".join(text) or None), GPUS, form)


@click.command()
@click.argument("text", nargs=-1)
@FORMAT
def models(text: tuple[str, ...], form: str) -> None:
    """List the models, or those whose names contain TEXT: parameters, context and licence."""
    from pipeline.questions.gpu_prices import models as models_of

    with published_prices(with_age=False) as session:
        _show_list(models_of(session, " ".join(text) or None), MODELS, form)


def _show_list(found: Result, names: Sequence[str], form: str) -> None:
    from pipeline.cli.printing import show
    from pipeline.questions.tables import for_people

    if form == "table":
        _show_some(for_people(found, names), None, [], "name a part of a name, or use --format csv")
    else:
        show(found, form)
