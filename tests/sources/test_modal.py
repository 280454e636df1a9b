"""Modal's line items: a GPU gets the price that follows it, or none."""

from tests.sources.edited_pages import outcome

NAME = "pricing.html"
H100 = '<p class="x">Nvidia H100</p><p class="price">$0.001097 <span>/ sec</span></p>'
PRICED = ("Nvidia H100", "0.001097", "gpu_second", "USD")
COLUMNS = "raw_label native_price native_unit native_currency"


def test_a_page_without_prices_fails_the_source() -> None:
    assert outcome("modal", "<p>Nvidia H100</p>") == ["changed: no GPU with a price per second"]
