"""Declared paging: which page is asked next, and how."""

from dataclasses import replace
from typing import Any

from pipeline.catalog.source_config import CursorPaging, NextLinkPaging, PageNumberPaging
from pipeline.contracts.listing import Request
from pipeline.parsing.paging import next_page
from tests.parsing.cases import outcome, wrong
from tests.sources.helpers import answer

URL = "https://prices.example/list?q='A'%20or%20(B)&size=2&page=3"
NEXT = URL.replace("page=3", "page=4")
NUMBERS = PageNumberPaging(kind="page_number", items="data.items", size_parameter="size")
LINK = NextLinkPaging(kind="next_link", field="next")
CURSOR = CursorPaging(kind="cursor", field="meta.next", parameter="after")


def next_url(body: Any, paging: Any, url: str = URL, **headers: str) -> str | None:
    found = next_page(Request(url), replace(answer(body, url), headers=headers), paging)
    return found.url if found else None


def items(count: int, **more: Any) -> dict[str, Any]:
    return {"data": {"items": [{}] * count}, **more}


def counted(**columns: str) -> PageNumberPaging:
    return NUMBERS.model_copy(update=columns)


def test_the_total_decides_the_last_page() -> None:
    for total, expected in ((6, None), ("6", None), (7, NEXT), ("7", NEXT), (0, None)):
        assert next_url(items(2, total=total), counted(total_field="total")) == expected
        assert next_url(items(2), counted(total_header="x-total"), **{"x-total": str(total)}) == expected
    both = counted(total_field="total", total_header="x-total")
    assert next_url(items(2, total=7), both, **{"x-total": "6"}) is None  # the header comes first
    assert next_url(items(2, total=7), both) == NEXT
    assert next_url(items(0, total=99), counted(total_field="total")) is None


def test_the_last_page_is_stated() -> None:
    cases = [(3, None), (4, NEXT), ("4", NEXT)]
    assert wrong(lambda last: next_url(items(1, pages=last), counted(last_page_field="pages")), cases) == []


def test_without_a_total_only_a_full_page_is_followed_by_another() -> None:
    assert wrong(lambda count: next_url(items(count), NUMBERS), [(0, None), (1, None), (2, NEXT)]) == []
    assert next_url(items(2), NUMBERS, "https://a.example/?size=2") == "https://a.example/?size=2&page=2"


def test_pages_that_cannot_be_counted_are_an_error() -> None:
    for url, problem in {
        "https://a.example/": "'size'",
        "https://a.example/?size=x": "'x' is not a number",
        f"{URL}x": "'3x' is not a number",
    }.items():
        assert outcome(next_url, items(2), NUMBERS, url) == f"{url}: the pages cannot be counted ({problem})"
    unread = outcome(next_url, items(2, total="many"), counted(total_field="total"))
    assert unread == f"{URL}: the pages cannot be counted ('many' is not a number)"
    no_list = outcome(next_url, {"data": {"items": 3}}, NUMBERS)
    assert no_list == f"{URL}: the pages cannot be counted (object of type 'int' has no len())"


def test_a_cursor_replaces_the_one_before() -> None:
    first = next_url({"meta": {"next": "a b="}}, CURSOR)
    assert first == f"{URL}&after=a+b%3D"
    for url, expected in {
        f"{first}&z=1": f"{URL}&after=c&z=1",
        "https://a.example/list": "https://a.example/list?after=c",
        "https://a.example/?after=b&filter=after=b": "https://a.example/?after=c&filter=after=b",
        "https://a.example/?x=after=b": "https://a.example/?x=after=b&after=c",
        "https://a.example/?after=a&x&after=b": "https://a.example/?after=c&x",
    }.items():
        assert next_url({"meta": {"next": "c"}}, CURSOR, url) == expected


def test_without_a_cursor_the_list_ends() -> None:
    bodies = [{}, {"meta": None}, {"meta": {"next": ""}}, {"meta": {"next": 3}}, [], "<p>", ""]
    assert wrong(lambda body: next_url(body, CURSOR), [(body, None) for body in bodies]) == []
    assert "the answer is not JSON" in outcome(next_url, '{"meta": {"next": "a', CURSOR)


def test_a_link_to_another_host_gets_no_headers() -> None:
    request = Request(URL, "POST", {"authorization": "Bearer ${KEY}"}, b"{}")
    same = "https://prices.example/p2"
    others = ("https://other.example/p2", "https://prices.example.evil.example/p2", "/p2")
    found = [next_page(request, answer({"next": link}), LINK) for link in (same, *others)]
    assert found == [replace(request, url=same), *map(Request, others)]
