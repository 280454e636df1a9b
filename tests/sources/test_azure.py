"""Azure's pages: linked, or at a position if a full page has no link."""

from typing import Any

from pipeline.catalog.source_config import source_config
from pipeline.sources import azure
from tests.sources.helpers import answer, page


def next_urls(body: Any, url: str = "https://prices.azure.com/api/retail/prices?$filter=x") -> list[str]:
    return [request.url for request in azure.next_requests(answer(body, url), source_config("azure"))]


def test_the_pages_follow_one_another() -> None:
    assert next_urls(page("azure", "page_3.json")) == [
        answer(page("azure", "page_3.json")).json()["NextPageLink"]
    ]
    for last in (page("azure", "page_4.json"), "<html>busy</html>", [{}], {"Items": None}):
        assert next_urls(last) == []


def test_full_page_with_an_empty_link_continues_at_its_position() -> None:
    url = "https://prices.azure.com/api/retail/prices?$filter=x"
    for link in ("", None):
        full = {"Items": [{}] * 1000, "NextPageLink": link}
        assert next_urls(full, url) == [f"{url}&$skip=1000"]
        assert next_urls(full, f"{url}&$skip=1000") == [f"{url}&$skip=2000"]
        assert next_urls({"Items": [{}] * 999, "NextPageLink": link}, url) == []
        assert next_urls({"Items": [], "NextPageLink": link}, f"{url}&$skip=2000") == []
