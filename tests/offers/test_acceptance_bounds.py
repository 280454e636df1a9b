"""Every threshold of acceptance on both sides and exactly on it."""

import json
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from pipeline.contracts.offer import Offer, RejectedRow
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.offers.acceptance import judge, price_key, quarantine_jumps
from pipeline.offers.build import build_offers
from tests.offers.builders import CAPTURED, config, listing, offer


def offers(count: int) -> list[Offer]:
    return [offer(raw_label=f"card {number}") for number in range(count)]


@pytest.mark.parametrize(("rows", "accepted"), [(4, False), (5, True), (6, True)])
def test_rows_min_itself_is_enough(rows: int, accepted: bool) -> None:
    assert judge(offers(rows), config(rows_min=5), None).accepted is accepted


@pytest.mark.parametrize(("rows", "warned"), [(4, False), (5, False), (6, True)])
def test_rows_max_itself_gives_no_warning(rows: int, warned: bool) -> None:
    verdict = judge(offers(rows), config(rows_max=5), None)
    assert verdict.accepted
    assert bool(verdict.warnings) is warned


@pytest.mark.parametrize(
    ("last_rows", "accepted"), [(7, True), (8, True), (9, False), (0, True), (None, True)]
)
def test_half_of_the_last_rows_is_enough(last_rows: int | None, accepted: bool) -> None:
    assert judge(offers(4), config(), last_rows).accepted is accepted


@pytest.mark.parametrize(("filled", "accepted"), [(6, False), (7, True), (8, True)])
def test_the_least_share_of_filled_values_is_enough(filled: int, accepted: bool) -> None:
    read = [offer(raw_label=f"card {n}", region="eu" if n < filled else None) for n in range(10)]
    assert judge(read, config(fill_min={"region": 0.7}), None).accepted is accepted


def out_of_bounds(count: int) -> list[RejectedRow]:
    row = RejectedRow(
        source="acme",
        reason=RejectReason.PRICE_OUT_OF_BOUNDS,
        detail="",
        raw={},
        observed_at=CAPTURED.observed_at,
        source_url=CAPTURED.url,
        capture_sha256=CAPTURED.sha256,
    )
    return [row] * count


@pytest.mark.parametrize(
    ("rows", "outside", "accepted"),
    [
        (1, 1, True),  # one price alone is a misprint, however large its share
        (9, 2, True),
        (8, 2, True),  # exactly a fifth
        (7, 2, False),
        (12, 3, True),  # exactly a fifth
        (11, 3, False),
    ],
)
def test_a_fifth_of_the_prices_may_be_out_of_bounds(rows: int, outside: int, accepted: bool) -> None:
    assert judge(offers(rows), config(), None, out_of_bounds(outside)).accepted is accepted


def test_other_rejects_do_not_count_as_out_of_bounds() -> None:
    others = [row.model_copy(update={"reason": RejectReason.NOT_OFFERED}) for row in out_of_bounds(9)]
    assert judge(offers(1), config(), None, others).accepted


@pytest.mark.parametrize(
    ("price", "kept"),
    [("0.49", False), ("0.50", True), ("0.51", True), ("7.99", True), ("8.00", True), ("8.01", False)],
)
def test_bounds_of_a_price_are_inclusive(price: str, kept: bool) -> None:
    bounds = config(usd_per_gpu_hour=(Decimal("0.5"), Decimal(8)))
    built = build_offers([listing(price)], bounds)
    assert bool(built.offers) is kept
    assert [reject.reason for reject in built.rejects] == ([] if kept else [RejectReason.PRICE_OUT_OF_BOUNDS])


def test_bounds_are_per_gpu() -> None:
    bounds = config(usd_per_gpu_hour=(Decimal("0.5"), Decimal(8)))
    whole = [listing(price, gpu_count=8, native_unit="instance_hour") for price in ("64.00", "64.08")]
    assert [offer.usd_per_gpu_hour for offer in build_offers(whole, bounds).offers] == [Decimal(8)]


STEADY = offers(3)


def is_held_back(now: Offer, before: Offer, held_back_at: str | None = None) -> bool:
    held_back = {price_key(now): Decimal(held_back_at)} if held_back_at else {}
    quarantine = quarantine_jumps([*STEADY, now], [*STEADY, before], held_back, config())
    assert quarantine.failure is None
    assert len(quarantine.offers) + len(quarantine.rejects) == 4
    return bool(quarantine.rejects)


