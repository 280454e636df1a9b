"""First prices of a card at a source, compared with dated prices from public files."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from pipeline.contracts.offer import Offer
from pipeline.gates import price_bounds
from pipeline.gates.history import History
from pipeline.gates.judge import screen
from pipeline.gates.price_bounds import OtherPrices, Seen, doubt_first_price, plausible_prices
from tests.gates.screening import A100, DAY, H100, H100_PCIE, doubts, offers_in
from tests.offers.builders import config, offer

FIRST, LAST = date(2026, 5, 24), date(2026, 6, 15)
OUT_OF_LINE, OF_ANOTHER = "price_out_of_line", "price_of_another_offer"


def seen(monkeypatch: pytest.MonkeyPatch, *rows: Seen) -> None:
    by_key = {(row.source, row.gpu_id, row.price_kind): row for row in rows}
    monkeypatch.setattr(price_bounds, "_seen", lambda: by_key)


def prices(gpu_id: str, kind: str, low: str, high: str, source: str = "", **more: Any) -> Seen:
    facts = {"sources": 3, "first_day": FIRST, "last_day": LAST} | more
    return Seen(gpu_id, kind, Decimal(low), Decimal(high), source=source, **facts)


def card_at(card: str, price: str, kind: str = "on_demand", **changes: Any) -> Offer:
    facts = {"source": "lambda", "gpu_id": card, "raw_label": card, "price_kind": kind}
    return offer(price, **facts | changes)


def first(*offers: Offer) -> list[tuple[str, str]]:
    """Return why offers of a source without a history are held."""
    return doubts(screen(offers, History(), config(max_day_change=Decimal(99)), DAY))


def test_the_range_of_plausible_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the source, or else of at least three sources over several days; wider for spot prices, and five
    times lower where only on-demand prices were seen."""
    seen(
        monkeypatch,
        prices(H100, "on_demand", "3.80", "4.00", "lambda"),
        prices(H100, "on_demand", "2.00", "6.00"),
        prices(H100, "spot", "1.50", "3.00"),
        prices(H100, "serverless", "5.00", "6.00"),
        prices(A100, "spot", "0.90", "1.20", "lambda"),
        prices(A100, "serverless", "1.90", "2.00", "lambda"),
        prices("l40s", "on_demand", "1.00", "2.00", sources=2),
        prices("a10", "on_demand", "1.00", "2.00", last_day=FIRST),
    )
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
    found = {key: plausible_prices(*key) for key in expected}
    bounds = {key: each and (f"{each.low:.2f}", f"{each.high:.2f}") for key, each in found.items()}
    assert bounds == expected
    days = "from 2026-05-24 to 2026-06-15"
    assert {each.basis for key, each in found.items() if each and key[1] == H100} == {
        f"lambda asked 3.80 to 4.00 USD per GPU-hour (on_demand) {days}",
        f"3 sources asked 2.00 to 6.00 USD per GPU-hour (on_demand) {days}",
        f"3 sources asked 1.50 to 3.00 USD per GPU-hour (spot) {days}",
    }


def test_a_first_price_out_of_line_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    seen(monkeypatch, prices(H100, "on_demand", "3.80", "4.00", "lambda"))
    held = {"1.99": True, "2.00": False, "7.60": False, "7.61": True}
    assert {price: bool(first(card_at(H100, price))) for price in held} == held
    basis = "lambda asked 3.80 to 4.00 USD per GPU-hour (on_demand) from 2026-05-24 to 2026-06-15"
    assert first(card_at(H100, "7.610")) == [
        (OUT_OF_LINE, f"'{H100}' (on_demand) is new at 7.61 USD per GPU-hour; {basis}")
    ]
    # Nothing is known of shares of a GPU, of unknown cards, of flagged prices, or without dollars.
    odd = offers_in(
        "9 gpu_count=0.5 | 9 gpu_id=- raw_label=a | 9 flag_reason=coming_soon raw_label=b |"
        " 9 tier=marketplace | 9 native_currency=EUR usd=- raw_label=c"
    )
    assert first(*(each.model_copy(update={"source": "lambda"}) for each in odd)) == []


