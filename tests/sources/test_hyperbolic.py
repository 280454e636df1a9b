"""Hyperbolic's options: cents of the whole option, its supplier's price, and options of several machines."""

from tests.sources.edited_pages import alone, each, misread, sample_row

OPTION = sample_row("hyperbolic", "rental_options.json", 3)


def test_the_price_is_of_the_whole_option_in_cents() -> None:
    cases = [
        ({}, [(8, "25.52", "bare-metal_infiniband")]),
        ({"costPerHourCents": 1432.5}, [(8, "14.325", "bare-metal_infiniband")]),
        ({"machineType": "virtual-machine"}, [(8, "25.52", "virtual-machine_infiniband")]),
        ({"connectionType": None}, [(8, "25.52", "bare-metal")]),
        ({"costPerHourCents": None}, ["not_offered"]),  # not what the supplier is paid
    ]
    assert not misread("hyperbolic", alone(OPTION), cases, "gpu_count native_price tier")


def test_an_option_with_terms_that_are_new_is_refused() -> None:
    (machine,) = OPTION["nodes"]
    cases = [
        *each([{"reservedCostPerHourCents": 900}, {"minHours": 24}], "unknown_terms"),
        *each([{"machineType": "container"}, {"machineType": None}], "other_product"),
        # Several machines, whose interconnect is not stated, are not one machine of all their GPUs.
        *each(
            [{"nodes": [machine, machine], "gpuCount": 16}, {"nodes": []}, {"nodes": None}], "unknown_terms"
        ),
        ({"gpuCount": 4}, ["unknown_gpu_count"]),
    ]
    assert not misread("hyperbolic", alone(OPTION), cases)


def test_a_missing_number_of_free_options_is_not_sold_out() -> None:
    cases = [
        ({"totalAvailable": 3}, [True]),
        ({"totalAvailable": 0}, [False]),
        ({"enabled": None}, [None]),
        ({"enabled": False, "totalAvailable": 3}, [False]),
    ]
    assert not misread("hyperbolic", alone(OPTION), cases, "available")
