"""Oracle's price list by part number and the shapes that its parts bill."""

import json
from decimal import Decimal
from typing import Any

import pytest

from pipeline.catalog.machine_sizes import machine_size
from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import ReaderWarning, SourceChangedError
from pipeline.offers.build import build_offers
from pipeline.sources import source_module
from tests.sources.helpers import answer, page, read

PRODUCTS: dict[str, Any] = json.loads(page("oci", "products.json"))
SHAPES: dict[str, Any] = json.loads(page("oci", "shapes.json"))
OCI = source_config("oci")


def product(name: str, value: Any = 10, **more: Any) -> dict[str, Any]:
    """One product billed per GPU-hour."""
    prices = [{"model": "PAY_AS_YOU_GO", "value": value}]
    return {
        "partNumber": "B1",
        "displayName": name,
        "metricName": "GPU Per Hour",
        "serviceCategory": "Compute - GPU",
        "currencyCodeLocalizations": [{"currencyCode": "USD", "prices": prices}],
    } | more


H100 = product("OCI - Compute - GPU - H100")


def test_products_alone_give_a_machine_per_part_and_none_of_the_other_items() -> None:
    """Items of 2026-10-01: names are spelled five ways, and other things are sold by the GPU-hour too."""
    sold = [
        ("B109479", "Compute - GPU - L40S", 3.5),
        ("B109485", "OCI - Compute - GPU - MI300X", 6),
        ("B111758", "OCI- Compute - GPU - MI355X", 8.6),
        ("B112237", "Oracle Cloud Infrastructure - Compute - GPU - B300", 15),
        ("B88517", "Compute - Bare Metal GPU Standard - X7", 1.275),
        ("B88518", "Compute - Virtual Machine GPU Standard - X7", 1.275),
        ("B92740", "Compute - GPU - E3", 3.05),
        ("B95907", "Compute - GPU - A100 - v2", 4),
        ("B95909", "Compute  - GPU - A10", 2),
    ]
    machines = [product(name, value, partNumber=part) for part, name, value in sold]
    h100t = product("OCI - Compute - GPU - H100T", 10.75, partNumber="B109480")
    others = [
        product(name, value, partNumber=part, metricName=metric, serviceCategory=category)
        for part, name, value, metric, category in (
            ("B108807", "VMware - BM.GPU.A10.64 - 1 Year Commit", 13, "Node Per Hour", "Compute - VMware"),
            ("B109493", "RED.2 GPU", 100, "Resource Possession Per Day", "Roving Edge Infrastructure"),
            ("B111454", "GPU.L40S - Resource Commit", 0.6, "GPU Per Hour", "Compute Cloud@Customer"),
        )
    ]
    items = [*machines, h100t | {"serviceCategory": "Compute - GPU - Other"}, *others]
    listings, rejects = read("oci", answer({"lastUpdated": "2026-10-01", "items": items}))
    assert rejects == []
    assert {row.raw_label: float(row.native_price) for row in listings} == {
        **{name: value for _, name, value in sold},
        "OCI - Compute - GPU - H100T": 10.75,
    }
    assert {(row.gpu_count, row.native_unit, row.region) for row in listings} == {(1, "gpu_hour", None)}


def test_shapes_without_a_gpu_fail_by_themselves_and_add_nothing_to_the_products() -> None:
    shapes = answer({"items": [shape for shape in SHAPES["items"] if shape["gpuQty"] is None]})
    with pytest.raises(SourceChangedError, match="no GPU shape"):
        read("oci", shapes)
    (with_shapes, _), (alone, _) = read("oci", answer(PRODUCTS), shapes), read("oci", answer(PRODUCTS))
    assert [(r.raw_label, r.native_price) for r in with_shapes] == [
        (r.raw_label, r.native_price) for r in alone
    ]


