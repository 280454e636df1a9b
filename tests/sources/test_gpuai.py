"""GPU.ai's marketplace: pages by cursor, prices of whole machines, and whose hardware it is."""

from typing import Any

from tests.sources.edited_pages import changed, outcome, sample_row
from tests.sources.helpers import answer, following

FIRST = "https://api.gpu.ai/v1/pricing?limit=200"
OFFER = sample_row("gpuai", "pricing.json", "data", 1)


def pricing(*offers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"data": [changed(OFFER, change) for change in offers], "next_cursor": None} | more


def test_the_next_page_is_asked_for_by_its_cursor() -> None:
    for cursor, url in ((None, None), ("", None), ("a=b", f"{FIRST}&cursor=a%3Db")):
        assert following("gpuai", answer(pricing({}, next_cursor=cursor), FIRST)) == url
    unsaid = pricing({})
    del unsaid["next_cursor"]
    assert outcome("gpuai", unsaid) == [("b300", "50.62"), "unread_page"]


def test_an_offer_that_two_pages_show_is_one() -> None:
    first, second = pricing({}, next_cursor="x"), pricing({}, {"offering_id": "other"})
    assert outcome("gpuai", first, second) == [("b300", "50.62")] * 2 + ["duplicate"]
    nameless = pricing({"offering_id": None}, {"offering_id": None})
    assert outcome("gpuai", nameless) == [("b300", "50.62")] * 2
