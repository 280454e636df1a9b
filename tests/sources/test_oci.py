"""Oracle's price list by part number and the shapes that its parts bill."""

import json
from typing import Any

from pipeline.catalog.machine_sizes import machine_size
from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import ReaderWarning
from pipeline.offers.build import build_offers
from pipeline.sources import source_module
from tests.sources.edited_pages import changed, outcome
from tests.sources.helpers import answer, page

PRODUCTS: dict[str, Any] = json.loads(page("oci", "products.json"))
SHAPES: dict[str, Any] = json.loads(page("oci", "shapes.json"))
OCI = source_config("oci")
SHAPE = {"name": "BM.GPU.H100.8", "gpuQty": 8, "products": [{"partNumber": "B1"}]}


def product(name: str, value: Any = 10, **more: Any) -> dict[str, Any]:
    """One product billed per GPU-hour."""
    return {
        "partNumber": "B1",
        "displayName": name,
        "metricName": "GPU Per Hour",
        "serviceCategory": "Compute - GPU",
        "currencyCodeLocalizations": [
            {"currencyCode": "USD", "prices": [{"model": "PAY_AS_YOU_GO", "value": value}]}
        ],
    } | more


H100 = product("OCI - Compute - GPU - H100")


def test_shapes_without_a_gpu_fail_by_themselves_and_add_nothing_to_the_products() -> None:
    shapes = {"items": [shape for shape in SHAPES["items"] if shape["gpuQty"] is None]}
    assert outcome("oci", shapes) == ["changed: no product billed per GPU-hour and no GPU shape"]
    assert outcome("oci", PRODUCTS, shapes) == outcome("oci", PRODUCTS)


def test_without_its_shape_a_part_is_sold_in_the_sizes_of_the_catalogue_or_not_at_all() -> None:
    """With shapes.json cut short, the H100 of an 8-GPU shape at 80 USD was one GPU at 10. Of a T4, which
    Oracle does not sell, nothing is known."""
    kept = [shape for shape in SHAPES["items"] if "H100" not in str(shape.get("name"))]
    assert len(kept) < len(SHAPES["items"])
    t4 = product("OCI - Compute - GPU - T4", 1, partNumber="B0")
    parts = [H100 | {"partNumber": "B98415"}, t4]
    rows = source_module("oci").read([answer({"items": parts}), answer({"items": kept})], OCI)
    built = build_offers(rows, OCI)
    (offer,) = (offer for offer in built.offers if offer.gpu_id == "h100-sxm-80gb")
    assert (offer.gpu_count, offer.usd_per_hour, offer.size_evidence) == (1, 10, "catalogued")
    size = machine_size("oci", offer.gpu_id, offer.tier)
    assert (size and size.gpu_counts) == (8,)
    assert [reject.reason for reject in built.rejects if "- T4'" in reject.detail] == ["unknown_gpu_count"]


# --- the further price lists ---

ESTIMATED = [
    {name: item[name] for name in ("partNumber", "currencyCodeLocalizations")} | {"pricetype": "HOUR"}
    for item in PRODUCTS["items"]
]
"""The sample page's products as the cost estimator lists them: without name, metric and category."""

PRICE_LIST: dict[str, Any] = {
    "buildId": {"buildNumber": 350, "buildDate": "2026-07-16"},
    "items": {
        item["partNumber"]: {
            local["currencyCode"]: price["value"]
            for local in item["currencyCodeLocalizations"]
            for price in local["prices"]
        }
        for item in PRODUCTS["items"]
    },
    "vcpuItems": {"B98415": {"USD": 5}},
}


def test_the_further_lists_give_the_same_offers_as_the_products_and_say_what_they_omit() -> None:
    for others in ([SHAPES], []):
        expected = set(outcome("oci", PRODUCTS, *others))
        assert len(expected) > 14
        for further in ({"items": ESTIMATED}, PRICE_LIST):
            found = set(outcome("oci", further, *others))
            assert {row for row in found ^ expected if isinstance(row, tuple)} == set()
    count = len(OCI.settings["gpu_parts"])
    for further in ({"items": ESTIMATED}, PRICE_LIST):
        rows = source_module("oci").read([answer(further)], OCI)
        (warning,) = [row.text for row in rows if isinstance(row, ReaderWarning)]
        assert warning == f"{answer('').url} names no units: only the {count} known part numbers are read"


def test_a_part_of_unknown_unit_is_never_priced() -> None:
    """A number that no products answer had may be billed per node; a shape that it bills is a reject."""
    known, unknown = ESTIMATED[0] | {"partNumber": "B98415"}, ESTIMATED[0] | {"partNumber": "B999999"}
    monthly = ESTIMATED[0] | {"partNumber": "B110519", "pricetype": "MONTH"}
    shapes = {"items": [changed(SHAPE, {"products": [{"partNumber": "B999999"}]})]}
    found = outcome("oci", {"items": [known, unknown, monthly]}, shapes, columns="raw_label")
    assert found == [OCI.settings["gpu_parts"]["B98415"], "unknown_unit", "incomplete_price"]
    useless = {"items": {"B1": {"USD": 1}, "B98415": 10}}
    assert outcome("oci", useless) == ["changed: none of the known part numbers has prices by currency"]


def test_price_lists_that_contradict_each_other_are_refused() -> None:
    other = PRICE_LIST | {"items": PRICE_LIST["items"] | {"B98415": {"USD": 9}}}
    found = outcome("oci", PRODUCTS, other, columns="raw_label")
    assert found.count("conflicting_prices") == 2
    assert not any("H100" in label and "H100T" not in label for label in found)


def test_each_price_list_leads_to_the_next() -> None:
    products, estimator, price_list = OCI.requests[0].url, *OCI.settings["further_price_lists"]
    retry = source_module("oci").retry_requests
    asked = (products, estimator, price_list, OCI.requests[1].url)
    following = [[each.url for each in retry(answer("", url), OCI)] for url in asked]
    assert following == [[estimator], [price_list], [], []]
