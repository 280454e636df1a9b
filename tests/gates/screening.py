"""Screening of a made-up source's prices, for the tests of the gates."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.offer import Offer
from pipeline.contracts.rates import Rate
from pipeline.gates.held import HeldPrice, Moves
from pipeline.gates.history import History, dated_price
from pipeline.gates.judge import Screened, screen
from pipeline.gates.prices import PriceKey, price_key
from pipeline.gates.reviews import NO_REVIEWS, Review, Reviews, Verdict
from tests.offers.builders import config, offer

DAY = date(2026, 8, 22)
YESTERDAY = DAY - timedelta(days=1)
H100, H100_PCIE, A100 = "h100-sxm-80gb", "h100-pcie-80gb", "a100-sxm-80gb"

STEADY = [offer(f"{number + 5}.00", raw_label=f"card {number}", gpu_id=None) for number in range(3)]
"""Prices of cards that are not compared by their GPU."""


def screened(
    now: Iterable[Offer],
    before: Iterable[Offer] = (),
    expect: SourceConfig | None = None,
    held: Mapping[PriceKey, HeldPrice] | None = None,
    moves: Moves = lambda *_: (),
    reviews: Reviews = NO_REVIEWS,
    earlier: Mapping[date, Sequence[Offer]] | None = None,
    rates: Mapping[str, Rate] | None = None,
    page_days: Mapping[str, date] | None = None,
) -> Screened:
    """Screen a day's prices, beside steady ones, after those of the day before."""
    days: dict[PriceKey, list[date]] = {}
    for day, offers in (earlier or {}).items():
        for each in offers:
            days.setdefault(dated_price(each), []).append(day)
    history = History([*STEADY, *before], YESTERDAY, held or {}, rates or {}, lambda: days)
    return screen([*STEADY, *now], history, expect or config(), DAY, reviews, moves, page_days)


def doubts(result: Screened) -> list[tuple[str, str]]:
    """Return the reason and the detail of each held price, without the words on its release."""
    return [(row.reason.value, row.detail.partition("; held ")[0]) for row in result.rejects]


def reasons(now: Iterable[Offer], before: Iterable[Offer] = (), **more: Any) -> list[str]:
    """Return why prices are held."""
    return [reason for reason, _ in doubts(screened(now, before, **more))]


def rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a table in this folder."""
    with Path(__file__).with_name(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def offers_in(cell: str) -> list[Offer]:
    """Return the offers in a cell of such a table, divided by |: each has its price, and the columns in which
    it differs from an H100 on demand. ``gpu`` is a card and its label, and a dash stands for nothing."""
    return [_offer(*text.split()) for text in cell.split("|") if text.strip()]


def _offer(price: str, *changes: str) -> Offer:
    facts, several = (
        dict[str, Any](),
        {"gpu": ("gpu_id", "raw_label"), "usd": ("usd_per_hour", "usd_per_gpu_hour")},
    )
    for name, value in (change.split("=") for change in changes):
        facts |= dict.fromkeys(several.get(name, (name,)), None if value == "-" else value)
    return offer(price, **facts)


def reviewed(about: Offer, verdict: Verdict = "believed", **changes: Any) -> Review:
    """Return a person's verdict on an offer's price."""
    facts: dict[str, Any] = {"source": about.source, "day": DAY, "verdict": verdict}
    facts |= {"price_key": price_key(about), "price": about.native_price, "currency": about.native_currency}
    return Review.model_validate(facts | changes)
