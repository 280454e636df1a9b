"""GPU.ai's marketplace: pages by cursor, prices of whole machines, and whose hardware it is."""

import json
from pathlib import Path
from typing import Any

from tests.capture.site import Asked, Reply, Site
from tests.sources.edited_pages import changed, outcome, sample_row
from tests.sources.helpers import answer, following, page, read
from tests.sources.loopback import json_reply, visit

HOST, PATH = "api.gpu.ai", "/v1/pricing"
FIRST = f"https://{HOST}{PATH}?limit=200"
OFFER = sample_row("gpuai", "pricing.json", "data", 1)


def pricing(*offers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"data": [changed(OFFER, change) for change in offers], "next_cursor": None} | more


def test_the_book_is_read_page_by_page_to_its_end(tmp_path: Path) -> None:
    pages = {
        f"{PATH}?limit=200": page("gpuai", "pricing.json"),
        f"{PATH}?limit=200&cursor=MjAyNi0wOC0yMnxydHhfMzA5MHx8MQ%3D%3D": page("gpuai", "pricing-2.json"),
    }

    def book(asked: Asked) -> Reply:
        return json_reply(pages[asked.target]) if asked.target in pages else Reply(400, b"{}")

    with Site() as site:
        site.route(HOST, PATH, book)
        captured, answers = visit("gpuai", site, tmp_path)
        assert [asked.target for asked in site.pages_asked()] == list(pages)
    assert (captured.status, len(read("gpuai", *answers)[0])) == ("captured", 9)


def test_a_book_whose_cursor_does_not_move_on_ends(tmp_path: Path) -> None:
    with Site() as site:
        site.say(HOST, PATH, json_reply(json.dumps(pricing({}, next_cursor="the same"))))
        _, answers = visit("gpuai", site, tmp_path)
        assert len(site.pages_asked()) == 2
    assert outcome("gpuai", *answers)[0] == ("b300", "50.62")
    assert set(outcome("gpuai", *answers)[1:]) <= {"duplicate"}


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
