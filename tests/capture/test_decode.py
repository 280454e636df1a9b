"""Unpacking bodies within a limit."""

import gzip
import random
import tracemalloc

import pytest

from pipeline.capture.http.decode import BoundedDecoder
from pipeline.capture.http.response import RequestFailedError

TEXT = b"price,3.49\n" * 100
PACKED = gzip.compress(TEXT)
ENCODED = [
    ("", TEXT),
    ("identity", TEXT),
    (" GZip ", PACKED),
    ("x-gzip", PACKED),
    ("gzip", gzip.compress(TEXT[:50]) + gzip.compress(TEXT[50:])),
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
    return error.code, str(error).removeprefix(f"{error.code.sentence}: "), len(body)


def test_packed_bodies_are_unpacked_from_any_pieces() -> None:
    for encoding, packed in ENCODED:
        for piece in (1, 7, 100_000):
            decoder = BoundedDecoder(encoding, limit=len(TEXT))
            for start in range(0, len(packed), piece):
                decoder.feed(packed[start : start + piece])
            decoder.finish()
            assert bytes(decoder.body) == TEXT, (encoding, piece)
    BoundedDecoder("gzip", limit=0).finish()  # nothing arrived


def test_one_byte_over_the_limit_is_too_much() -> None:
    limit = len(TEXT) - 1
    assert fails("", limit, TEXT) == ("too_large", f"more than {limit} bytes", limit)
    unpacked = f"{len(PACKED)} bytes unpack to more than {limit}"
    assert fails("gzip", limit, PACKED) == ("too_large", unpacked, limit)
    both = (PACKED, gzip.compress(b"ab"))
    assert fails("gzip", len(TEXT) + 1, *both)[::2] == ("too_large", len(TEXT) + 1)


def test_padding_behind_the_end_is_counted() -> None:
    packed = gzip.compress(b"{}")
    assert fails("gzip", 100, packed, bytes(100)) == ("too_large", "more than 100 bytes", 2)
    BoundedDecoder("gzip", limit=len(packed) + 50).feed(packed + bytes(50))


def test_a_bomb_is_not_unpacked_beyond_the_limit() -> None:
    bomb = gzip.compress(bytes(2**24))
    tracemalloc.start()
    try:
        assert fails("gzip", 10_000, bomb)[::2] == ("too_large", 10_000)
        _, most_bytes_held = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes_held < 2**20


def test_what_cannot_be_unpacked() -> None:
    for damaged in (b"not gzip at all", PACKED[:10] + b"\xff" * 30):
        code, detail, _ = fails("gzip", 10_000, damaged)
        assert (code, detail.partition("(")[0]) == ("bad_encoding", "the compressed answer is damaged ")
    assert fails("gzip", 10_000, PACKED[:-1])[:2] == ("bad_encoding", "the compressed answer breaks off")
    for encoding in ("br", "deflate", "gzip, gzip"):
        unasked = f"Content-Encoding {encoding!r} was not requested"
        assert fails(encoding, 10) == ("bad_encoding", unasked, 0)


def test_unpacked_bodies_never_exceed_the_limit() -> None:
    draw = random.Random(1)
    kinds = [gzip.compress(bytes(5000)), gzip.compress(b"{}"), PACKED[:40], b"\0\0", b"\x1f\x8b", TEXT[:300]]
    for _ in range(300):
        decoder = BoundedDecoder(draw.choice(["", "gzip"]), limit=1000)
        try:
            for piece in draw.choices(kinds, k=draw.randint(1, 6)):
                decoder.feed(piece)
            decoder.finish()
        except RequestFailedError:
            pass
        assert len(decoder.body) <= 1000