def test_part_with_shapes_becomes_its_shapes() -> None:
    listings, rejects = read("oci", answer(SHAPES), answer(PRODUCTS))
    by_shape = {(row.instance_type, row.price_kind): row for row in listings if row.instance_type}
    assert len(by_shape) == 7
    assert {row.label_kind for row in by_shape.values()} == {"instance_type"}
    nvl72 = by_shape["BM.GPU.GB200.4", "on_demand"]
    assert (nvl72.gpu_count, nvl72.native_price, nvl72.native_unit) == (4, 16, "gpu_hour")
    spot = by_shape["VM.GPU3.4", "spot"]
    assert (spot.native_price, spot.tier) == (Decimal("1.475"), "preemptible_by_rule")
    assert ("BM.GPU.H100.8", "spot") not in by_shape
    assert "Compute - GPU Standard - V2" not in {row.raw_label for row in listings}
    assert [reject.reason for reject in rejects].count("incomplete_price") == 1


def test_without_its_shape_a_part_is_sold_in_the_sizes_of_the_catalogue_or_not_at_all() -> None:
    """With shapes.json cut short, the H100 of an 8-GPU shape at 80 USD was one GPU at 10. Of a T4, which
    Oracle does not sell, nothing is known."""
    kept = [shape for shape in SHAPES["items"] if "H100" not in str(shape.get("name"))]
    assert len(kept) < len(SHAPES["items"])
    h100 = product("OCI - Compute - GPU - H100", 10, partNumber="B98415")
    t4 = product("OCI - Compute - GPU - T4", 1, partNumber="B0")
    rows = source_module("oci").read([answer({"items": [h100, t4]}), answer({"items": kept})], OCI)
    built = build_offers(rows, OCI)
    (offer,) = (offer for offer in built.offers if offer.gpu_id == "h100-sxm-80gb")
    assert (offer.gpu_count, offer.usd_per_hour, offer.size_evidence) == (1, 10, "catalogued")
    size = machine_size("oci", offer.gpu_id, offer.tier)
    assert size is not None
    assert size.gpu_counts == (8,)
    assert [reject.reason for reject in built.rejects if "- T4'" in reject.detail] == ["unknown_gpu_count"]


def test_bare_list_and_values_as_text_are_read() -> None:
    (listing,), _ = read("oci", answer([product("OCI - Compute - GPU - H100", "10.00", extra=1)]))
    assert listing.native_price == Decimal("10.00")


def test_software_and_appliances_with_the_same_metric_are_not_machines() -> None:
    software = product("OCI - NVIDIA AI Enterprise - H100", 2.5, partNumber="B2")
    at_customer = product(
        "Oracle Compute Cloud@Customer - Compute - GPU.L40S", 3.5, serviceCategory="Compute Cloud@Customer"
    )
    listings, rejects = read("oci", answer([H100, software, at_customer]))
    assert [row.raw_label for row in listings] == ["OCI - Compute - GPU - H100"]
    assert [reject.reason for reject in rejects] == ["other_product"]


def prices(*found: tuple[str, str, Any]) -> list[dict[str, Any]]:
    return [
        {"currencyCode": cur, "prices": [{"model": model, "value": value}]} for cur, model, value in found
    ]


@pytest.mark.parametrize(
    ("local", "reason"),
    [
        (prices(("EUR", "PAY_AS_YOU_GO", 9), ("GBP", "PAY_AS_YOU_GO", 8)), "not_offered"),
        (prices(("USD", "ANNUAL_COMMITMENT", 9)), "not_offered"),
        (prices(("USD", "PAY_AS_YOU_GO", 0)), "zero_price"),
        (prices(("USD", "PAY_AS_YOU_GO", "Contact sales")), "not_offered"),
        (prices(("USD", "PAY_AS_YOU_GO", 9), ("USD", "PAY_AS_YOU_GO", 8)), "conflicting_prices"),
        ([], "not_offered"),
    ],
)
def test_product_without_one_dollar_price_is_a_reject(local: list[Any], reason: str) -> None:
    odd = product("OCI - Compute - GPU - H200", partNumber="B2", currencyCodeLocalizations=local)
    listings, rejects = read("oci", answer({"items": [H100, odd]}))
    assert len(listings) == 1
    assert [reject.reason for reject in rejects] == [reason]


