"""Nebius: columns move, one is valid from a later day, and the page has every table twice."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from pipeline.contracts.listing import SourceChangedError

from .helpers import answer, page, read

SEPTEMBER = [
    ["Item", "vCPUs", "RAM, GB", "On-demand, GPU-hour", "GPU-hour (Effective October 1, 2026)"],
    ["NVIDIA GB200 NVL72", "112", "800", "[Contact us](#f)", "[Contact us](#f)"],
    ["NVIDIA HGX B300", "24", "346", "$7.85", "$9.50"],
    ["NVIDIA HGX H100", "16", "200", "$3.85", "$4.50"],
]
SEPTEMBER_SPOT = [
    ["Item", "vCPUs", "RAM, GB", "Spot price, GPU-hour*"],
    ["NVIDIA HGX H100", "16", "200", "from $0.79"],
    ["NVIDIA L40S with AMD CPU", "16-192", "96-1152", "from $0.90**"],
]


def block(content, title="NVIDIA GPU Instances"):
    return {"type": "highlight-table-block", "title": title, "table": {"content": content}}


def prices(listings):
    return {(r.raw_label, r.price_kind, r.effective_from): r.native_price for r in listings}


def test_the_block_of_the_page_alone():
    """Rows of 2026-08-22."""
    rows = [
        ["Item", "vCPUs", "RAM, GB", "Preemptible, GPU-hour", "On-demand, GPU-hour"],
        ["NVIDIA GB200 NVL72", "112", "800", "––", "[Contact us](#ai-contact-form)"],
        ["NVIDIA HGX B300", "24", "346", "$4.30", "$7.85"],
        ["NVIDIA HGX H100", "16", "200", "$2.15", "$3.85"],
        ["NVIDIA L40S with Intel CPU", "16-192", "96-1152", "from $0.90", "from $1.82"],
        ["NVIDIA L40S with AMD CPU", "8-40", "32-160", "from $0.74", "from $1.55"],
    ]
    listings, rejects = read("nebius", answer(block(rows)))
    assert [r.reason for r in rejects] == ["not_offered"] * 2
    assert {key[:2]: str(price) for key, price in prices(listings).items()} == {
        ("NVIDIA HGX B300", "spot"): "4.30",
        ("NVIDIA HGX B300", "on_demand"): "7.85",
        ("NVIDIA HGX H100", "spot"): "2.15",
        ("NVIDIA HGX H100", "on_demand"): "3.85",
        ("NVIDIA L40S with Intel CPU", "spot"): "0.90",
        ("NVIDIA L40S with Intel CPU", "on_demand"): "1.82",
        ("NVIDIA L40S with AMD CPU", "spot"): "0.74",
        ("NVIDIA L40S with AMD CPU", "on_demand"): "1.55",
    }
    assert {r.effective_from for r in listings} == {None}


@pytest.mark.parametrize("part", ["script", "rows"])
def test_either_half_of_the_page_is_enough(part):
    whole = page("nebius", "prices.html")
    at = whole.index("<script>")
    half = whole[at:] if part == "script" else whole[:at]
    listings, rejects = read("nebius", answer(half))
    assert (len(listings), len(rejects)) == (14, 4)
    assert prices(listings)["NVIDIA HGX H200", "on_demand", None] == Decimal("4.50")


def test_a_bare_escaped_piece_of_the_script_is_read():
    piece = json.dumps(json.dumps(block(SEPTEMBER), separators=(",", ":")))[1:-1]
    listings, _ = read("nebius", answer(r"{\"type\":\"divider\"}," + piece + r",{\"type\":\"footer\"}"))
    assert prices(listings)["NVIDIA HGX H100", "on_demand", None] == Decimal("3.85")
    twice = json.dumps(piece)[1:-1]
    assert prices(read("nebius", answer("x" + twice))[0]) == prices(listings)


def test_the_two_halves_must_agree():
    changed = page("nebius", "prices.html").replace("<p>$7.15</p>", "<p>$1.75</p>")
    listings, rejects = read("nebius", answer(changed))
    assert len(listings) == 13
    assert "conflicting_prices" in {r.reason for r in rejects}
    assert ("NVIDIA HGX B200", "on_demand", None) not in prices(listings)


def test_late_september_columns_and_block():
    blocks = [block(SEPTEMBER), block(SEPTEMBER_SPOT, "Preemptible NVIDIA GPU Instances")]
    listings, rejects = read("nebius", answer(blocks, observed_at=datetime(2026, 9, 29, tzinfo=UTC)))
    october = date(2026, 10, 1)
    assert prices(listings) == {
        ("NVIDIA HGX B300", "on_demand", None): Decimal("7.85"),
        ("NVIDIA HGX B300", "on_demand", october): Decimal("9.50"),
        ("NVIDIA HGX H100", "on_demand", None): Decimal("3.85"),
        ("NVIDIA HGX H100", "on_demand", october): Decimal("4.50"),
        ("NVIDIA HGX H100", "spot", None): Decimal("0.79"),
        ("NVIDIA L40S with AMD CPU", "spot", None): Decimal("0.90"),
    }
    assert {r.flag_reason for r in listings if r.price_kind == "spot"} == {"spot_price_floor"}
    assert {r.flag_reason for r in listings if r.price_kind == "on_demand"} == {None}
    assert [r.reason for r in rejects] == ["not_offered"] * 2


def test_a_reserved_column_has_the_term_in_its_heading():
    rows = [
        ["Item", "On-demand, GPU-hour", "Reserved 3 months, GPU-hour"],
        ["NVIDIA HGX H100", "$3.85", "$2.90"],
    ]
    listings, _ = read("nebius", answer(block(rows)))
    assert [(r.price_kind, r.term_days, str(r.native_price)) for r in listings] == [
        ("on_demand", None, "3.85"),
        ("reserved", 90, "2.90"),
    ]


def test_after_its_day_the_announced_price_replaces_the_old_one():
    listings, _ = read("nebius", answer(block(SEPTEMBER), observed_at=datetime(2026, 10, 2, tzinfo=UTC)))
    flags = {(r.raw_label, r.effective_from): r.flag_reason for r in listings}
    assert flags["NVIDIA HGX H100", None] == "superseded"
    assert flags["NVIDIA HGX H100", date(2026, 10, 1)] is None


def test_moved_and_renamed_columns():
    content = [
        ["On-demand, price per GPU hour", "GPU", "Spot price, GPU-hour*", "New column"],
        ["$4.50", "NVIDIA HGX\u00a0H100", "$\u00a02.15", "9.99"],
    ]
    listings, rejects = read("nebius", answer(block(content)))
    assert prices(listings) == {
        ("NVIDIA HGX H100", "on_demand", None): Decimal("4.50"),
        ("NVIDIA HGX H100", "spot", None): Decimal("2.15"),
    }
    assert rejects == []


def test_bare_list_of_rows_is_read():
    assert len(read("nebius", answer(SEPTEMBER))[0]) == 4
    assert len(read("nebius", answer(SEPTEMBER_SPOT))[0]) == 2


def test_euros_stay_euros_and_what_is_unreadable_is_a_reject():
    content = [SEPTEMBER[0], ["NVIDIA HGX H100", "16", "200", "€3.85", "4.50"]]
    listings, rejects = read("nebius", answer(block(content)))
    assert [(r.native_price, r.native_currency) for r in listings] == [(Decimal("3.85"), "EUR")]
    assert [r.reason for r in rejects] == ["unreadable_price"]


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(block(SEPTEMBER))[:200],
        '<html>{"type":"highlight-table-block","title":"NVIDIA GPU',
        "<html><body><h1>Just a moment...</h1></body></html>",
        json.dumps(block([["Item", "vCPUs", "Price per hour"], ["Intel", "2", "$0.05"]], "CPU-only")),
        json.dumps(block([["Item", "Price per hour"], ["NVIDIA HGX H100", "$3.85"]])),
        json.dumps(block([["Item", "GPU-hour (Effective soon)"], ["NVIDIA HGX H100", "$3.85"]])),
        json.dumps(block([["Item", "Preemptible, GPU-hour", "GPU-hour"], ["NVIDIA HGX H100", "$1", "$2"]])),
        json.dumps(block([["Item", "Preemptible, GPU-hour", "Rate"], ["NVIDIA HGX H100", "$1", "$2"]])),
        json.dumps(block([["Product", "On-demand, GPU-hour"], ["NVIDIA HGX H100", "$3.85"]])),
        json.dumps(block([["Item", "vCPUs", "On-demand, GPU-hour"], ["NVIDIA HGX H100", "$3.85"]])),
        "",
    ],
)
def test_another_shape_fails_the_source(body):
    with pytest.raises(SourceChangedError):
        read("nebius", answer(body))


@pytest.mark.parametrize("unit", ["GPU-hour", "GPU hour", "per GPU per hour", "$/GPU/hr"])
def test_spellings_of_a_gpu_hour(unit: str) -> None:
    rows = [["Item", f"Preemptible, {unit}", f"On-demand, {unit}"], ["NVIDIA HGX H100", "$2.15", "$3.85"]]
    listings, _ = read("nebius", answer(rows))
    assert [(row.price_kind, str(row.native_price)) for row in listings] == [
        ("spot", "2.15"),
        ("on_demand", "3.85"),
    ]


def test_two_spellings_of_one_price_are_no_conflict() -> None:
    rows = [["Item", "On-demand, GPU-hour"], ["NVIDIA HGX H100", "$3.85"], ["NVIDIA HGX H100", "$ 3.85 /hr"]]
    listings, rejects = read("nebius", answer(rows))
    assert [str(row.native_price) for row in listings] == ["3.85"]
    assert rejects == []
