"""Hyperstack: three GPU cards that look like the CPU and AI Studio cards, and the API's pricebook."""

from decimal import Decimal

import pytest

from pipeline.capture.visit import first_requests
from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import ReaderWarning, SourceChangedError
from pipeline.gpus import identify
from pipeline.sources import source_module

from .helpers import answer, page, read

PAGE = page("hyperstack", "gpu-pricing.html")


def card(title, headers, *rows):
    heads = "".join(f'<div class="page-price_card_head_item">{header}</div>' for header in headers)
    body = "".join(
        '<div class="page-price_card_row_item">'
        + "".join(f'<div class="page-price_card_row_item_col"><span>{cell}</span></div>' for cell in row)
        + "</div>"
        for row in rows
    )
    return f'<div class="page-price_card"><h3>{title}</h3>{heads}{body}</div>'


ON_DEMAND = card("On-Demand GPU Pricing", ("GPU Model", "Pricing Per Hour"), ("NVIDIA L40", "&nbsp;$1.00"))


def prices(listings):
    return {(r.raw_label, r.price_kind): (r.native_price, r.native_currency) for r in listings}


def test_three_cards_and_no_other():
    listings, rejects = read("hyperstack", answer(PAGE))
    kinds = [r.price_kind for r in listings]
    assert [kinds.count(kind) for kind in ("on_demand", "reserved", "spot")] == [13, 7, 5]
    found = prices(listings)
    assert found["NVIDIA A100", "on_demand"][0] == Decimal("1.35")
    assert found["NVIDIA A100", "spot"][0] == Decimal("1.08")
    assert found["NVIDIA A100 SXM", "reserved"][0] == Decimal("1.36")
    assert not any("Llama" in label or "cpu" in label for label, _ in found)
    assert [r.reason for r in rejects] == ["not_offered"]


def test_reservations_are_flagged_because_their_term_is_not_stated():
    listings, _ = read("hyperstack", answer(PAGE))
    flagged = {r.price_kind for r in listings if r.flag_reason}
    assert flagged == {"reserved"}


def test_moved_and_added_columns():
    moved = card(
        "On-Demand GPU Pricing",
        ("Max RAM (GB) per GPU", "Pricing Per Hour", "Network", "GPU Model", "VRAM (GB)"),
        ("120", "$\u00a01.35*", "16 Gbps", "NVIDIA A100", "80"),
    )
    (listing,), rejects = read("hyperstack", answer(moved))
    assert (listing.raw_label, listing.native_price) == ("NVIDIA A100", Decimal("1.35"))
    assert (listing.ram_gib, dict(listing.context)) == (120.0, {"vram_gb": 80.0})
    assert rejects == []


def test_cards_in_another_order_keep_their_kind():
    spot = card("Spot VM Pricing", ("GPU Model", "Spot VM"), ("NVIDIA L40", "$0.80"))
    listings, _ = read("hyperstack", answer(spot + ON_DEMAND))
    assert prices(listings) == {
        ("NVIDIA L40", "on_demand"): (Decimal("1.00"), "USD"),
        ("NVIDIA L40", "spot"): (Decimal("0.80"), "USD"),
    }


def test_hidden_copy_is_not_read():
    hidden = f'<div style="display: none">{ON_DEMAND.replace("1.00", "9.00")}</div>'
    assert prices(read("hyperstack", answer(hidden + ON_DEMAND))[0]) == {
        ("NVIDIA L40", "on_demand"): (Decimal("1.00"), "USD")
    }


def test_contact_us_and_unreadable_rows_are_rejects():
    mixed = card(
        "On-Demand GPU Pricing",
        ("GPU Model", "Pricing Per Hour"),
        ("NVIDIA B300", "Contact us"),
        ("NVIDIA B200", "––"),
        ("NVIDIA H200 SXM", "$3.99 $4.99"),
        ("NVIDIA H100 SXM",),
        ("NVIDIA L40", "€0.92"),
    )
    listings, rejects = read("hyperstack", answer(mixed))
    assert prices(listings) == {("NVIDIA L40", "on_demand"): (Decimal("0.92"), "EUR")}
    assert [r.reason for r in rejects] == [
        "unreadable_row",
        "not_offered",
        "not_offered",
        "unreadable_price",
    ]


def test_a_gpu_card_of_unknown_kind_is_rejected_row_by_row():
    other = card("Private Cloud Pricing", ("GPU Model", "Pricing Per Hour"), ("NVIDIA L40", "$0.50"))
    listings, rejects = read("hyperstack", answer(ON_DEMAND + other))
    assert len(listings) == 1
    assert [r.reason for r in rejects] == ["unknown_price_kind"]


def test_pricebook_gpu_rows():
    book = [
        {
            "id": 1,
            "name": "H100-80G-PCIe",
            "value": "2.5",
            "original_value": "2.5",
            "discount_applied": False,
        },
        {"id": 2, "name": "H100-80G-PCIe-spot", "value": "2.000000000", "original_value": "2.000000000"},
        {"id": 3, "name": "RTX-A6000", "value": 0.5},
        {"id": 4, "name": "L40", "value": "0.9", "original_value": "1.0", "discount_applied": True},
        {"id": 5, "name": "B200-SXM", "value": "0E-9"},
        {"id": 6, "name": "vCPU (cpu-only-flavors)", "value": "0.01"},
        {"id": 7, "name": "llama-3.3-70b-input", "value": "0.8"},
        {"id": 8, "name": "Public IP", "value": "0.00672"},
    ]
    listings, rejects = read("hyperstack", answer(book))
    assert prices(listings) == {
        ("H100-80G-PCIe", "on_demand"): (Decimal("2.5"), "USD"),
        ("H100-80G-PCIe", "spot"): (Decimal("2.000000000"), "USD"),
        ("RTX-A6000", "on_demand"): (Decimal("0.5"), "USD"),
        ("L40", "on_demand"): (Decimal("1.0"), "USD"),
    }
    assert [r.reason for r in rejects] == ["zero_price"]
    assert len(read("hyperstack", answer({"data": book}))[0]) == 4


