"""Hyperstack: three GPU cards that look like the CPU and AI Studio cards, the API's pricebook, the stock."""

from typing import Any

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import ReaderWarning
from pipeline.gpus import identify
from pipeline.sources import source_module
from tests.sources.edited_pages import each, edited, misread, outcome
from tests.sources.helpers import answer, page

NAME = "gpu-pricing.html"
PAGE = page("hyperstack", NAME)
MODEL_AND_PRICE = ("GPU Model", "Pricing Per Hour")


def card(title: str, headers: tuple[str, ...], *rows: tuple[str, ...]) -> str:
    heads = "".join(f'<div class="page-price_card_head_item">{header}</div>' for header in headers)
    cells = [
        "".join(f'<div class="page-price_card_row_item_col"><span>{cell}</span></div>' for cell in row)
        for row in rows
    ]
    body = "".join(f'<div class="page-price_card_row_item">{cell}</div>' for cell in cells)
    return f'<div class="page-price_card"><h3>{title}</h3>{heads}{body}</div>'


def on_demand(*cells: str, title: str = "On-Demand GPU Pricing") -> str:
    return card(title, MODEL_AND_PRICE, cells)


def test_the_title_of_a_card_says_the_kind_of_price() -> None:
    l40 = on_demand("NVIDIA L40", "&nbsp;$1.00")
    spot = card("Spot VM Pricing", ("GPU Model", "Spot VM"), ("NVIDIA L40", "$0.80"))
    hidden = f'<div style="display: none">{l40.replace("1.00", "9.00")}</div>'
    listed = ("NVIDIA L40", "1", "on_demand", None)
    reserved = ("NVIDIA L40", "0.5", "reserved", "starting_price_of_an_unstated_term")
    cases = [
        (spot + l40, [("NVIDIA L40", "0.8", "spot", None), listed]),
        (hidden + l40, [listed]),
        (l40 + on_demand("NVIDIA L40", "$0.50", title="Reservation"), [listed, reserved]),
        (l40 + on_demand("NVIDIA L40", "$0.50", title="Private Cloud"), [listed, "unknown_price_kind"]),
        (spot, ["changed: no card with on-demand GPU prices"]),
    ]
    columns = "raw_label native_price price_kind flag_reason"
    assert not misread("hyperstack", lambda cards: cards, cases, columns)


def test_columns_may_move_and_cards_without_headings_have_the_usual_ones() -> None:
    headers = ("Max RAM (GB) per GPU", "Pricing Per Hour", "Network", "GPU Model", "VRAM (GB)")
    moved = card("On-Demand GPU Pricing", headers, ("120", "$\u00a01.35*", "16 Gbps", "NVIDIA A100", "80"))
    bare = [
        card(f"<span>On-Demand {of}</span> Pricing", (), ("NVIDIA A100", "80", "28", "120", "&nbsp;$1.35"))
        for of in ("GPU", "CPU")
    ]
    columns = "raw_label native_price vcpus ram_gib context"
    cases = [
        (moved, [("NVIDIA A100", "1.35", None, 120, {"vram_gb": 80})]),
        ("".join(bare), [("NVIDIA A100", "1.35", 28, 120, {"vram_gb": 80})]),
    ]
    assert not misread("hyperstack", lambda cards: cards, cases, columns)


def test_a_row_without_one_price_is_a_reject() -> None:
    cases = [
        *each([("NVIDIA B300", "Contact us"), ("NVIDIA B200", "––")], "not_offered"),
        (("NVIDIA H200 SXM", "$3.99 $4.99"), ["unreadable_price"]),
        (("NVIDIA H100 SXM",), ["unreadable_row"]),
        (("NVIDIA L40", "€0.92"), [("NVIDIA L40", "0.92", "EUR")]),
    ]
    columns = "raw_label native_price native_currency"
    assert not misread("hyperstack", lambda cells: on_demand(*cells), cases, columns)


def test_another_shape_fails_the_source() -> None:
    headers = (*MODEL_AND_PRICE, "Pricing Per Month")
    for body in (
        edited("hyperstack", NAME, ("GPU Model", "Accelerator")),
        edited("hyperstack", NAME, ("Pricing Per Hour", "Cost")),
        edited("hyperstack", NAME, ("page-price_card_row_item ", "row ")),
        card("On-Demand GPU Pricing", headers, ("L40", "$1", "$9")),
        [{"id": 1, "name": "Public IP", "value": "0.00672"}],
        [{"id": 1, "name": "L40"}],
        [{"id": 1}],
    ):
        (found,) = outcome("hyperstack", body)
        assert found.startswith("changed: "), body


SIZES = {"1x": 0, "2x": 0, "4x": 0, "8x": 12, "10x": 0}


def stock_of(*models: tuple[Any, Any, Any], region: str = "NORWAY-1") -> dict[str, Any]:
    """A region of the stock, as the API's reference shows it."""
    fields = ("model", "available", "configurations")
    return {
        "region": region,
        "stock-type": "GPU",
        "models": [dict(zip(fields, m, strict=True)) for m in models],
    }


def test_the_stock_gives_the_regions_and_machines_of_free_gpus() -> None:
    norway = stock_of(("H100-80G-SXM5", "96", SIZES), ("L40", "200+", SIZES | {"1x": 300, "x": 1}))
    free_or_not = ("H100-80G-SXM5", "0", dict.fromkeys(SIZES, 0)), ("RTX-A6000", None, None)
    stock = {"stocks": [norway, stock_of(*free_or_not, region="CANADA-1")]}
    alone = outcome("hyperstack", PAGE)
    for answers in ([PAGE, stock], [stock, PAGE]):
        found = outcome("hyperstack", *answers, columns="raw_label region available gpu_counts price_kind")
        assert {row[:4] for row in found[:-1] if row[1:4] != (None, None, None)} == {
            ("NVIDIA H100 SXM", "NORWAY-1", True, (8,)),
            ("NVIDIA H100 SXM", "CANADA-1", False, None),
            ("NVIDIA L40", "NORWAY-1", True, (1, 8)),
            ("NVIDIA A6000", "CANADA-1", None, None),
        }
        assert {row[4] for row in found[:-1] if row[1]} == {"on_demand"}
        assert len(found) == len(alone) + 1  # only the H100 SXM is in two regions
        assert set(outcome("hyperstack", *answers)) == set(alone)


def test_every_price_of_the_page_has_a_name_in_the_stock() -> None:
    named = source_config("hyperstack").settings["stock_models"]
    listed = outcome("hyperstack", PAGE, columns="raw_label price_kind")[:-1]
    assert {label for label, kind in listed if kind == "on_demand"} <= set(named)
    for label, model in named.items():
        assert identify(model, provider="hyperstack").gpu_id == identify(label, provider="hyperstack").gpu_id
    body = {"stocks": [stock_of(("GB300-288G", "8", SIZES), ("L40", "8", SIZES))]}
    rows = list(source_module("hyperstack").read([answer(PAGE), answer(body)], source_config("hyperstack")))
    unknown = "stock_models of the yaml lacks GPUs of the stock: GB300-288G"
    assert unknown in [row.text for row in rows if isinstance(row, ReaderWarning)]


def test_an_unreadable_stock_removes_no_price() -> None:
    *listed, reject = outcome("hyperstack", PAGE)
    for body in ({}, [{"models": []}], [stock_of((None, "8", SIZES))]):
        found = outcome("hyperstack", PAGE, {"stocks": body})
        assert found == [*listed, "unreadable_answer", reject]
