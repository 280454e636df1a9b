"""Whether a day's reading may be published, and which of its prices are held back."""

from decimal import Decimal
from typing import Any

import pytest

from pipeline.contracts.offer import Offer, RejectedRow
from pipeline.offers.acceptance import judge, price_key, quarantine_jumps, unique_prices
from tests.offers.builders import config, offer


def test_a_reading_within_its_bounds_is_accepted() -> None:
    assert judge([offer()], config(rows_min=1), None).accepted


@pytest.mark.parametrize(
    ("offers", "expect", "last_rows", "why"),
    [
        ([], {}, None, "no offers"),
        ([offer()], {"rows_min": 2}, None, "fewer than the 2 expected"),
        ([offer()], {"must_have": ("l40s",)}, None, "l40s"),
        ([offer(raw_label=str(i)) for i in range(4)], {}, 9, "the last accepted reading had 9"),
        ([offer(), offer(region="eu")], {"fill_min": {"region": 0.9}}, None, "region is filled in 50%"),
    ],
)
def test_a_reading_out_of_bounds_is_refused_with_its_reason(
    offers: list[Offer], expect: dict[str, Any], last_rows: int | None, why: str
) -> None:
    verdict = judge(offers, config(**expect), last_rows)
    assert not verdict.accepted
    assert why in (verdict.reason or "")


def test_too_many_rows_warn_and_are_accepted() -> None:
    verdict = judge([offer(), offer("3.00")], config(rows_max=1), None)
    assert verdict.accepted
    assert "more than the 1 expected" in verdict.warnings[0]


def jumps(now: str, before: str, yesterday: str | None = None, others: int = 3) -> tuple[int, int]:
    """Kept and held-back offers when one of several prices moves from ``before`` to ``now``."""
    steady = [offer("1.00", raw_label=f"card {i}") for i in range(others)]
    previous = [*steady, offer(before)]
    held = {price_key(offer()): Decimal(yesterday)} if yesterday else {}
    quarantine = quarantine_jumps([*steady, offer(now)], previous, held, config())
    return len(quarantine.offers), len(quarantine.rejects)


def test_a_small_move_passes_and_a_large_one_is_held_back_in_both_directions() -> None:
    assert jumps("3.10", before="2.00") == (4, 0)
    assert jumps("20.00", before="2.00") == (3, 1)
    assert jumps("0.20", before="2.00") == (3, 1)


def test_a_large_move_is_believed_when_it_still_stands_at_the_next_reading() -> None:
    assert jumps("20.00", before="2.00", yesterday="20.10") == (4, 0)
    assert jumps("20.00", before="2.00", yesterday="12.00") == (3, 1)


def test_a_source_whose_prices_jump_all_at_once_was_misread() -> None:
    before = [offer("2.00"), offer("1.00", raw_label="L40S")]
    now = [offer("20.00"), offer("10.00", raw_label="L40S")]
    assert "2 of 2 known prices" in (quarantine_jumps(now, before, {}, config()).failure or "")


def test_a_key_that_stands_for_several_prices_is_not_compared() -> None:
    before = [offer("1.00"), offer("2.00")]
    assert unique_prices(before) == {}
    assert quarantine_jumps([offer("9.00")], before, {}, config()).offers == [offer("9.00")]


def outside_bounds(count: int) -> list[RejectedRow]:
    facts = {
        name: getattr(offer(), name) for name in ("source", "observed_at", "source_url", "capture_sha256")
    }
    return [RejectedRow(**facts, reason="price_out_of_bounds", detail="", raw={}) for _ in range(count)]


@pytest.mark.parametrize(("outside", "accepted"), [(1, True), (2, True), (3, False)])
def test_a_source_with_many_prices_out_of_bounds_was_misread(outside: int, accepted: bool) -> None:
    offers = [offer(raw_label=str(i)) for i in range(9)]
    verdict = judge(offers, config(), None, outside_bounds(outside))
    assert verdict.accepted is accepted
    assert accepted or "3 of 12 prices are not between" in (verdict.reason or "")


def test_a_page_with_new_names_is_held_against_the_prices_of_the_same_gpus() -> None:
    """A page that was made anew changes its names and its units on the same day."""
    before = [offer("2.00"), offer("2.50", gpu_count=8), offer("1.00", gpu_id="l40s", raw_label="L40S")]
    renamed = [
        offer("20.00", raw_label="NVIDIA H100 SXM5"),
        offer("10.00", raw_label="NVIDIA L40S", gpu_id="l40s"),
    ]
    quarantine = quarantine_jumps(renamed, before, {}, config())
    assert quarantine.offers == []
    assert "from 2 to 2.5 USD per GPU-hour" in quarantine.rejects[0].detail
    assert "2 of 2 known prices" in (quarantine.failure or "")


@pytest.mark.parametrize(
    "new",
    [
        offer("3.90", raw_label="NVIDIA H100 SXM5"),
        offer("9.00", raw_label="B200", gpu_id="b200-sxm-180gb"),
        offer("0.80", raw_label="H100 spot", price_kind="spot"),
        offer("9.00", raw_label="H100", term_days=365),
        offer("9.00", raw_label="H100", tier="marketplace_verified"),
    ],
    ids=["within reach of the range", "a new GPU", "another kind of price", "another term", "a marketplace"],
)
def test_a_new_offer_is_not_held_back_for_being_new(new: Offer) -> None:
    before = [offer("2.00"), offer("2.50", gpu_count=8)]
    assert quarantine_jumps([new], before, {}, config()).offers == [new]
