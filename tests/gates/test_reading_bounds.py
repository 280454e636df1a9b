"""Every threshold of a reading, on both sides and exactly on it."""

from decimal import Decimal

import pytest

from pipeline.contracts.offer import Offer, RejectedRow
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gates.reading import check_reading
from pipeline.offers.build import build_offers
from tests.offers.builders import CAPTURED, config, listing, offer


def offers(count: int) -> list[Offer]:
    return [offer(raw_label=f"card {number}") for number in range(count)]


@pytest.mark.parametrize(("rows", "accepted"), [(4, False), (5, True), (6, True)])
def test_rows_min_itself_is_enough(rows: int, accepted: bool) -> None:
    assert check_reading(offers(rows), config(rows_min=5), None).accepted is accepted


@pytest.mark.parametrize(("rows", "warned"), [(4, False), (5, False), (6, True)])
def test_rows_max_itself_gives_no_warning(rows: int, warned: bool) -> None:
    verdict = check_reading(offers(rows), config(rows_max=5), None)
    assert verdict.accepted
    assert bool(verdict.warnings) is warned


@pytest.mark.parametrize(
    ("last_rows", "accepted"), [(7, True), (8, True), (9, False), (0, True), (None, True)]
)
def test_half_of_the_last_rows_is_enough(last_rows: int | None, accepted: bool) -> None:
    assert check_reading(offers(4), config(), last_rows).accepted is accepted


@pytest.mark.parametrize(("filled", "accepted"), [(6, False), (7, True), (8, True)])
def test_the_least_share_of_filled_values_is_enough(filled: int, accepted: bool) -> None:
    read = [offer(raw_label=f"card {n}", region="eu" if n < filled else None) for n in range(10)]
    assert check_reading(read, config(fill_min={"region": 0.7}), None).accepted is accepted


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
    assert check_reading(offers(rows), config(), None, out_of_bounds(outside)).accepted is accepted


def test_other_rejects_do_not_count_as_out_of_bounds() -> None:
    others = [row.model_copy(update={"reason": RejectReason.NOT_OFFERED}) for row in out_of_bounds(9)]
    assert check_reading(offers(1), config(), None, others).accepted


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
