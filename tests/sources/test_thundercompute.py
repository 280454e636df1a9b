"""Thunder Compute's machines from its API, and its two modes on the page's cards."""

import json
from decimal import Decimal
from typing import Any

import pytest

from pipeline.contracts.listing import Listing, SourceChangedError
from tests.sources.helpers import answer, contradicted, page, read


def variant(old: str, new: str) -> str:
    text = page("thundercompute", "pricing.html")
    assert old in text
    return text.replace(old, new)


def prices(listings: list[Listing]) -> dict[tuple[str, str | None], Decimal]:
    return {(row.raw_label, row.tier): row.native_price for row in listings}


def test_the_same_gpu_has_a_price_per_mode() -> None:
    listings, rejects = read("thundercompute", answer(page("thundercompute", "pricing.html")))
    assert prices(listings) == {
        ("RTX A6000", "prototyping"): Decimal("0.35"),
        ("A100 80GB", "prototyping"): Decimal("0.78"),
        ("L40", "prototyping"): Decimal("0.89"),
        ("H100 PCIe", "prototyping"): Decimal("1.38"),
        ("L40", "production"): Decimal("1.39"),
        ("A100 80GB NVLink", "production"): Decimal("1.79"),
        ("H100 PCIe NVLink", "production"): Decimal("2.49"),
    }
    assert [reject.reason for reject in rejects] == ["not_offered"]
    assert listings[0].context == {"vram_gb": 48}


def test_a_page_without_modes_has_no_tier() -> None:
    text = variant("<h2>Prototyping</h2>", "<h2>On demand</h2>").replace("<h2>Production</h2>", "")
    listings, _ = read("thundercompute", answer(text))
    assert {row.tier for row in listings} == {None}


@pytest.mark.parametrize("heading", ["Clusters", "Prototyping and production", "Reproduction"])
def test_a_card_in_an_unknown_mode_is_refused(heading: str) -> None:
    listings, rejects = read("thundercompute", answer(variant("Production</h2>", f"{heading}</h2>")))
    assert {row.tier for row in listings} == {"prototyping"}
    assert [reject.reason for reject in rejects] == ["unknown_terms"] * 4


def test_a_card_at_two_prices_in_one_mode_is_flagged() -> None:
    shown = answer(variant("Production</h2>", "Prototyping</h2>"))
    assert contradicted("thundercompute", shown) == ["L40", "L40"]


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        ("<strong>Contact us</strong>", "not_offered"),
        ("<strong>$0.00</strong>", "zero_price"),
        ("<strong>$1.38</strong> GPU/hr <strong>$1.50</strong>", "unreadable_row"),
        ("<strong>1.38</strong>", "not_offered"),
    ],
)
def test_a_card_that_is_not_clear_is_rejected(shown: str, reason: str) -> None:
    listings, rejects = read("thundercompute", answer(variant("<strong>$1.38</strong>", shown)))
    assert ("H100 PCIe", "prototyping") not in prices(listings)
    assert prices(listings)["L40", "production"] == Decimal("1.39")
    assert reason in [reject.reason for reject in rejects]


@pytest.mark.parametrize(
    "body",
    [
        '{"pricing": {"a6000": 0.35}}',
        '[{"@type": "Pro',
        "<html><body></body></html>",
    ],
)
def test_a_page_without_gpus_counts_as_changed(body: str) -> None:
    with pytest.raises(SourceChangedError):
        read("thundercompute", answer(body))


def parts(**changes: Any) -> list[Any]:
    """The API's three answers, with some of their machines changed."""
    bodies = {
        name: json.loads(page("thundercompute", f"{name}.json")) for name in ("pricing", "specs", "status")
    }
    for name, values in changes.items():
        bodies[name]["pricing" if name == "pricing" else "specs"] |= values
    return [answer(body) for body in bodies.values()]


