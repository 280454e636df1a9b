"""Voltage Park's nodes per network and its machine presets."""

from tests.sources.edited_pages import outcome, sample_row

LOCATION = sample_row("voltagepark", "locations.json", "results", 0)
PRESET = sample_row("voltagepark", "instant_deploy_presets.json", 0)


def test_a_further_page_and_an_unknown_object_are_counted() -> None:
    more = {"results": [LOCATION], "total_result_count": 30, "has_next": True}
    prices = [("h100-sxm5-80gb", "1.99"), ("h100-sxm5-80gb", "2.49")]
    assert outcome("voltagepark", more) == [*prices, "unread_page"]
    assert outcome("voltagepark", [{"id": "a", "price": 1}, LOCATION]) == [*prices, "unreadable_row"]
