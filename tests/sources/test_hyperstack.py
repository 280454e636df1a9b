"""Hyperstack's stock: the regions and machines of the prices on the page."""

from typing import Any

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import ReaderWarning
from pipeline.gpus import identify
from pipeline.sources import source_module
from tests.sources.edited_pages import outcome
from tests.sources.helpers import answer, page

PAGE = page("hyperstack", "gpu-pricing.html")


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
