"""Shared parts of readers: GPU counts, prices stated twice, spot against on-demand, dates."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from pipeline.contracts.listing import Listing, Reject
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.parsing.dates import date_of, effective_from
from pipeline.parsing.gpu_counts import gpu_count, gpu_count_in
from pipeline.parsing.prices import RowError, agreed, is_available, known, spot_flag
from pipeline.parsing.units import GB_PER_GIB, usd_per_gb_month
from tests.sources.helpers import answer

ANSWER = answer("{}")


@pytest.mark.parametrize(("value", "count"), [(1, 1), ("8", 8), (Decimal("4.0"), 4), ("1,000", 1000)])
def test_gpu_count_is_a_whole_number_above_zero(value: object, count: int) -> None:
    assert gpu_count(value) == count


@pytest.mark.parametrize("value", [0, -1, Decimal("0.5"), "8x", "", None, True, "1e400"])
def test_texts_that_are_not_a_gpu_count_are_refused(value: object) -> None:
    with pytest.raises(RowError) as refused:
        gpu_count(value)
    assert refused.value.reason == "unknown_gpu_count"


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("8x NVIDIA H100", 8),
        ("16X H100", 16),
        ("2 × L40S", 2),
        ("NVIDIA H100 (8x)", 8),
        ("gpu-a100-large-4x", 4),
        ("8x", 8),
        ("NVIDIA H100", None),
        ("AMD MI300X", None),
        ("RTX 4090", None),
        ("L40 48 GB", None),
    ],
)
def test_gpu_count_in_a_name(name: str, count: int | None) -> None:
    assert gpu_count_in(name) == count


@pytest.mark.parametrize(
    "name",
    [
        "0x H100",
        "2x 4x H100",
        "H100 x8",
        "H100 ×8",
        "8 GPUs",
        "1 GPU",
        "H100 8xSXM 2x4",
        "4x4090",
        "H100 (0.008x)",
        "1,008x H100",
    ],
)
def test_an_unclear_count_in_a_name_is_refused(name: str) -> None:
    with pytest.raises(RowError, match=r"number of GPUs|GPU count"):
        gpu_count_in(name)


def test_prices_stated_twice_must_agree() -> None:
    assert agreed([Decimal("2.0"), Decimal("2.00")]) == 2
    for prices in ([Decimal(2), Decimal("2.01")], []):
        with pytest.raises(RowError) as refused:
            agreed(prices)
        assert refused.value.reason == "conflicting_prices"


def listing(label: str, price: str) -> Listing:
    return Listing(
        raw_label=label,
        gpu_count=1,
        price_kind="on_demand",
        native_price=Decimal(price),
        native_currency="USD",
        native_unit="gpu_hour",
        answer=ANSWER,
    )


@pytest.mark.parametrize(
    ("spot", "on_demand", "flag"),
    [
        ("1.99", "2", None),
        ("2", "2.00", "spot_not_below_on_demand"),
        ("2.01", "2", "spot_not_below_on_demand"),
        ("2", None, None),
    ],
)
def test_spot_must_be_below_on_demand(spot: str, on_demand: str | None, flag: str | None) -> None:
    assert spot_flag(Decimal(spot), Decimal(on_demand) if on_demand else None) == flag


@pytest.mark.parametrize(
    ("free", "available"), [(1, True), ("2", True), (0, False), (None, None), ("?", None)]
)
def test_availability_by_count(free: object, available: bool | None) -> None:
    assert is_available(free) is available


@pytest.mark.parametrize(
    "text",
    [
        "2026-10-01",
        " 2026-10-01 ",
        "2026-10-01T00:00:00Z",
        "2026-10-01 00:00:00",
        "October 1, 2026",
        "October 1 2026",
        "Oct 1, 2026",
        "Oct 01 2026",
        "1 October 2026",
        "1 Oct 2026",
    ],
)
def test_a_date_is_read_in_each_spelling(text: str) -> None:
    assert date_of(text) == date(2026, 10, 1)


@pytest.mark.parametrize("text", ["", "2026", "2026-13-01", "10/01/2026", "October 2026", "2026-10-01x", "x"])
def test_texts_that_are_not_a_date_give_none(text: str) -> None:
    assert date_of(text) is None


def test_only_a_later_day_is_announced_ahead() -> None:
    late = answer("{}", observed_at=datetime(2026, 8, 22, 23, 30, tzinfo=UTC))
    assert effective_from(date(2026, 8, 22), late) is None
    assert effective_from(date(2026, 8, 23), late) == date(2026, 8, 23)
    assert effective_from(None, late) is None


def test_an_error_of_a_row_becomes_its_reject() -> None:
    error = RowError(RejectReason.NOT_OFFERED, "sold out")
    expected = Reject(RejectReason.NOT_OFFERED, "H100: sold out", ["H100", "-"], ANSWER)
    assert error.reject("H100", ["H100", "-"], ANSWER) == expected


def test_columns_without_a_value_are_omitted() -> None:
    assert known(vram_gb=80.0, form_factor="SXM") == {"vram_gb": 80.0, "form_factor": "SXM"}
    assert known(vram_gb=None, form_factor="", gpu_name=None, gpu_ram_mib=0.0) == {}


def test_a_price_per_gib_and_hour_is_less_per_gb_and_more_per_month() -> None:
    assert usd_per_gb_month("0.0001") == Decimal("0.073")
    assert usd_per_gb_month("0.0001", GB_PER_GIB) == Decimal("0.067987")
    assert usd_per_gb_month(None) is usd_per_gb_month("free") is None
