"""Denvr's machines: prices per GPU from the data in the page, and what is no price of one."""

from decimal import Decimal

import pytest

from pipeline.contracts.listing import SourceChangedError
from pipeline.sources.denvr import SCRIPT
from tests.sources.helpers import answer, contradicted, page, read

H100 = '"price": "$2.10 / GPU"'


def sample(old: str = "", new: str = "", times: int = 1) -> str:
    text = page("denvr", "pricing.html")
    assert not old or old in text
    return text.replace(old, new, times) if old else text


def test_the_machines_that_others_read_are_read_with_the_same_counts_and_prices() -> None:
    listings, _ = read("denvr", answer(sample()))
    found = {
        (row.raw_label, row.context["vram_gb"]): (row.gpu_count, str(row.native_price)) for row in listings
    }
    assert found == {
        ("Intel Gaudi 2", 96): (8, "1.25"),
        ("NVIDIA A100 PCIe", 40): (4, "1.15"),
        ("NVIDIA A100 SXM", 80): (8, "1.30"),
        ("NVIDIA A100 SXM", 40): (8, "1.15"),
        ("NVIDIA A40 PCIe", 48): (4, "0.65"),
        ("NVIDIA GH200", 96): (1, "3.87"),
        ("NVIDIA H100 SXM", 80): (8, "2.10"),
    }
    assert {(row.native_unit, row.flag_reason) for row in listings} == {("gpu_hour", None)}


@pytest.mark.parametrize(
    ("price", "reason"),
    [
        ('"price": "$2.10"', "unreadable_price"),  # per machine or per GPU
        ('"price": 2.1', "unreadable_price"),
        ('"price": "$16.80 / hr"', "unreadable_price"),
        ('"price": "$1500 / month"', "unreadable_price"),
        ('"price": "$2.10 / GPU$1.68 / GPU"', "unreadable_price"),
        ('"price": "$2.10$1.68 / GPU"', "unreadable_price"),
        ('"price": "$2.10 - $2.45 / GPU"', "unreadable_price"),
        ('"price": "€2.10 / GPU"', "unreadable_price"),
        ('"price": "$0.00 / GPU"', "zero_price"),
        ('"price": "Reserved only"', "not_offered"),
        ('"price": "Contact us"', "not_offered"),
        ('"price": "Sold out"', "not_offered"),
        ('"price": null', "not_offered"),
        ('"price": {"amount": 2}', "unreadable_price"),
    ],
)
def test_a_machine_without_a_certain_price_per_gpu_is_rejected(price: str, reason: str) -> None:
    listings, rejects = read("denvr", answer(sample(H100, price)))
    assert "NVIDIA H100 SXM" not in {row.raw_label for row in listings}
    assert [reject.reason for reject in rejects if "H100" in reject.detail] == [reason]


def test_a_lowest_price_is_flagged() -> None:
    listings, _ = read("denvr", answer(sample(H100, '"price": "From $2.10 / GPU"')))
    flags = {row.raw_label: row.flag_reason for row in listings}
    assert flags["NVIDIA H100 SXM"] == "starting_price"


def test_a_number_of_gpus_may_be_a_text_and_is_not_guessed() -> None:
    listings, rejects = read("denvr", answer(sample('"gpuCount": 8', '"gpuCount": "8"', times=9)))
    assert len(listings) == 7
    assert len(rejects) == 3
    listings, _ = read("denvr", answer(sample('"gpuCount": 8', '"gpuCount": null', times=9)))
    assert {row.gpu_count for row in listings} == {1, 4}


def test_a_machine_at_two_prices_is_flagged() -> None:
    twice = answer(sample('"gpuVram": "40 GB"', '"gpuVram": "80 GB"', times=2))
    assert contradicted("denvr", twice) == ["NVIDIA A100 SXM"] * 2


def test_the_price_of_storage_and_of_the_visible_page_are_not_read() -> None:
    listings, _ = read("denvr", answer(sample("<p>$2.10 / GPU</p>", "<p>$9.99 / GPU</p>")))
    prices = {row.native_price for row in listings}
    assert not prices & {Decimal("0.10"), Decimal("9.99")}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f'id="{SCRIPT}"', 'id="other"'),
        ("GPUInstances", "Instances"),
        ("dataBinding", "dataBound"),
        ('"dataBinding": {', '"dataBinding": [{'),
        ("</body>", f'<script id="{SCRIPT}">{{}}</script></body>'),
    ],
)
def test_data_of_another_shape_is_a_change(old: str, new: str) -> None:
    with pytest.raises(SourceChangedError):
        read("denvr", answer(sample(old, new)))


def test_a_page_without_machines_is_a_change() -> None:
    with pytest.raises(SourceChangedError, match="not one"):
        read("denvr", answer("<html><p>NVIDIA H100 SXM $2.10 / GPU</p></html>"))
