"""io.net's machines: priced whole, without the fees of a booking, from hosts and from partners."""

from tests.sources.edited_pages import changed, each, misread, outcome, sample_row
from tests.sources.helpers import page

MACHINE = sample_row("ionet", "hardware.json", "data", "hardware", 3)


def test_a_machine_is_priced_whole_and_without_its_fees() -> None:
    flag = "parts_priced_apart"
    cases = [
        ({}, [(2, "0.6", "community", True, flag)]),
        ({"supplier": "external", "sold_out": True}, [(2, "0.6", "partner", False, flag)]),
        ({"sold_out": None}, [(2, "0.6", "community", None, flag)]),
        *each([{"supplier": "third"}, {"supplier": ["internal"]}, {"supplier": None}], "unknown_terms"),
        ({"num_cards": 0}, ["changed: no machine with GPUs"]),
    ]
    columns = "gpu_count native_price tier available flag_reason"
    hardware = lambda change: {"data": {"hardware": [changed(MACHINE, change)]}}  # noqa: E731
    assert not misread("ionet", hardware, cases, columns)


def test_every_digit_of_a_price_is_kept() -> None:
    assert outcome("ionet", page("ionet", "hardware.json"))[0] == ("H100", "27.875342465753423")


def test_another_shape_is_a_change() -> None:
    assert outcome("ionet", {"data": []}) == ["changed: the answer has no list under hardware"]
