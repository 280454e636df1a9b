"""Too many rows, too many GPUs, and prices in a currency that a source does not ask."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from pipeline.catalog.source_config import SourceConfig, source_config
from pipeline.contracts.listing import Listing, Reject, SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.offers.build import MAX_REJECTS, build_offers
from tests.offers.builders import CAPTURED, config, listing


def endless() -> Iterator[Listing]:
    """Return listings without end."""
    return (listing(raw_label=f"H100 SXM {number}") for number in count())


def test_a_flood_is_refused_without_reading_on() -> None:
    with pytest.raises(
        SourceChangedError, match="more than 6 offers, where acme is expected to have at most 3"
    ):
        build_offers(endless(), config(rows_max=3))


@pytest.mark.parametrize("rows", [THRESHOLDS.flood_factor * 3 - 1, THRESHOLDS.flood_factor * 3])
def test_a_stated_multiple_of_rows_max_is_read(rows: int) -> None:
    listings = (listing(region=str(number)) for number in range(rows))
    assert len(build_offers(listings, config(rows_max=3)).offers) == rows


def test_rejects_are_kept_up_to_a_number_and_counted_beyond() -> None:
    rejects = (Reject(RejectReason.NOT_OFFERED, "", number, CAPTURED) for number in range(MAX_REJECTS + 2))
    built = build_offers(rejects, config())
    assert len(built.rejects) == MAX_REJECTS
    assert built.warnings == [f"2 rejects more than the {MAX_REJECTS} that are kept"]


@pytest.mark.parametrize(
    ("expect", "gpus", "refused"),
    [
        ({}, THRESHOLDS.max_gpu_count, False),
        ({}, THRESHOLDS.max_gpu_count + 1, True),
        ({}, 18_000, True),
        ({"max_gpu_count": 256}, 256, False),
        ({"max_gpu_count": 256}, 257, True),
    ],
)
def test_more_gpus_than_the_source_could_have_are_a_reject(
    expect: dict[str, Any], gpus: int, refused: bool
) -> None:
    built = build_offers([listing("2.00", gpu_count=gpus)], config(**expect))
    assert [reject.reason for reject in built.rejects] == [RejectReason.IMPOSSIBLE_GPU_COUNT] * refused


def test_a_currency_that_the_source_does_not_ask_is_a_reject() -> None:
    (reject,) = build_offers([listing("2.00", native_currency="EUR")], config()).rejects
    assert reject.reason == RejectReason.UNEXPECTED_CURRENCY
    assert "is in EUR; acme is expected to ask USD" in reject.detail


@pytest.mark.parametrize(
    ("host", "currency", "expected"),
    [
        ("api.ovh.com", "EUR", True),
        ("api.ovh.com", "USD", False),
        ("api.us.ovhcloud.com", "USD", True),
        ("api.us.ovhcloud.com", "EUR", False),
        ("saved.example", "EUR", True),
        ("saved.example", "USD", True),
        ("saved.example", "INR", False),
    ],
)
def test_each_of_several_price_lists_has_its_own_currency(host: str, currency: str, expected: bool) -> None:
    answer = replace(CAPTURED, url=f"https://{host}/catalog")
    row = listing("2.00", native_currency=currency, answer=answer)
    reasons = [reject.reason for reject in build_offers([row], source_config("ovh")).rejects]
    assert (RejectReason.UNEXPECTED_CURRENCY not in reasons) is expected


def test_currencies_are_of_hosts_that_are_asked() -> None:
    facts = config().model_dump() | {"currencies": {"USD": "elsewhere.example"}}
    with pytest.raises(ValueError, match=r"currencies names hosts that are not asked: elsewhere\.example"):
        SourceConfig.model_validate(facts)
