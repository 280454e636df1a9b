"""Linode's list of types: per plan, per region, and the prices of 0 that stand in it."""

from decimal import Decimal
from typing import Any

import pytest

from pipeline.contracts.listing import SourceChangedError
from tests.sources.helpers import answer, following, page, read

SMALL: dict[str, Any] = {
    "id": "g2-gpu-rtx4000a2-s",
    "label": "RTX4000 Ada x2 Small",
    "class": "gpu",
    "gpus": 2,
    "vcpus": 8,
    "memory": 32768,
    "disk": 1048576,
    "price": {"hourly": 1.05, "monthly": 700.0},
    "region_prices": [{"id": "id-cgk", "hourly": 1.26, "monthly": 840.0}],
}


def test_the_sample_has_thirteen_plans_and_one_without_a_price() -> None:
    listings, rejects = read("linode", answer(page("linode", "types.json")))
    assert len(listings) == 13
    assert listings[0].raw_label == "Dedicated 32GB + RTX6000 GPU x1"
    assert [reject.reason for reject in rejects] == ["zero_price"]


def test_a_region_with_its_own_price_is_a_separate_listing() -> None:
    listings, _ = read("linode", answer({"data": [SMALL], "page": 1, "pages": 1}))
    assert [(row.region, row.native_price, row.gpu_count) for row in listings] == [
        (None, Decimal("1.05"), 2),
        ("id-cgk", Decimal("1.26"), 2),
    ]
    assert (listings[0].ram_gib, listings[0].vcpus) == (32, 8)


def test_a_region_price_stands_where_the_base_price_is_zero() -> None:
    listings, rejects = read("linode", answer([SMALL | {"price": {"hourly": 0, "monthly": 0}}]))
    assert [(row.region, row.native_price) for row in listings] == [("id-cgk", Decimal("1.26"))]
    assert [reject.reason for reject in rejects] == ["zero_price"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"price": {"hourly": None}}, "not_offered"),
        ({"price": None}, "not_offered"),
        ({"price": {"hourly": "free"}}, "unreadable_price"),
        ({"gpus": 0}, "unknown_gpu_count"),
        ({"gpus": None}, "unknown_gpu_count"),
    ],
)
def test_a_plan_that_cannot_be_read_is_rejected(change: dict[str, Any], reason: str) -> None:
    listings, rejects = read("linode", answer([SMALL | {"region_prices": []} | change]))
    assert not listings
    assert [reject.reason for reject in rejects] == [reason]


def test_numbers_as_text_and_missing_optional_fields() -> None:
    bare = {"id": "g2", "label": "RTX4000 Ada x1 Small", "gpus": "1", "price": {"hourly": "0.52"}}
    listings, _ = read("linode", answer([bare]))
    assert (listings[0].native_price, listings[0].ram_gib, listings[0].vcpus) == (Decimal("0.52"), None, None)


@pytest.mark.parametrize(
    "body",
    ['{"data": [{"id": "g2', '{"data": []}', '{"data": [{"id": "g6"}]}'],
)
def test_what_holds_no_gpu_plan_is_a_change(body: str) -> None:
    with pytest.raises(SourceChangedError):
        read("linode", answer(body))


def test_the_next_page_is_asked_until_the_last() -> None:
    url = "https://api.linode.com/v4/linode/types?page_size=500"
    plans = {"data": [SMALL], "pages": 2}
    assert following("linode", answer(plans, url)) == f"{url}&page=2"
    assert following("linode", answer(plans, f"{url}&page=2")) is None
