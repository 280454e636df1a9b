"""Answers are judged by their first bytes; a content type that does not fit is a warning."""

import time

from pipeline.capture.http.content import format_of, judged

JSON = ("application/json",)
HTML = ("text/html",)
XML = ("text/xml", "application/xml")
SPOT = ("application/json", "application/x-javascript")
OCTETS = ("application/octet-stream",)
READ = "it was read, because it begins as expected"
PAGE = "an HTML page"
FRAGMENT = "a fragment of markup"

EXPECTED = [
    (b'{"h100": 2.99}', "application/json", JSON),
    (b'{"h100": 2.99}', "application/x-javascript", SPOT),
    (b'callback({"h100": 2.99});', "application/x-javascript", SPOT),
    (b"<!DOCTYPE html><p>", "text/html", HTML),
    (b"<div>a page without a head</div>", "text/html", HTML),
    (b"<gesmes:Envelope/>", "text/xml", XML),
    (b"# Prices\n", "text/markdown", ("text/markdown", "text/plain")),
    (b"{}", "application/octet-stream", OCTETS),
    (b"<html>", "text/plain", ()),
]
MISLABELLED = [
    (b'{"h100": 2.99}', "application/x-javascript", JSON),
    (b'{"h100": 2.99}', "", JSON),
    (b'\xef\xbb\xbf \r\n[{"h100": 2.99}]', "binary/octet-stream", JSON),
    (b"<!doctype html><p>", "text/plain", HTML),
    (b"<!-- made by\n a site builder -->\n<HTML>", "", HTML),
    (b'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "x">', "application/xhtml+xml", HTML),
    (b'<?xml version="1.0"?><gesmes:Envelope/>', "application/octet-stream", XML),
]
WRONG = [
    (b"<!doctype html><title>Just a moment", "application/json", JSON, PAGE),
    (b"\xef\xbb\xbf\n<html>", "application/json", JSON, PAGE),
    (b"<body>", "text/html", JSON, PAGE),
    (b"<Error><Code>AccessDenied</Code></Error>", "application/json", JSON, FRAGMENT),
    (b'<?xml version="1.0"?><Error/>', "application/x-javascript", SPOT, "XML"),
    (b'{"error": "moved"}', "text/html", HTML, "JSON"),
    (b"<html>maintenance", "text/xml", XML, PAGE),
    (b"<headline/>", "application/json", JSON, FRAGMENT),
]
OF_ANOTHER_TYPE = [
    (b"h100,2.99\n", "text/csv", JSON),
    (b"h100,2.99\n", "", JSON),
    (b"<p>a fragment</p>", "text/plain", HTML),
    (b"{}", "text/plain", OCTETS),
]


def test_an_answer_of_the_expected_type_is_read() -> None:
    assert [judged(*case) for case in EXPECTED] == [(None, None)] * len(EXPECTED)


def test_another_type_than_the_expected_is_a_warning() -> None:
    warnings = [
        (None, f"sent {' or '.join(expected)} as {stated or 'no content type'}; {READ}")
        for _, stated, expected in MISLABELLED
    ]
    assert [judged(*case) for case in MISLABELLED] == warnings


def test_another_format_than_the_expected_is_refused() -> None:
    refusals = [
        (f"sent {what} as {stated}, expected {' or '.join(for_)}", None) for _, stated, for_, what in WRONG
    ]
    assert [judged(*case[:3]) for case in WRONG] == refusals
    refusals = [
        (f"sent {stated or 'no content type'}, expected {' or '.join(expected)}", None)
        for _, stated, expected in OF_ANOTHER_TYPE
    ]
    assert [judged(*case) for case in OF_ANOTHER_TYPE] == refusals


def test_only_the_beginning_is_searched_and_costs_no_time() -> None:
    comment = b"<!--" + b"x" * (4096 - 13)
    assert format_of(comment + b"--><html>") == "html"
    assert format_of(comment + b"xx--><html>") == "markup"
    began = time.monotonic()
    assert format_of(b"<!--" + b" <!-- -" * 1_000_000) == "markup"
    assert time.monotonic() - began < 0.5
