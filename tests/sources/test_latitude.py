"""Latitude.sh's plans: per region and term, in dollars only, from a stream in any pieces."""

import json
from typing import Any

from tests.sources.edited_pages import GONE, changed, each, flight, misread, outcome

PLAN: dict[str, Any] = {
    "id": "plan_1",
    "type": "plans",
    "slug": "g4-rtx6kpro-large",
    "gpu": {"count": 8, "type": "NVIDIA RTX PRO 6000", "vram_per_gpu": 96, "interconnect": "RoCE"},
    "stock_level": "low",
    "usd": {"hour": 52, "month": 18980, "year": 159432},
}


def stream(*changes: dict[str, Any], piece: int = 100) -> str:
    """A page with a plan for each change, in one region."""
    servers = []
    for plan in (changed(PLAN, change) for change in changes):
        region = {"name": "Japan", "stock_level": plan["stock_level"]}
        region["pricing"] = {"BRL": {"hour": 260}} | ({"USD": plan["usd"]} if plan["usd"] else {})
        specs = {"memory": {"total": 1536}, "gpu": plan["gpu"]}
        attributes = {"slug": plan["slug"], "specs": specs, "regions": [region]}
        servers.append({"id": plan["id"], "type": plan["type"], "attributes": attributes})
    data = json.dumps({"servers": servers}, separators=(",", ":"))
    return flight(f'1a:["$",{{"plansData":{data}}}]\n', piece)


def test_a_plan_has_a_price_per_region_and_term() -> None:
    for piece in (7, 100, 10_000):
        columns = "price_kind term_days native_price native_unit native_currency region"
        assert outcome("latitude", stream({}, piece=piece), columns=columns) == [
            ("on_demand", None, "52", "instance_hour", "USD", "Japan"),
            ("reserved", 30, "18980", "instance_month", "USD", "Japan"),
            ("reserved", 365, "159432", "instance_term", "USD", "Japan"),
        ]


def test_each_price_and_its_stock() -> None:
    rejects = {"usd.hour": None, "usd.month": 0, "usd.year": None}
    cases = [
        *[({"stock_level": level}, [True] * 3) for level in ("low", "medium", "high")],
        ({"stock_level": "unavailable"}, [False] * 3),
        ({"stock_level": "new"}, [None] * 3),
        (rejects, ["not_offered", "zero_price", "not_offered"]),
        ({"usd": None}, ["not_offered"] * 3),
        ({"usd.month": GONE}, [True, True, "not_offered"]),
        *each([{"gpu.count": 0}, {"gpu.count": None}], *["unknown_gpu_count"] * 3),
        ({"gpu.type": None}, ["missing_field"] * 3),
        ({"gpu": {}}, ["changed: no plan with GPUs"]),
        ({"type": "locations"}, ["changed: the page's data has no plan"]),
    ]
    assert not misread("latitude", stream, cases, "available")