@pytest.mark.parametrize(
    ("before", "now", "held_back"),
    [
        ("2.00", "3.19", False),
        ("2.00", "3.20", False),
        ("2.00", "3.21", True),
        ("3.19", "2.00", False),
        ("3.20", "2.00", False),
        ("3.21", "2.00", True),
    ],
)
def test_a_price_may_move_by_exactly_max_day_change(before: str, now: str, held_back: bool) -> None:
    """0.6 of the smaller price, up and down."""
    assert is_held_back(offer(now), offer(before)) is held_back


@pytest.mark.parametrize(
    ("held_back_at", "held_back"),
    [("20.00", False), ("19.05", False), ("19.04", True), ("21.00", False), ("21.01", True)],
)
def test_a_jump_is_confirmed_by_a_price_within_a_twentieth(held_back_at: str, held_back: bool) -> None:
    assert is_held_back(offer("20.00"), offer("2.00"), held_back_at) is held_back


@pytest.mark.parametrize(
    ("now", "held_back"), [("1.24", True), ("1.25", False), ("2.25", False), ("4.00", False), ("4.01", True)]
)
def test_a_new_name_is_compared_with_the_nearer_end_of_the_gpus_prices(now: str, held_back: bool) -> None:
    before = [offer("2.00", gpu_id="l40s", raw_label="a"), offer("2.50", gpu_id="l40s", raw_label="b")]
    new = offer(now, gpu_id="l40s", raw_label="new")
    rejects = quarantine_jumps([*STEADY, new], [*STEADY, *before], {}, config()).rejects
    assert bool(rejects) is held_back


@pytest.mark.parametrize(
    ("compared", "jumped", "fails"),
    [
        (1, 1, False),  # one price alone says nothing of the page
        (2, 1, False),  # exactly half
        (2, 2, True),
        (3, 1, False),
        (3, 2, True),
        (4, 2, False),  # exactly half
        (4, 3, True),
    ],
)
def test_a_source_fails_when_most_of_its_prices_jump(compared: int, jumped: int, fails: bool) -> None:
    before = offers(compared)
    now = [offer("20.00" if n < jumped else "2.00", raw_label=f"card {n}") for n in range(compared)]
    quarantine = quarantine_jumps(now, before, {}, config())
    assert len(quarantine.rejects) == jumped
    assert (quarantine.failure is not None) is fails


@pytest.mark.parametrize(
    "change",
    [
        {"raw_label": "H100"},
        {"instance_type": "h100.1"},
        {"gpu_count": 2},
        {"price_kind": "spot"},
        {"term_days": 365},
        {"region": "eu"},
        {"tier": "secure"},
        {"native_currency": "EUR"},
        {"native_unit": "instance_hour"},
        {"effective_from": date(2026, 9, 1)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_each_part_of_the_key_tells_offers_apart(change: dict[str, Any]) -> None:
    """A jump of the one offer is compared with its own earlier price, not with the other's."""
    before = [offer("2.00"), offer("9.00", **change)]
    assert price_key(before[0]) != price_key(before[1])
    quarantine = quarantine_jumps(before, before, {}, config())
    assert quarantine.offers == before
    swapped = [offer("9.00"), offer("2.00", **change)]
    assert len(quarantine_jumps(swapped, before, {}, config()).rejects) == 2


@pytest.mark.parametrize(
    "change",
    [{"usd_per_hour": None}, {"observed_at": None}, {"gpu_id": None}, {"flag_reason": "coming_soon"}],
)
def test_nothing_else_is_part_of_the_key(change: dict[str, Any]) -> None:
    assert price_key(offer().model_copy(update=change)) == price_key(offer("3.00"))


def test_a_held_back_price_is_known_again_from_its_stored_reject() -> None:
    """Also one that is announced for a later day."""
    announced = offer("20.00", effective_from=date(2026, 9, 1), term_days=365, region="eu")
    before = announced.model_copy(update={"native_price": Decimal(2)})
    (reject,) = quarantine_jumps([*STEADY, announced], [*STEADY, before], {}, config()).rejects
    stored = json.loads(json.dumps(reject.raw, default=str))
    held_back = {tuple(stored["price_key"]): Decimal(stored["native_price"])}
    assert quarantine_jumps([*STEADY, announced], [*STEADY, before], held_back, config()).rejects == []