def test_right_model_is_taken_among_several() -> None:
    local = prices(("EUR", "PAY_AS_YOU_GO", 9), ("USD", "MONTHLY", 7), ("USD", "PAY_AS_YOU_GO", 10))
    (listing,), _ = read("oci", answer([product("Compute - GPU - H100", currencyCodeLocalizations=local)]))
    assert listing.native_price == 10


@pytest.mark.parametrize(
    "body",
    [
        b'{"items": [{"partNumber": "B9',
        b'{"items": []}',
        b'{"products": []}',
        json.dumps([{k: v for k, v in H100.items() if k != "metricName"}]).encode(),
    ],
)
def test_answer_of_another_shape_fails_the_source(body: bytes) -> None:
    with pytest.raises(SourceChangedError):
        read("oci", answer(body))


def shape(**changes: Any) -> dict[str, Any]:
    return {"name": "BM.GPU.H100.8", "gpuQty": 8, "products": [{"partNumber": "B1"}]} | changes


A10 = product("Compute - GPU - A10", 2, partNumber="B2")


def test_a_part_with_two_prices_is_rejected_and_prices_no_shape() -> None:
    dearer = product("OCI - Compute - GPU - H100", 11)
    listings, rejects = read("oci", answer([H100, dearer, A10, shape()]))
    assert [row.raw_label for row in listings] == ["Compute - GPU - A10"]
    assert [reject.reason for reject in rejects] == ["conflicting_prices"] * 2 + ["incomplete_price"]


def test_a_part_listed_again_without_a_price_keeps_its_price() -> None:
    listings, rejects = read("oci", answer([H100, {**H100, "currencyCodeLocalizations": []}, A10]))
    assert [row.raw_label for row in listings] == [H100["displayName"], "Compute - GPU - A10"]
    assert len(rejects) == 1


def test_parts_without_a_number_are_not_blamed_for_each_others_prices() -> None:
    numberless = [{**part, "partNumber": None} for part in (H100, A10)]
    _, rejects = read("oci", answer([*numberless, product("Compute - GPU - A10", 2, partNumber="B3")]))
    assert [reject.reason for reject in rejects] == ["missing_field"] * 2


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({}, ["on_demand"]),
        ({"hidden": None, "status": None}, ["on_demand"]),
        ({"hidden": False, "status": "ACTIVE"}, ["on_demand"]),
        ({"hidden": True}, []),
        ({"hidden": True, "status": "ACTIVE"}, []),
        ({"hidden": False, "status": "RETIRED"}, []),
        ({"allowPreemptible": True}, ["on_demand", "spot"]),
        ({"allowPreemptible": False}, ["on_demand"]),
        ({"allowPreemptible": True, "hidden": True}, []),
    ],
)
def test_only_a_shape_that_is_shown_and_active_is_offered(changes: dict[str, Any], kinds: list[str]) -> None:
    listings, rejects = read("oci", answer([H100, shape(**changes)]))
    assert [row.price_kind for row in listings] == kinds
    assert [reject.reason for reject in rejects] == ([] if kinds else ["not_offered"])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"gpuQty": 0.5}, "unknown_gpu_count"),
        ({"gpuQty": -1}, "unknown_gpu_count"),
        ({"gpuQty": "?"}, "unknown_gpu_count"),
        ({"name": ""}, "missing_field"),
        ({"products": []}, "incomplete_price"),
        ({"products": [{"partNumber": "B1"}, {"partNumber": "B2"}]}, "incomplete_price"),
    ],
)
def test_a_shape_that_cannot_be_read_is_rejected(changes: dict[str, Any], reason: str) -> None:
    listings, rejects = read("oci", answer([H100, A10, shape(**changes)]))
    assert [row.instance_type for row in listings if row.instance_type] == []
    assert [reject.reason for reject in rejects] == [reason]


def test_an_answer_in_euros_gives_euros() -> None:
    odd = product(
        "OCI - Compute - GPU - H200",
        partNumber="B2",
        currencyCodeLocalizations=prices(("EUR", "PAY_AS_YOU_GO", 9.3)),
    )
    listings, _ = read("oci", answer({"items": [odd]}))
    assert [(str(row.native_price), row.native_currency) for row in listings] == [("9.3", "EUR")]


