"""Seeweb's plans: numbers as texts, memory in MiB, one offer per region, and what cannot be ordered."""

from decimal import Decimal
from typing import Any

import pytest

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import SourceChangedError
from tests.sources.captures import capture
from tests.sources.helpers import answer, page, read

PLAN: dict[str, Any] = {
    "name": "ECS2GPU3",
    "cpu": "32",
    "ram": "245760",
    "disk": "2000",
    "gpu": "2",
    "gpu_label": "A100 80GB",
    "hourly_price": 1.98,
    "available": True,
    "available_regions": [{"location": "it-fr2"}],
}


def plans(*found: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"status": "ok", "plans": list(found)} | more


def test_the_captured_plans_are_read_with_the_price_of_the_whole_machine_in_euros() -> None:
    listings, rejects = read("seeweb", answer(capture("seeweb_plans_2026-08-19.json")))
    found = [
        (row.instance_type, row.raw_label, row.gpu_count, row.native_price, row.region, row.ram_gib)
        for row in listings
    ]
    assert found == [
        ("ECS1GPU7", "L40s 48GB", 1, Decimal("0.85"), "it-fr2", 32),
        ("ECS1GPU7", "L40s 48GB", 1, Decimal("0.85"), "it-mi2", 32),
        ("ECS2GPU3", "A100 80GB", 2, Decimal("1.98"), "it-fr2", 240),
        ("ECS1GPU9", "MI300X", 1, Decimal("1.6"), "it-fr2", 256),
    ]
    assert {(row.native_currency, row.native_unit) for row in listings} == {("EUR", "instance_hour")}
    assert rejects == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"available": False}, "not_offered"),
        ({"available_regions": None}, "not_offered"),
        ({"windows": True}, "not_linux"),
        ({"hourly_price": None}, "not_offered"),
        ({"hourly_price": 0}, "zero_price"),
        ({"hourly_price": "1.98$2"}, "unreadable_price"),
        ({"gpu": "0"}, "unknown_gpu_count"),
        ({"gpu": "two"}, "unknown_gpu_count"),
        ({"gpu_label": None}, "missing_field"),
        ({"name": ""}, "missing_field"),
    ],
)
def test_a_plan_that_is_not_certain_is_rejected(change: dict[str, Any], reason: str) -> None:
    listings, rejects = read("seeweb", answer(plans(PLAN | change)))
    assert listings == []
    assert [reject.reason for reject in rejects] == [reason]


def test_a_region_that_is_listed_twice_is_one_offer() -> None:
    twice = PLAN | {"available_regions": [{"location": "it-fr2"}, {"location": "it-fr2"}]}
    listings, _ = read("seeweb", answer(plans(twice)))
    assert [row.region for row in listings] == ["it-fr2"]


@pytest.mark.parametrize(
    "body",
    [plans(), plans(PLAN | {"gpu": "0", "gpu_label": None}), plans(PLAN, status="error")],
)
def test_what_has_no_gpu_plan_is_a_change(body: Any) -> None:
    with pytest.raises(SourceChangedError):
        read("seeweb", answer(body))


def test_it_is_asked_only_with_a_token() -> None:
    assert source_config("seeweb").needs_key


def test_the_sample_page_leaves_out_machines_without_gpus() -> None:
    listings, rejects = read("seeweb", answer(page("seeweb", "plans.json")))
    assert len(listings) == 10
    assert [reject.reason for reject in rejects] == ["not_offered"]
