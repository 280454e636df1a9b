"""Linode's list of types: a price per plan, and others per region."""

from typing import Any

from tests.sources.edited_pages import GONE, alone, each, misread

SMALL: dict[str, Any] = {
    "id": "g2-gpu-rtx4000a2-s",
    "label": "RTX4000 Ada x2 Small",
    "class": "gpu",
    "gpus": 2,
    "vcpus": 8,
    "memory": 32768,
    "disk": 1048576,
    "price": {"hourly": 1.05, "monthly": 700.0},
    "region_prices": [{"id": "id-cgk", "hourly": 1.26, "monthly": 840.0}],
}


def test_a_region_with_its_own_price_is_a_separate_listing() -> None:
    jakarta = ("id-cgk", "1.26", 2, 32, 1048.576)
    cases = [
        ({}, [(None, "1.05", 2, 32, 1048.576), jakarta]),
        ({"price.hourly": 0}, [jakarta, "zero_price"]),
        ({"price": None}, [jakarta, "not_offered"]),
        ({"region_prices": None, "memory": GONE, "disk": "?"}, [(None, "1.05", 2, None, None)]),
        ({"class": GONE, "gpus": "2"}, [(None, "1.05", 2, 32, 1048.576), jakarta]),
        *each([{"gpus": 0}, {"gpus": None}], "unknown_gpu_count"),
        ({"class": "dedicated", "gpus": 0}, ["changed: no plan with GPUs"]),
    ]
    assert not misread("linode", alone(SMALL), cases, "region native_price gpu_count ram_gib local_disk_gb")
