"""Bounds of what is stored of a row, and of the age of exchange rates."""

from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.contracts.listing import Reject
from pipeline.contracts.rates import Rate
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.home.paths import Home
from pipeline.offers.build import MAX_RAW_CHARACTERS, build_offers
from pipeline.parsing.printable import MAX_CHARACTERS
from pipeline.record.records import MAX_RATE_AGE_DAYS, Records
from tests.offers.builders import CAPTURED, config, listing

DAY = date(2026, 8, 22)


@pytest.mark.parametrize(("age_days", "used"), [(-1, False), (0, True), (7, True), (8, False)])
def test_rates_are_used_for_exactly_a_week(tmp_path: Path, age_days: int, used: bool) -> None:
    assert MAX_RATE_AGE_DAYS == 7
    records = Records(Home(tmp_path))
    rate: dict[str, Any] = {"day": DAY, "currency": "EUR", "usd_per_unit": Decimal("1.17"), "rate_date": DAY}
    records.write_exchange_rates(DAY, [rate])
    found = records.usd_rates(DAY + timedelta(days=age_days))
    assert found == ({"EUR": Rate(Decimal("1.17"), DAY)} if used else {})


@pytest.mark.parametrize(
    ("length", "reasons"),
    [(MAX_CHARACTERS, []), (MAX_CHARACTERS + 1, [RejectReason.TEXT_TOO_LONG])],
)
def test_the_longest_text_is_accepted(length: int, reasons: list[RejectReason]) -> None:
    built = build_offers([listing(region="x" * length)], config())
    assert [reject.reason for reject in built.rejects] == reasons


@pytest.mark.parametrize(
    ("length", "stored"),
    [
        (MAX_RAW_CHARACTERS, "x" * MAX_RAW_CHARACTERS),
        (MAX_RAW_CHARACTERS + 1, "x" * MAX_RAW_CHARACTERS + "…"),
    ],
)
def test_a_long_row_is_shortened(length: int, stored: str) -> None:
    row = Reject(RejectReason.NOT_OFFERED, "", "x" * length, CAPTURED)
    assert build_offers([row], config()).rejects[0].raw == stored


@pytest.mark.parametrize(("spot", "flag"), [("1.99", None), ("2.00", "spot_not_below_on_demand")])
def test_a_spot_price_equal_to_on_demand_is_in_doubt(spot: str, flag: str | None) -> None:
    built = build_offers([listing("2.00"), listing(spot, price_kind="spot")], config())
    assert [offer.flag_reason for offer in built.offers] == [None, flag]


@pytest.mark.parametrize(
    ("gpu_count", "reason"),
    [(0, RejectReason.UNKNOWN_GPU_COUNT), (0.25, None), (float("inf"), RejectReason.UNKNOWN_GPU_COUNT)],
)
def test_an_offer_has_more_than_no_gpus(gpu_count: float, reason: RejectReason | None) -> None:
    built = build_offers([listing(gpu_count=gpu_count)], config())
    assert [reject.reason for reject in built.rejects] == ([reason] if reason else [])


@pytest.mark.parametrize(
    ("label", "gpu_count", "found"),
    [
        ("H100 SXM5 MIG 40GB", None, [0.5]),
        ("H100 SXM5 MIG 40GB", 0.5, [0.5]),
        ("H100 SXM5 MIG 40GB", 1, []),  # the price of a slice is never that of a whole GPU
        ("H100 SXM5 MIG 1g.10gb", 8, []),
        ("H100 SXM5 MIG 7g.80gb", 1, [1]),
        ("H100 SXM5 80GB", 1, [1]),
    ],
)
def test_a_slice_is_not_a_whole_gpu(label: str, gpu_count: float | None, found: list[float]) -> None:
    built = build_offers([listing(raw_label=label, gpu_count=gpu_count)], config())
    assert [offer.gpu_count for offer in built.offers] == found
    assert [reject.reason for reject in built.rejects] == ([] if found else [RejectReason.UNKNOWN_GPU_SHARE])


@pytest.mark.parametrize(
    ("price", "reason"),
    [
        ("0", RejectReason.ZERO_PRICE),
        ("-1", RejectReason.ZERO_PRICE),
        ("0.00000001", None),
        ("0.000000004", RejectReason.INVALID_VALUE),
        ("9999999999", None),
        ("10000000000", RejectReason.INVALID_VALUE),
    ],
)
def test_prices_fit_their_column(price: str, reason: RejectReason | None) -> None:
    """DECIMAL(18, 8), above zero. Yen are not converted here: the dollar bounds do not apply."""
    built = build_offers(
        [listing(price, native_currency="JPY")], config().model_copy(update={"currency": "JPY"})
    )
    assert [reject.reason for reject in built.rejects] == ([reason] if reason else [])


def test_a_rows_own_facts_precede_its_sources() -> None:
    source = config().model_copy(
        update={
            "attributes": config().attributes.model_copy(
                update={"region": "us", "tier": "secure", "max_nodes": 4}
            ),
            "billing": config().billing.model_copy(update={"increment_seconds": 60, "minimum_seconds": 0}),
        }
    )
    row = listing(region="eu", billing_increment_seconds=1, max_nodes=None)
    (offer,) = build_offers([row], source).offers
    assert (offer.region, offer.tier, offer.max_nodes) == ("eu", "secure", 4)
    assert (offer.billing_increment_seconds, offer.minimum_seconds, offer.min_gpu_count) == (1, 0, None)


@pytest.mark.parametrize(
    ("prices", "changes", "flags"),
    [
        (("2.00", "3.00"), {}, ["conflicting_prices"] * 2),
        (("2.00", "3.00"), {"instance_type": "h100.8", "region": "eu"}, ["conflicting_prices"] * 2),
        (("2.00", "3.00"), {"flag_reason": "coming_soon"}, ["coming_soon"] * 2),
        (("2.00", "3.00"), {"tier": "marketplace_verified"}, [None, None]),
        (("2.00", "2.00"), {"tier": "marketplace_verified"}, [None, None]),
    ],
)
def test_two_prices_for_the_same_thing_are_in_doubt(
    prices: tuple[str, ...], changes: dict[str, Any], flags: list[str | None]
) -> None:
    built = build_offers([listing(price, **changes) for price in prices], config())
    assert [offer.flag_reason for offer in built.offers] == flags
    assert built.rejects == []
