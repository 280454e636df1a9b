"""A way to run a job, or a price, in one line, with what tells how far to trust it."""

from collections.abc import Collection, Mapping
from typing import Any

from pipeline.questions.numbers import number_text, price_text
from pipeline.questions.reasons import percent_text
from pipeline.questions.words import cautions, price_doubts, way_text

_AS_GIVEN = ("own", "quote")
"""The kinds of prices that the user gives, which have no age."""


def short_text(
    name: str, row: Mapping[str, Any], replayed: Collection[str] = (), *, careful: bool = True
) -> str:
    """Return a row of ``cheapest_for`` in a sentence that begins with its ``name``: cost in US dollars and
    hours with their bands, P(fits), the day and age of the price, the evidence of the speed and, if
    ``careful``, its cautions. ``replayed`` lists the sources whose prices come from saved pages and could
    pass for live ones."""
    hours, low, high = (number_text(row[name]) for name in ("hours", "hours_low", "hours_high"))
    doubts = "; ".join(all_cautions(row, replayed)) if careful else ""
    return (
        f"{name}: {way_text(row)}, ${row['total_usd']:,.2f} "
        f"(${row['total_usd_low']:,.2f} to ${row['total_usd_high']:,.2f}), {hours} hours ({low} to {high}), "
        f"P(fits) {percent_text(row['fit_probability'])}, {_age(row)}, speed {row['evidence']}."
        + (f" CAREFUL: {doubts}." if doubts else "")
    )


def all_cautions(row: Mapping[str, Any], replayed: Collection[str] = ()) -> list[str]:
    """Return the cautions of a row of ``cheapest_for`` in words, after what speaks against its price besides
    the age that is told anyway; ``replayed``: as for ``short_text``."""
    if row["price_kind"] in _AS_GIVEN:
        return cautions(row)
    return [*price_doubts(row, replayed, row["price_age_days"]), *cautions(row)]


def short_price(row: Mapping[str, Any], replayed: Collection[str] = ()) -> str:
    """Return a row of ``gpu_prices`` in a line: US dollars per GPU-hour, the machine, its place, kind, term
    and stock, and the day and age of the price."""
    term = f", for {row['term_days']} days" if row["term_days"] else ""
    stock = {True: "in stock", False: "sold out"}.get(row["available"], "stock not stated")
    doubt = "; a newer price is held as doubtful" if row["doubt"] else ""
    saved = "; from a saved page: the provider was not asked" if row["source"] in replayed else ""
    price = price_text(row["usd_per_gpu_hour"])
    return f"${price} per GPU-hour: {way_text(row)}{term}, {stock}, {_age(row)}{doubt}{saved}"


def _age(row: Mapping[str, Any]) -> str:
    if row["price_kind"] in _AS_GIVEN:
        return "price as you gave it"
    return f"price of {row['price_day']} ({row['price_age_days']} days old)"
