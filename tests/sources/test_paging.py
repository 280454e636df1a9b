"""Declared paging: which page is asked next, and how."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline.catalog.source_config import CursorPaging, NextLinkPaging, PageNumberPaging
from pipeline.contracts.listing import Request, SourceChangedError
from pipeline.parsing.paging import next_page
from tests.sources.helpers import answer

URL = "https://prices.example/list?q='A'%20or%20(B)&size=2&page=3"
NUMBERS = PageNumberPaging(kind="page_number", items="data.items", size_parameter="size")
LINK = NextLinkPaging(kind="next_link", field="next")
CURSOR = CursorPaging(kind="cursor", field="meta.next", parameter="after")


def next_url(body: Any, paging: Any, url: str = URL, **headers: str) -> str | None:
    found = next_page(Request(url), replace(answer(body), headers=headers), paging)
    return found.url if found else None


def items(count: int, **more: Any) -> dict[str, Any]:
    return {"data": {"items": [{}] * count}, **more}


@pytest.mark.parametrize(("total", "more"), [(6, False), ("6", False), (7, True), ("7", True), (0, False)])
def test_the_total_decides_the_last_page(total: object, more: bool) -> None:
    by_field = NUMBERS.model_copy(update={"total_field": "total"})
    by_header = NUMBERS.model_copy(update={"total_header": "x-total"})
    expected = URL.replace("page=3", "page=4") if more else None
    assert next_url(items(2, total=total), by_field) == expected
    assert next_url(items(2), by_header, **{"x-total": str(total)}) == expected


@pytest.mark.parametrize(("last", "more"), [(3, False), (4, True)])
def test_the_last_page_is_stated(last: int, more: bool) -> None:
    found = next_url(items(1, pages=last), NUMBERS.model_copy(update={"last_page_field": "pages"}))
    assert (found is not None) == more


@pytest.mark.parametrize(("count", "more"), [(0, False), (1, False), (2, True)])
def test_without_a_total_only_a_full_page_is_followed_by_another(count: int, more: bool) -> None:
    assert (next_url(items(count), NUMBERS) is not None) == more


def test_empty_page_ends_the_list() -> None:
    assert next_url(items(0, total=99), NUMBERS.model_copy(update={"total_field": "total"})) is None


def test_the_first_page_needs_no_number() -> None:
    assert next_url(items(2), NUMBERS, "https://a.example/?size=2") == "https://a.example/?size=2&page=2"


@pytest.mark.parametrize("url", ["https://a.example/", "https://a.example/?size=x", f"{URL}x"])
def test_pages_that_cannot_be_counted_are_an_error(url: str) -> None:
    with pytest.raises(SourceChangedError, match="cannot be counted"):
        next_url(items(2), NUMBERS, url)


def test_an_unreadable_total_is_an_error() -> None:
    with pytest.raises(SourceChangedError, match="cannot be counted"):
        next_url(items(2, total="many"), NUMBERS.model_copy(update={"total_field": "total"}))


def test_a_cursor_replaces_the_one_before() -> None:
    first = next_url({"meta": {"next": "a b="}}, CURSOR)
    assert first == f"{URL}&after=a+b%3D"
    assert next_url({"meta": {"next": "c"}}, CURSOR, f"{first}&z=1") == f"{URL}&after=c&z=1"


@pytest.mark.parametrize(
    "body", [{}, {"meta": None}, {"meta": {"next": ""}}, {"meta": {"next": 3}}, [], "<p>"]
)
def test_without_a_cursor_the_list_ends(body: Any) -> None:
    assert next_url(body, CURSOR) is None


def test_a_broken_answer_is_an_error() -> None:
    with pytest.raises(SourceChangedError):
        next_url('{"meta": {"next": "a', CURSOR)


@pytest.mark.parametrize(
    ("link", "keeps_headers"),
    [
        ("https://prices.example/p2", True),
        ("https://other.example/p2", False),
        ("https://prices.example.evil.example/p2", False),
        ("/p2", False),
    ],
)
def test_a_link_to_another_host_gets_no_headers(link: str, keeps_headers: bool) -> None:
    request = Request(URL, "POST", {"authorization": "Bearer ${KEY}"}, b"{}")
    found = next_page(request, answer({"next": link}), LINK)
    assert found == (replace(request, url=link) if keeps_headers else Request(link))


def test_a_cursor_on_an_address_without_a_query_or_with_an_equals_sign_in_a_value() -> None:
    body = {"meta": {"next": "c"}}
    assert next_url(body, CURSOR, "https://a.example/list") == "https://a.example/list?after=c"
    filtered = "https://a.example/list?after=b&filter=after=b"
    assert next_url(body, CURSOR, filtered) == "https://a.example/list?after=c&filter=after=b"
    assert next_url(body, CURSOR, "https://a.example/?x=after=b") == "https://a.example/?x=after=b&after=c"