def test_whether_a_first_price_could_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only compared prices count when a source with too many held prices is refused."""
    seen(monkeypatch, prices(H100, "on_demand", "3.80", "4.00", "lambda"))
    beside = OtherPrices([])
    compared = {"h100": card_at(H100, "4.00"), "k80": card_at("k80", "900"), "out": card_at(H100, "9.00")}
    found = {name: doubt_first_price(each, beside)[0] for name, each in compared.items()}
    assert found == {"h100": True, "k80": False, "out": True}
    assert doubt_first_price(card_at(H100, "4.00", gpu_count=0.5), beside) == (False, None)


@pytest.fixture
def seen_there(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {
        (H100, "on_demand"): "4.00",
        (H100, "spot"): "2.50",
        (H100_PCIE, "on_demand"): "3.00",
        ("h100-80gb", "on_demand"): "3.70",
        (A100, "on_demand"): "2.20",
        (A100, "serverless"): "3.90",
        ("unlisted", "on_demand"): "3.95",
    }
    elsewhere = prices(A100, "spot", "2.60", "2.60", "vultr")
    seen(monkeypatch, *(prices(*key, price, price, "lambda") for key, price in there.items()), elsewhere)


@pytest.mark.usefixtures("seen_there")
def test_a_first_price_that_was_another_cards_is_held_when_that_card_has_another_now() -> None:
    held: dict[tuple[str, ...], bool] = {
        ("3.10",): True,  # the A100's price, and the A100 has another
        ("2.20",): False,  # the A100 still costs that: two cards at one price
        ("3.10", "2.20"): False,
        (): False,  # no A100 in the reading, whose label is not like this one's
    }

    def mixed_up(price: str, beside: Sequence[str]) -> list[tuple[str, str]]:
        asked = (card_at(H100, price), *(card_at(A100, each) for each in beside))
        return [each for each in first(*asked) if each[0] == OF_ANOTHER and f"{H100!r}" in each[1]]

    assert {beside: bool(mixed_up("2.20", beside)) for beside in held} == held
    basis = "lambda asked 4.00 to 4.00 USD per GPU-hour (on_demand) from 2026-05-24 to 2026-06-15"
    detail = f"{H100!r} (on_demand) is new at 2.2 USD per GPU-hour, which was the price of {A100} (on_demand)"
    assert mixed_up("2.20", ["3.10"]) == [(OF_ANOTHER, f"{detail}; {basis}")]
    near = {"2.197": False, "2.198": True, "2.202": True, "2.203": False}
    assert {price: bool(mixed_up(price, ["3.10"])) for price in near} == near
    assert mixed_up("2.60", ["3.10"]) == mixed_up("3.90", ["3.10"]) == mixed_up("3.95", ["3.10"]) == []


@pytest.mark.usefixtures("seen_there")
def test_a_missing_card_of_the_same_model_may_be_mislabelled_but_not_one_without_its_form_factor() -> None:
    assert [reason for reason, _ in first(card_at(H100, "3.00"))] == [OF_ANOTHER]
    assert first(card_at(H100_PCIE, "3.70")) == first(card_at("h100-80gb", "3.00")) == []
    # A card whose own price is unknown is compared with other kinds only.
    assert first(card_at("h200-sxm-141gb", "3.00"), card_at(H100_PCIE, "3.05")) == []


@pytest.mark.usefixtures("seen_there")
def test_a_first_price_that_was_another_kinds_is_held_unless_that_kind_is_in_its_place() -> None:
    """On demand is dearer than spot, so an equal price is not in its place."""
    spot, now = ("spot", "on_demand"), ("on_demand", "spot")
    held: dict[tuple[tuple[str, str], str, tuple[str, ...]], bool] = {
        (now, "2.50", ()): True,  # a missing spot mark
        (now, "2.50", ("2.50",)): True,
        (now, "2.50", ("2.49",)): False,  # spot is there, and below
        (now, "2.50", ("1.40", "2.50")): True,
        (spot, "4.00", ()): True,
        (spot, "4.00", ("4.00",)): True,
        (spot, "4.00", ("4.01",)): False,
        (spot, "4.00", ("4.30", "3.95")): True,
        (spot, "3.95", ()): False,
    }
    found = {}
    for (kind, other), price, beside in held:
        offers = [card_at(H100, each, other, raw_label=f"{n}") for n, each in enumerate(beside)]
        result = screen([card_at(H100, price, kind), *offers], History(), config(), DAY)
        found[(kind, other), price, beside] = kind in {row.raw["price_key"][3] for row in result.rejects}
    assert found == held
    assert first(card_at(H100, "2.50"), card_at(H100, "1.40", "spot", gpu_count=0.5, raw_label="half")) != []
    assert first(card_at(H100, "2.50", "serverless")) == []
    assert first(card_at(H100, "2.50", "reserved", term_days=30), card_at(H100, "1.40", "spot")) == []
