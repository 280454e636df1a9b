"""Bodies: unpacked within a limit, and judged by their first bytes, whatever their content type."""

import gzip
import time
import tracemalloc

import pytest

from pipeline.capture.http.content import format_of, judged
from pipeline.capture.http.decode import BoundedDecoder
from pipeline.capture.http.response import RequestFailedError

TEXT = b"price,3.49\n" * 100
PACKED = gzip.compress(TEXT)
ENCODED = [
    ("", TEXT),
    ("identity", TEXT),
    (" GZip ", PACKED),
    ("x-gzip", gzip.compress(TEXT[:50]) + gzip.compress(TEXT[50:])),
    ("gzip", PACKED + b"\0\0padding"),
    ("gzip", PACKED + b"\x1f"),
]


def fails(encoding: str, limit: int, *pieces: bytes) -> tuple[str, str, int]:
    """Return the code and the detail of a failure, and how many bytes were unpacked by then."""
    body = b""
    with pytest.raises(RequestFailedError) as failed:  # noqa: PT012
        decoder = BoundedDecoder(encoding, limit)
        body = decoder.body
        for piece in pieces:
            decoder.feed(piece)
        decoder.finish()
    error = failed.value
    return error.code, str(error).removeprefix(f"{error.code.sentence}: ").partition(" (")[0], len(body)


def test_packed_bodies_are_unpacked_from_any_pieces() -> None:
    for encoding, packed in ENCODED:
        for piece in (1, 7, 100_000):
            decoder = BoundedDecoder(encoding, limit=len(TEXT))
            for start in range(0, len(packed), piece):
                decoder.feed(packed[start : start + piece])
            decoder.finish()
            assert bytes(decoder.body) == TEXT, (encoding, piece)


def test_one_byte_over_the_limit_is_too_much() -> None:
    """Packed, unpacked, or as padding behind the end."""
    limit, small = len(TEXT) - 1, gzip.compress(b"{}")
    unpacked = f"{len(PACKED)} bytes unpack to more than {limit}"
    assert fails("", limit, TEXT) == ("too_large", f"more than {limit} bytes", limit)
    assert fails("gzip", limit, PACKED) == ("too_large", unpacked, limit)
    assert fails("gzip", len(TEXT) + 1, PACKED, small)[::2] == ("too_large", len(TEXT) + 1)
    assert fails("gzip", 100, small, bytes(101 - len(small))) == ("too_large", "more than 100 bytes", 2)
    BoundedDecoder("gzip", limit=100).feed(small + bytes(100 - len(small)))


def test_a_bomb_is_not_unpacked_beyond_the_limit() -> None:
    bomb = gzip.compress(bytes(2**24))
    tracemalloc.start()
    try:
        assert fails("gzip", 10_000, bomb)[::2] == ("too_large", 10_000)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_what_cannot_be_unpacked() -> None:
    for damaged in (b"not gzip at all", PACKED[:10] + b"\xff" * 30):
        assert fails("gzip", 10_000, damaged)[:2] == ("bad_encoding", "the compressed answer is damaged")
    assert fails("gzip", 10_000, PACKED[:-1])[:2] == ("bad_encoding", "the compressed answer breaks off")
    assert fails("br", 10) == ("bad_encoding", "Content-Encoding 'br' was not requested", 0)


JSON, HTML, XML = ("application/json",), ("text/html",), ("text/xml", "application/xml")
SPOT, OCTETS = ("application/json", "application/x-javascript"), ("application/octet-stream",)
PAGE = "an HTML page"
EXPECTED = [
    (b'{"h100": 2.99}', "application/json", JSON),
    (b'callback({"h100": 2.99});', "application/x-javascript", SPOT),
    (b"<div>a page without a head</div>", "text/html", HTML),
    (b"<gesmes:Envelope/>", "text/xml", XML),
    (b"{}", "application/octet-stream", OCTETS),
    (b"<html>", "text/plain", ()),
]
MISLABELLED = [
    (b'\xef\xbb\xbf \r\n[{"h100": 2.99}]', "binary/octet-stream", JSON),
    (b"<!-- made by\n a site builder -->\n<HTML>", "", HTML),
    (b'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "x">', "application/xhtml+xml", HTML),
    (b'<?xml version="1.0"?><gesmes:Envelope/>', "application/octet-stream", XML),
]
WRONG = [
    (b"<!doctype html><title>Just a moment", "application/json", JSON, f"{PAGE} as "),
    (b"<headline/>", "application/json", JSON, "a fragment of markup as "),
    (b'<?xml version="1.0"?><Error/>', "application/x-javascript", SPOT, "XML as "),
    (b"<p>a fragment</p>", "text/plain", HTML, ""),
    (b'{"error": "moved"}', "text/html", HTML, "JSON as "),
    (b"<html>maintenance", "text/xml", XML, f"{PAGE} as "),
    (b"h100,2.99\n", "", JSON, ""),
    (b"{}", "text/plain", OCTETS, ""),
]


def test_another_format_than_the_expected_is_refused_and_another_type_is_a_warning() -> None:
    assert [judged(*case) for case in EXPECTED] == [(None, None)] * len(EXPECTED)
    read = "it was read, because it begins as expected"
    assert [judged(*case) for case in MISLABELLED] == [
        (None, f"sent {' or '.join(expected)} as {stated or 'no content type'}; {read}")
        for _, stated, expected in MISLABELLED
    ]
    assert [judged(*case) for *case, _ in WRONG] == [
        (f"sent {what}{stated or 'no content type'}, expected {' or '.join(expected)}", None)
        for _, stated, expected, what in WRONG
    ]


def test_only_the_beginning_is_searched_and_costs_no_time() -> None:
    comment = b"<!--" + b"x" * (4096 - 13)
    assert format_of(comment + b"--><html>") == "html"
    assert format_of(comment + b"xx--><html>") == "markup"
    began = time.monotonic()
    assert format_of(b"<!--" + b" <!-- -" * 1_000_000) == "markup"
    assert time.monotonic() - began < 0.5
