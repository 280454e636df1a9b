"""Latitude.sh's plans: per region and term, in dollars only, from a stream in any pieces."""

import json
from decimal import Decimal
from typing import Any

import pytest

from pipeline.contracts.listing import SourceChangedError
from tests.sources.captures import capture
from tests.sources.helpers import answer, contradicted, page, read

GPU = {"count": 8, "type": "NVIDIA RTX PRO 6000", "vram_per_gpu": 96, "interconnect": None}
REGION: dict[str, Any] = {
    "name": "Japan",
    "stock_level": "low",
    "pricing": {"USD": {"hour": 52, "month": 18980, "year": 159432}, "BRL": {"hour": 260}},
}


def plan(gpu: Any = None, **region: Any) -> dict[str, Any]:
    specs = {"memory": {"total": 1536}, "gpu": GPU if gpu is None else gpu}
    attributes = {"slug": "g4-rtx6kpro-large", "specs": specs, "regions": [REGION | region]}
    return {"id": "plan_1", "type": "plans", "attributes": attributes}


def stream(*plans: dict[str, Any], piece: int = 100) -> str:
    """A page with the plans in pieces, which end anywhere."""
    text = '1a:["$",{"plansData":' + json.dumps({"servers": plans}, separators=(",", ":")) + "}]\n"
    pieces = [text[at : at + piece] for at in range(0, len(text), piece)]
    return "".join(f"<script>self.__next_f.push([1,{json.dumps(part)}])</script>" for part in pieces)


@pytest.mark.parametrize("piece", [7, 100, 10_000])
def test_a_plan_has_a_price_per_region_and_term(piece: int) -> None:
    listings, rejects = read("latitude", answer(stream(plan(), piece=piece)))
    assert [(row.price_kind, row.term_days, row.native_price, row.native_unit) for row in listings] == [
        ("on_demand", None, Decimal(52), "instance_hour"),
        ("reserved", 30, Decimal(18980), "instance_month"),
        ("reserved", 365, Decimal(159432), "instance_term"),
    ]
    assert {(row.gpu_count, row.region, row.native_currency, row.available) for row in listings} == {
        (8, "Japan", "USD", True)
    }
    assert rejects == []


def test_the_captured_plan_is_read_in_its_shape() -> None:
    text = capture("latitude_plan_shape_2026-08-22.json")
    with pytest.raises(SourceChangedError, match="no plan with GPUs"):
        read("latitude", answer(text))
    listings, rejects = read("latitude", answer(text.replace('"gpu": {}', f'"gpu": {json.dumps(GPU)}')))
    assert [(row.region, row.native_price, row.available) for row in listings] == [
        ("Brazil", Decimal("1.66"), False),
        ("Brazil", Decimal(606), False),
        ("Brazil", Decimal(5090), False),
    ]
    assert rejects == []


def test_a_region_without_the_plan_has_no_price() -> None:
    nothing = {"USD": {"hour": None, "month": 0, "year": None}, "BRL": {"hour": 0}}
    listings, rejects = read("latitude", answer(stream(plan(pricing=nothing), plan(name="Chile"))))
    assert {row.region for row in listings} == {"Chile"}
    assert [reject.reason for reject in rejects] == ["not_offered", "zero_price", "not_offered"]


def test_a_price_in_another_currency_only_is_not_read() -> None:
    listings, rejects = read("latitude", answer(stream(plan(pricing={"BRL": {"hour": 260}}))))
    assert listings == []
    assert {reject.reason for reject in rejects} == {"not_offered"}


def test_a_plan_at_two_prices_is_flagged() -> None:
    dearer = plan(pricing={"USD": {"hour": 53, "month": 18980, "year": 159432}})
    assert len(contradicted("latitude", answer(stream(plan(), dearer)))) == 2


@pytest.mark.parametrize(
    ("gpu", "reason"),
    [
        (GPU | {"count": 0}, "unknown_gpu_count"),
        (GPU | {"count": None}, "unknown_gpu_count"),
        (GPU | {"type": None}, "missing_field"),
    ],
)
def test_a_plan_that_is_not_certain_is_rejected(gpu: Any, reason: str) -> None:
    listings, rejects = read("latitude", answer(stream(plan(gpu))))
    assert listings == []
    assert {reject.reason for reject in rejects} == {reason}


@pytest.mark.parametrize(
    "body",
    [stream(plan({})), stream(plan())[:-400] + "</script>", stream()],
)
def test_a_page_without_plans_is_a_change(body: str) -> None:
    with pytest.raises(SourceChangedError):
        read("latitude", answer(body))


def test_the_sample_page() -> None:
    listings, rejects = read("latitude", answer(page("latitude", "pricing.html")))
    assert len(listings) == 18
    assert {reject.reason for reject in rejects} == {"not_offered"}
