"""First prices of a card at a source, compared with dated prices from public files: first_prices.csv."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from pipeline.gates import price_bounds
from pipeline.gates.history import History
from pipeline.gates.judge import screen
from pipeline.gates.price_bounds import OtherPrices, Seen, doubt_first_price, plausible_prices
from tests.gates.screening import A100, DAY, H100, H100_PCIE, doubts, offers_in, rows
from tests.offers.builders import config

FIRST, LAST = date(2026, 5, 24), date(2026, 6, 15)


def seen(*prices: Seen) -> Mapping[tuple[str, str, str], Seen]:
    return {(each.source, each.gpu_id, each.price_kind): each for each in prices}


def prices(gpu_id: str, kind: str, low: str, high: str = "", source: str = "", **more: Any) -> Seen:
    facts = {"sources": 3, "first_day": FIRST, "last_day": LAST, "source": source} | more
    return Seen(gpu_id, kind, Decimal(low), Decimal(high or low), **facts)


def test_the_range_of_plausible_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the source, or else of at least three sources over several days; wider for spot prices, and five
    times lower where only on-demand prices were seen."""
    found = seen(
        prices(H100, "on_demand", "3.80", "4.00", "lambda"),
        prices(H100, "on_demand", "2.00", "6.00"),
        prices(H100, "spot", "1.50", "3.00"),
        prices(H100, "serverless", "5.00", "6.00"),
        prices(A100, "spot", "0.90", "1.20", "lambda"),
        prices(A100, "serverless", "1.90", "2.00", "lambda"),
        prices("l40s", "on_demand", "1.00", "2.00", sources=2),
        prices("a10", "on_demand", "1.00", "2.00", last_day=FIRST),
    )
    monkeypatch.setattr(price_bounds, "_seen", lambda: found)
    expected = {
        ("lambda", H100, "on_demand"): ("2.00", "7.60"),
        ("other", H100, "on_demand"): ("0.80", "15.00"),
        ("other", H100, "spot"): ("0.50", "9.00"),
        ("other", H100, "flex_start"): ("0.16", "15.00"),
        ("lambda", H100, "reserved"): ("0.40", "7.60"),
        ("lambda", A100, "spot"): ("0.30", "3.60"),
        ("lambda", A100, "serverless"): ("1.00", "3.80"),
        ("other", H100, "serverless"): None,
        ("lambda", A100, "on_demand"): None,
        ("other", "l40s", "on_demand"): None,
        ("other", "a10", "on_demand"): None,
    }
    ranges = {key: plausible_prices(*key) for key in expected}
    assert {key: each and (f"{each.low:.2f}", f"{each.high:.2f}") for key, each in ranges.items()} == expected
    words = "{} asked {} USD per GPU-hour ({}) from 2026-05-24 to 2026-06-15"
    assert {each.basis for key, each in ranges.items() if each and key[1] == H100} == {
        words.format("lambda", "3.80 to 4.00", "on_demand"),
        words.format("3 sources", "2.00 to 6.00", "on_demand"),
        words.format("3 sources", "1.50 to 3.00", "spot"),
    }


SEEN = seen(
    prices(H100, "on_demand", "4.00", source="lambda"),
    prices(H100, "spot", "2.50", source="lambda"),
    prices(H100_PCIE, "on_demand", "3.00", source="lambda"),
    prices("h100-80gb", "on_demand", "3.70", source="lambda"),
    prices(A100, "on_demand", "2.20", source="lambda"),
    prices(A100, "serverless", "3.30", source="lambda"),
    prices(H100, "serverless", "3.20", source="lambda"),
    prices("l40s", "on_demand", "1.00", source="lambda"),
    prices("unlisted", "on_demand", "3.45", source="lambda"),
    prices(A100, "spot", "2.60", source="vultr"),
)


def held(cell: str) -> str:
    """Return the details of the first prices at Lambda that are held."""
    offers = [each.model_copy(update={"source": "lambda"}) for each in offers_in(cell)]
    found = doubts(screen(offers, History(), config(max_day_change=Decimal(99)), DAY))
    for reason, text in found:
        was_another = ", which was the price of " in text
        assert reason == ("price_of_another_offer" if was_another else "price_out_of_line")
    return " | ".join(text for _, text in found)


def test_first_prices_are_held_as_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price_bounds, "_seen", lambda: SEEN)
    table = rows("first_prices.csv")
    assert [(row, found) for row in table if (found := held(row["offers"])) != row["held"]] == []


def test_whether_a_first_price_could_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only compared prices count when a source with too many held prices is refused."""
    monkeypatch.setattr(price_bounds, "_seen", lambda: SEEN)
    compared = {"4.00": True, "9.00": True, "900 gpu=k80": False, "4.00 gpu_count=0.5": False}
    offers = {cell: offers_in(f"{cell} source=lambda")[0] for cell in compared}
    assert {cell: doubt_first_price(each, OtherPrices([]))[0] for cell, each in offers.items()} == compared
