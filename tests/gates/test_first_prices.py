"""First prices of a card at a source, compared with dated prices from public files.

first_prices.csv and ranges.csv have the answers to what seen_at_lambda.csv and seen.csv say was seen."""

from collections.abc import Mapping
from decimal import Decimal

import pytest
from pydantic import TypeAdapter

from pipeline.gates import price_bounds
from pipeline.gates.history import History
from pipeline.gates.judge import screen
from pipeline.gates.price_bounds import OtherPrices, Seen, doubt_first_price, plausible_prices
from tests.gates.screening import DAY, H100, doubts, offers_in, rows
from tests.offers.builders import config


def seen(name: str) -> Mapping[tuple[str, str, str], Seen]:
    """Return the rows of a table like catalog/gpu_price_bounds.csv."""
    read = TypeAdapter(Seen).validate_python
    return {(each.source, each.gpu_id, each.price_kind): each for each in map(read, rows(name))}


def test_the_range_of_plausible_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source's own range comes first, then that of at least three sources over several days; it is wider
    for spot prices, and five times lower where only on-demand prices were seen."""
    monkeypatch.setattr(price_bounds, "_seen", lambda day: seen("seen.csv"))
    table = {(row["source"], row["gpu_id"], row["price_kind"]): row["range"] for row in rows("ranges.csv")}
    ranges = {key: plausible_prices(*key, DAY) for key in table}
    assert {
        key: f"{each.low:.2f} to {each.high:.2f}" if each else "" for key, each in ranges.items()
    } == table
    words = "{} asked {} USD per GPU-hour ({}) from 2026-05-24 to 2026-06-15"
    assert {each.basis for key, each in ranges.items() if each and key[1] == H100} == {
        words.format("lambda", "3.80 to 4.00", "on_demand"),
        words.format("3 sources", "2.00 to 6.00", "on_demand"),
        words.format("3 sources", "1.50 to 3.00", "spot"),
    }


SEEN = seen("seen_at_lambda.csv")


def held(cell: str) -> str:
    """Return the details of the first prices at Lambda that are held."""
    offers = [each.model_copy(update={"source": "lambda"}) for each in offers_in(cell)]
    found = doubts(screen(offers, History(), config(max_day_change=Decimal(99)), DAY))
    for reason, text in found:
        was_another = ", which was the price of " in text
        assert reason == ("price_of_another_offer" if was_another else "price_out_of_line")
    return " | ".join(text for _, text in found)


def test_first_prices_are_held_as_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price_bounds, "_seen", lambda day: SEEN)
    table = rows("first_prices.csv")
    assert [(row, found) for row in table if (found := held(row["offers"])) != row["held"]] == []


def test_whether_a_first_price_could_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only compared prices count when a source with too many held prices is refused."""
    monkeypatch.setattr(price_bounds, "_seen", lambda day: SEEN)
    compared = {"4.00": True, "9.00": True, "900 gpu=k80": False, "4.00 gpu_count=0.5": False}
    offers = {cell: offers_in(f"{cell} source=lambda")[0] for cell in compared}
    assert {
        cell: doubt_first_price(each, OtherPrices([]), DAY)[0] for cell, each in offers.items()
    } == compared
