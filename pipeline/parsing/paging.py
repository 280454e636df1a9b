"""Requests for the next page of a list, as declared by ``paging`` in the source's yaml."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, quote_plus, urlsplit

from pipeline.catalog.source_config import CursorPaging, PageNumberPaging, Paging
from pipeline.contracts.hosts import same_origin
from pipeline.contracts.listing import Answer, Request
from pipeline.parsing.text import UnreadableError, whole_number


def next_page(request: Request, answer: Answer, paging: Paging) -> Request | None:
    """Return the request for the page after ``answer``; None after the last page.

    An answer that is not a JSON object has no next page. The caller checks whether an address may be
    requested, and how often. Raises SourceChangedError if the pages cannot be counted.
    """
    body = answer.json() if answer.is_json else None
    if not isinstance(body, dict):
        return None
    if isinstance(paging, PageNumberPaging):
        number = _next_number(request, answer, body, paging)
        return None if number is None else _with_parameter(request, paging.parameter, str(number))
    value = _at(body, paging.field)
    if not isinstance(value, str) or not value:
        return None
    if isinstance(paging, CursorPaging):
        return _with_parameter(request, paging.parameter, value)
    return _linked(request, value)


def _linked(request: Request, link: str) -> Request:
    """Return the request for a linked page; this request's headers are reused only for the same origin."""
    return replace(request, url=link) if same_origin(link, request.url) else Request(link)


def _next_number(
    request: Request, answer: Answer, body: Mapping[str, Any], paging: PageNumberPaging
) -> int | None:
    """Return the next page's number; if no total is stated, each full page is followed by another page."""
    items = _at(body, paging.items)
    if not items:
        return None
    asked = parse_qs(urlsplit(request.url).query)
    header = answer.headers.get(paging.total_header) if paging.total_header else None
    total = header if header is not None else _at(body, paging.total_field)
    last = _at(body, paging.last_page_field)
    try:
        page = whole_number(asked.get(paging.parameter, ["1"])[0])
        size = whole_number(asked[paging.size_parameter][0])
        if last is not None:
            more = page < whole_number(last)
        else:
            more = page * size < whole_number(total) if total is not None else len(items) >= size
    except (KeyError, TypeError, UnreadableError) as error:
        raise answer.changed(f"the pages cannot be counted ({error})") from error
    return page + 1 if more else None


def _at(body: Any, path: str | None) -> Any:
    """Return the value at a path such as ``meta.links.next``; None if there is no such value."""
    if path is None:
        return None
    for name in path.split("."):
        body = body.get(name) if isinstance(body, dict) else None
    return body


def _with_parameter(request: Request, name: str, value: str) -> Request:
    """Return the request with one query parameter set; the rest of the address is unchanged."""
    parts = urlsplit(request.url)
    pieces = parts.query.split("&") if parts.query else []
    kept = [piece for piece in pieces if piece.partition("=")[0] != name]
    at = next((at for at, piece in enumerate(pieces) if piece.partition("=")[0] == name), len(kept))
    kept.insert(at, f"{name}={quote_plus(value)}")
    return replace(request, url=parts._replace(query="&".join(kept)).geturl())
