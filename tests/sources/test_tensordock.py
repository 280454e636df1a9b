"""TensorDock's two shapes, and that a GPU's price is never taken for a machine's."""

from typing import Any

from tests.sources.edited_pages import GONE, changed, each, misread, sample_row

GPU = sample_row("tensordock", "locations.json", "data", "locations", 1, "gpus", 1)
HOST = {
    "status": {"online": True},
    "location": {"country": "United States", "region": "Texas", "city": "Dallas"},
    "specs": {
        "gpu": {"l40-pcie-48gb": {"amount": 8, "price": 0.95}},
        "cpu": {"amount": 96, "price": 0.003},
        "storage": {"amount": 4000, "price": 0.00005},
    },
}
COLUMNS = "raw_label native_price region available tier storage_usd_per_gb_month flag_reason"
EXTRA = "cpu_and_memory_charged_extra"


def test_a_gpu_at_a_location() -> None:
    def location(change: dict[str, Any]) -> Any:
        return [{"gpus": [changed(GPU, change), "?"]}]  # a bare list, without optional fields

    l40 = ("NVIDIA L40 PCIe 48GB", "0.95", None)
    cases = [
        ({}, [(*l40, True, None, "0.0365", EXTRA)]),
        ({"max_count": 0}, [(*l40, False, None, "0.0365", EXTRA)]),
        ({"max_count": "many", "pricing": "on request"}, [(*l40, None, None, None, EXTRA)]),
        ({"displayName": None}, [("l40-pcie-48gb", *l40[1:], True, None, "0.0365", EXTRA)]),
        ({"displayName": None, "v0Name": 7}, ["missing_field"]),
        ({"price_per_hr": "call us"}, ["unreadable_price"]),
    ]
    assert not misread("tensordock", location, cases, COLUMNS)


def test_a_gpu_on_a_host_of_v0() -> None:
    def hosts(change: dict[str, Any]) -> Any:
        return {"success": True, "hostnodes": {"u1": changed(HOST, change), "u2": {"specs": {}}}}

    l40, dallas = ("l40-pcie-48gb", "0.95"), "Dallas, Texas, United States"
    amount = "specs.gpu.l40-pcie-48gb.amount"
    of_texas = {"location.city": "Texas", "location.country": GONE, "specs.storage": GONE}
    cases = [
        ({}, [(*l40, dallas, True, None, "0.0365", EXTRA)]),  # 730 hours at 0.00005
        *each([{amount: 0}, {"status.online": False}], (*l40, dallas, False, None, "0.0365", EXTRA)),
        ({amount: GONE, "status": {}}, [(*l40, dallas, None, None, "0.0365", EXTRA)]),
        (of_texas, [(*l40, "Texas", True, None, None, EXTRA)]),
        ({"specs.gpu": {}}, ["changed: no GPU at any location (the list was empty in 2026-08 too)"]),
    ]
    assert not misread("tensordock", hosts, cases, COLUMNS)