def test_a_mangled_product_does_not_take_the_others_along() -> None:
    nameless = {"partNumber": "B3", "currencyCodeLocalizations": "none"}
    mangled = product("OCI - Compute - GPU - H200", partNumber="B2", currencyCodeLocalizations=["?"])
    listings, rejects = read("oci", answer({"items": [nameless, mangled, H100]}))
    assert [row.raw_label for row in listings] == ["OCI - Compute - GPU - H100"]
    assert [reject.reason for reject in rejects] == ["not_offered"]


ESTIMATED: list[dict[str, Any]] = [
    {
        "partNumber": item["partNumber"],
        "billingModel": "UCM",
        "pricetype": "HOUR",
        "currencyCodeLocalizations": item["currencyCodeLocalizations"],
    }
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


def offered(*bodies: Any) -> dict[tuple[str, str], Decimal]:
    listings, _ = read("oci", *map(answer, bodies))
    return {(row.raw_label, row.price_kind): row.native_price for row in listings}


@pytest.mark.parametrize("prices", [{"items": ESTIMATED}, PRICE_LIST], ids=["estimator", "price list"])
@pytest.mark.parametrize("others", [[SHAPES], []], ids=["with shapes", "alone"])
def test_the_further_lists_give_the_same_offers_as_the_products(prices: Any, others: list[Any]) -> None:
    expected = offered(PRODUCTS, *others)
    assert len(expected) > 14
    assert offered(prices, *others) == expected


@pytest.mark.parametrize("prices", [{"items": ESTIMATED}, PRICE_LIST], ids=["estimator", "price list"])
def test_a_reading_of_a_further_list_reports_omissions(prices: Any) -> None:
    rows = list(source_module("oci").read([answer(prices, url="https://oracle.example/list")], OCI))
    (warning,) = [row.text for row in rows if isinstance(row, ReaderWarning)]
    count = len(OCI.settings["gpu_parts"])
    assert (
        warning == f"https://oracle.example/list names no units: only the {count} known part numbers are read"
    )


def test_a_part_of_unknown_unit_is_never_priced() -> None:
    """A number that no products answer had may be billed per node; a shape that it bills is a reject."""
    known, unknown = ESTIMATED[0] | {"partNumber": "B98415"}, ESTIMATED[0] | {"partNumber": "B999999"}
    monthly = ESTIMATED[0] | {"partNumber": "B110519", "pricetype": "MONTH"}
    shapes = {"items": [shape(products=[{"partNumber": "B999999"}])]}
    listings, rejects = read("oci", answer({"items": [known, unknown, monthly]}), answer(shapes))
    assert [row.raw_label for row in listings] == [OCI.settings["gpu_parts"]["B98415"]]
    assert sorted(reject.reason for reject in rejects) == ["incomplete_price", "unknown_unit"]


def test_the_price_list_without_a_known_part_fails_the_source() -> None:
    with pytest.raises(SourceChangedError, match="none of the known part numbers"):
        read("oci", answer({"items": {"B1": {"USD": 1}, "B98415": 10}}))


def test_price_lists_that_contradict_each_other_are_refused() -> None:
    other = PRICE_LIST | {"items": PRICE_LIST["items"] | {"B98415": {"USD": 9}}}
    listings, rejects = read("oci", answer(PRODUCTS), answer(other))
    assert "conflicting_prices" in {reject.reason for reject in rejects}
    assert not any("H100" in row.raw_label and "H100T" not in row.raw_label for row in listings)


def test_each_price_list_leads_to_the_next() -> None:
    products, estimator, price_list = OCI.requests[0].url, *OCI.settings["further_price_lists"]
    retry = source_module("oci").retry_requests
    chain = [[each.url for each in retry(answer("", url), OCI)] for url in (products, estimator, price_list)]
    assert chain == [[estimator], [price_list], []]
    assert retry(answer("", OCI.requests[1].url), OCI) == []
