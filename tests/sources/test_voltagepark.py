"""Voltage Park's nodes per network and its machine presets."""

from tests.sources.edited_pages import GONE, alone, each, misread, outcome, sample_row

LOCATION = sample_row("voltagepark", "locations.json", "results", 0)
PRESET = sample_row("voltagepark", "instant_deploy_presets.json", 0)


def test_a_node_is_priced_per_gpu_and_network_and_rented_whole() -> None:
    ethernet = ("bare_metal_ethernet", "1.99", 8, True, None)
    infiniband = ("bare_metal_infiniband", "2.49", 8, False, 3200)
    no_price = {name: GONE for name in LOCATION if name.startswith("gpu_price_")}
    cases = [
        ({}, [ethernet, infiniband]),
        ({"gpu_price_ethernet": 2}, [(ethernet[0], "2", *ethernet[2:]), infiniband]),
        ({"gpu_count_ethernet": None}, [(*ethernet[:3], None, None), infiniband]),
        ({"gpu_price_spot": "0.99"}, [ethernet, infiniband, "unknown_terms"]),
        ({"gpu_price_infiniband": None}, [ethernet, "not_offered"]),
        ({"specs_per_node": "?"}, ["missing_field"]),
        ({"specs_per_node": {"gpu_model": "h100-sxm5-80gb", "gpu_count": 0}}, ["unknown_gpu_count"]),
        (no_price, ["changed: a location has no gpu_price_* field"]),
    ]
    columns = "tier native_price min_gpu_count available node_network_gbps"
    assert not misread("voltagepark", alone(LOCATION), cases, columns)


def test_a_machine_costs_its_compute_and_its_disk() -> None:
    vm = ("vm", "15.92", 8, False, None)
    gpus = "resources.gpus"
    cases = [
        ({}, [vm]),
        *each(
            [{"storage_rate_hourly": GONE}, {"storage_rate_hourly": None}],
            ("vm", "15.12", 8, False, "disk_not_priced"),
        ),
        ({"location_ids_with_availability": ["a"]}, [("vm", "15.92", 8, True, None)]),
        ({"location_ids_with_availability": "a"}, [("vm", "15.92", 8, None, None)]),
        ({"compute_rate_hourly": "0.000000"}, ["zero_price"]),
        ({gpus: {"a": {"count": 1}, "b": {"count": 1}}}, ["missing_field"]),
        *each([{gpus: {"h100-sxm5-80gb": {}}}, {gpus: {"h100-sxm5-80gb": "?"}}], "unknown_gpu_count"),
        ({gpus: {}}, ["changed: neither a location nor a preset with GPUs"]),
    ]
    assert not misread(
        "voltagepark", alone(PRESET), cases, "tier native_price gpu_count available flag_reason"
    )


def test_a_further_page_and_an_unknown_object_are_counted() -> None:
    more = {"results": [LOCATION], "total_result_count": 30, "has_next": True}
    prices = [("h100-sxm5-80gb", "1.99"), ("h100-sxm5-80gb", "2.49")]
    assert outcome("voltagepark", more) == [*prices, "unread_page"]
    assert outcome("voltagepark", [{"id": "a", "price": 1}, LOCATION]) == [*prices, "unreadable_row"]