def test_a_machine_of_the_api_has_its_price_specification_and_availability() -> None:
    listings, rejects = read("thundercompute", *parts())
    assert {(row.instance_type, row.gpu_count, row.native_price, row.available) for row in listings} == {
        ("a100xl_x4", 4, Decimal("5.96"), True),
        ("a6000_x1", 1, Decimal("0.35"), True),
        ("h100_x1", 1, Decimal("3.2"), True),
        ("h100_x2", 2, Decimal("6.4"), True),
        ("l40_x1", 1, Decimal("0.79"), False),
    }
    assert {(row.native_unit, row.tier) for row in listings} == {("instance_hour", None)}
    assert {reject.detail.split(":")[0] for reject in rejects} == {"b200_x8", "a100xl_native"}


def test_the_api_is_read_before_the_page_and_without_its_availability() -> None:
    pricing, specs, _ = parts()
    shown = answer(page("thundercompute", "pricing.html"))
    listings, _ = read("thundercompute", shown, specs, pricing)
    assert {row.instance_type for row in listings} >= {"h100_x2"}
    assert {row.available for row in listings} == {None}


@pytest.mark.parametrize("status", [{"us": "available"}, ["available"], 1, None])
def test_an_availability_that_is_not_text_costs_no_machine(status: object) -> None:
    listings, _ = read("thundercompute", *parts(status={"h100_x2": status}))
    assert {row.instance_type: row.available for row in listings}["h100_x2"] is None
    assert len(listings) == 5


@pytest.mark.parametrize("without", [0, 1])
def test_without_prices_or_specifications_the_page_is_read(without: int) -> None:
    answers = parts()
    del answers[without]
    with pytest.raises(SourceChangedError):
        read("thundercompute", *answers)
    listings, _ = read("thundercompute", *answers, answer(page("thundercompute", "pricing.html")))
    assert {row.tier for row in listings} == {"prototyping", "production"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"pricing": {"h100_x2": 0}}, "zero_price"),
        ({"pricing": {"h100_x2": "soon"}}, "unreadable_price"),
        ({"pricing": {"h100_x2": None}}, "not_offered"),
        ({"specs": {"h100_x2": {"displayName": "NVIDIA H100", "gpuCount": 2}}}, "missing_field"),
        ({"specs": {"h100_x2": {"gpuCount": 2, "vcpuOptions": [8]}}}, "missing_field"),
        ({"specs": {"h100_x2": {"displayName": "NVIDIA H100", "vcpuOptions": [8]}}}, "unknown_gpu_count"),
        ({"specs": {"h100_x2": "soon"}}, "missing_field"),
    ],
)
def test_a_machine_that_is_unclear_is_refused(changes: dict[str, Any], reason: str) -> None:
    listings, rejects = read("thundercompute", *parts(**changes))
    assert "h100_x2" not in {row.instance_type for row in listings}
    assert [reject.reason for reject in rejects if "h100_x2" in reject.detail] == [reason]


def test_the_mode_of_an_earlier_answer_is_the_tier() -> None:
    machine = {"displayName": "NVIDIA H100", "mode": "production", "gpuCount": 4, "vcpuOptions": [72]}
    other = machine | {"mode": "batch"}
    changes = {"specs": {"x4": machine, "other": other}, "pricing": {"x4": 9.96, "other": 9.96}}
    listings, rejects = read("thundercompute", *parts(**changes))
    assert {row.instance_type for row in listings if row.tier == "production"} == {"x4"}
    assert [reject.reason for reject in rejects if reject.detail.startswith("other")] == ["unknown_terms"]


RIVALS = """<section><h2>Compared with AWS</h2><div class="card"><h3>H100 SXM</h3><p>VRAM 80 GB</p>
<p>GPU/hr $12.29</p></div></section><h2>More</h2>
<div class="card"><b>A100 on RunPod</b> VRAM 80 GB GPU/hr $1.64</div>
<div class="card"><h3>H100 sandbox</h3><p>VRAM 80 GB</p><p>GPU/hr $2.95</p></div>"""


def test_prices_of_other_providers_and_of_sandboxes_are_not_read() -> None:
    before, _ = read("thundercompute", answer(page("thundercompute", "pricing.html")))
    listings, rejects = read("thundercompute", answer(variant("<p>(*)", f"{RIVALS}<p>(*)")))
    assert prices(listings) == prices(before)
    assert [reject.detail.split(":")[0] for reject in rejects if reject.reason == "other_product"] == [
        "names 'AWS'",
        "names 'RunPod'",
        "names 'sandbox'",
    ]