@pytest.mark.parametrize(
    "body",
    [
        PAGE.replace("On-Demand GPU", "Our GPU"),
        PAGE.replace("GPU Model", "Accelerator"),
        PAGE.replace("Pricing Per Hour", "Cost"),
        PAGE.replace("page-price_card_row_item ", "row "),
        card(
            "On-Demand GPU Pricing",
            ("GPU Model", "Pricing Per Hour", "Pricing Per Month"),
            ("L40", "$1", "$9"),
        ),
        card("On-Demand GPU Pricing", ("GPU Model", "Pricing Per Hour")),
        '[{"id": 1, "name": "Public IP", "value": "0.00672"}]',
        '[{"id": 1, "name": "L40"}]',
        '[{"id": 1}]',
        '[{"id": 1, "name": "L40", "val',
    ],
)
def test_another_shape_fails_the_source(body):
    with pytest.raises(SourceChangedError):
        read("hyperstack", answer(body))


def test_cards_without_headings_have_the_usual_columns():
    row = "".join(
        f'<div class="page-price_card_row_item_col">{cell}</div>'
        for cell in ("NVIDIA H100 SXM", "80", "24", "240", "&nbsp;$3.00")
    )
    card = (
        '<div class="page-price_card"><h3><span>On-Demand {}</span> Pricing</h3>'
        '<div class="page-price_card_row_item">' + row + "</div></div>"
    )
    listings, _ = read("hyperstack", answer(card.format("GPU") + card.format("CPU")))
    assert [(r.raw_label, str(r.native_price), r.context) for r in listings] == [
        ("NVIDIA H100 SXM", "3.00", {"vram_gb": 80.0})
    ]


def stock_of(*models, region="NORWAY-1"):
    """A region of the stock, as the API's reference shows it."""
    unplanned = dict.fromkeys(["planned_7_days", "planned_30_days", "planned_100_days"])
    free = [
        {"model": name, "available": available, "configurations": sizes} | unplanned
        for name, available, sizes in models
    ]
    return {"region": region, "stock-type": "GPU", "models": free}


SIZES = {"1x": 0, "2x": 0, "4x": 0, "8x": 12, "10x": 0}
NONE = dict.fromkeys(SIZES, 0)
STOCK = {
    "stocks": [
        stock_of(("H100-80G-SXM5", "96", SIZES), ("L40", "200+", SIZES | {"1x": 300})),
        stock_of(("H100-80G-SXM5", "0", NONE), ("RTX-A6000", None, None), region="CANADA-1"),
    ]
}


def test_the_stock_gives_the_regions_and_machines_of_free_gpus():
    alone, _ = read("hyperstack", answer(PAGE))
    for answers in ([answer(PAGE), answer(STOCK)], [answer(STOCK), answer(PAGE)]):
        listings, rejects = read("hyperstack", *answers)
        found = {
            (r.raw_label, r.region): (r.available, r.gpu_counts)
            for r in listings
            if r.price_kind == "on_demand" and r.region
        }
        assert found == {
            ("NVIDIA H100 SXM", "NORWAY-1"): (True, (8,)),
            ("NVIDIA H100 SXM", "CANADA-1"): (False, None),
            ("NVIDIA L40", "NORWAY-1"): (True, (1, 8)),
            ("NVIDIA A6000", "CANADA-1"): (None, None),
        }
        assert len(listings) == len(alone) + 1  # only the H100 SXM is in two regions
        assert prices(listings) == prices(alone)
        assert {r.region for r in listings if r.price_kind != "on_demand"} == {None}
        assert [r.reason for r in rejects] == ["not_offered"]


def test_a_gpu_of_the_stock_that_the_yaml_lacks_is_named():
    body = {"stocks": [stock_of(("GB300-288G", "8", SIZES))]}
    rows = list(source_module("hyperstack").read([answer(PAGE), answer(body)], source_config("hyperstack")))
    assert any("GB300-288G" in row.text for row in rows if isinstance(row, ReaderWarning))


def test_every_price_of_the_page_has_a_name_in_the_stock():
    listings, _ = read("hyperstack", answer(PAGE))
    named = source_config("hyperstack").settings["stock_models"]
    assert {r.raw_label for r in listings if r.price_kind == "on_demand"} <= set(named)
    for label, model in named.items():
        assert identify(model, provider="hyperstack").gpu_id == identify(label, provider="hyperstack").gpu_id


@pytest.mark.parametrize(
    "body", [{"stocks": {}}, {"stocks": [{"models": []}]}, {"stocks": [stock_of((None, "8", SIZES))]}]
)
def test_an_unreadable_stock_removes_no_price(body):
    listings, rejects = read("hyperstack", answer(PAGE), answer(body))
    alone, _ = read("hyperstack", answer(PAGE))
    assert prices(listings) == prices(alone)
    assert [r.reason for r in rejects] == ["unreadable_answer", "not_offered"]


def test_the_stock_is_asked_for_with_a_key_only():
    config = source_config("hyperstack")
    module = source_module("hyperstack")
    (page,) = first_requests(config, module, {})
    assert page.url == "https://www.hyperstack.cloud/gpu-pricing"
    _, asked = first_requests(config, module, {"HYPERSTACK_API_KEY": "secret-of-the-test"})
    assert (asked.headers, asked.optional) == ({"api_key": "${HYPERSTACK_API_KEY}"}, True)
