"""io.net's machines: priced whole, without the fees of a booking, from hosts and from partners."""

from tests.sources.edited_pages import outcome, sample_row
from tests.sources.helpers import page

MACHINE = sample_row("ionet", "hardware.json", "data", "hardware", 3)


def test_every_digit_of_a_price_is_kept() -> None:
    assert outcome("ionet", page("ionet", "hardware.json"))[0] == ("H100", "27.875342465753423")


def test_another_shape_is_a_change() -> None:
    assert outcome("ionet", {"data": []}) == ["changed: the answer has no list under hardware"]
