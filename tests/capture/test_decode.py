"""Unpacking bodies within a limit."""

import gzip
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.capture.http.decode import BoundedDecoder
from pipeline.capture.http.response import RequestFailedError
from pipeline.contracts.outcome import OutcomeCode

TEXT = b"price,3.49\n" * 100


def packed_gzip(data: bytes) -> bytes:
    """Without the time of packing, which would give a test another name in each process."""
    return gzip.compress(data, mtime=0)


PACKED = [
    ("", TEXT),
    ("identity", TEXT),
    ("gzip", packed_gzip(TEXT)),
    ("GZip", packed_gzip(TEXT)),
    ("x-gzip", packed_gzip(TEXT)),
    ("gzip", packed_gzip(TEXT[:50]) + packed_gzip(TEXT[50:])),
    ("gzip", packed_gzip(TEXT) + b"\0\0padding"),
]


def test_packed_bodies_are_unpacked_from_any_pieces() -> None:
    for encoding, packed in PACKED:
        for piece in (1, 7, 100_000):
            decoder = BoundedDecoder(encoding, limit=len(TEXT))
            for start in range(0, len(packed), piece):
                decoder.feed(packed[start : start + piece])
            decoder.finish()
            assert bytes(decoder.body) == TEXT, (encoding, piece)


def test_one_byte_over_the_limit_is_too_much() -> None:
    for encoding, packed, code in (
        ("", TEXT, OutcomeCode.TOO_LARGE),
        ("gzip", packed_gzip(TEXT), OutcomeCode.TOO_LARGE),
    ):
        decoder = BoundedDecoder(encoding, limit=len(TEXT) - 1)
        with pytest.raises(RequestFailedError) as failed:
            decoder.feed(packed)
        assert failed.value.code is code
        assert bytes(decoder.body) == TEXT[:-1]


def test_padding_behind_the_end_is_counted() -> None:
    decoder = BoundedDecoder("gzip", limit=100)
    decoder.feed(packed_gzip(b"{}"))
    with pytest.raises(RequestFailedError) as failed:
        decoder.feed(bytes(100))
    assert failed.value.code is OutcomeCode.TOO_LARGE


def test_a_bomb_is_not_unpacked_beyond_the_limit() -> None:
    bomb = gzip.compress(bytes(2**24))
    decoder = BoundedDecoder("gzip", limit=10_000)
    tracemalloc.start()
    try:
        with pytest.raises(RequestFailedError):
            decoder.feed(bomb)
        _, most_bytes_held = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(decoder.body) == 10_000
    assert most_bytes_held < 2**20


@pytest.mark.parametrize("packed", [b"not gzip at all", packed_gzip(TEXT)[:10] + b"\xff" * 30])
def test_damaged_gzip(packed: bytes) -> None:
    with pytest.raises(RequestFailedError, match="damaged"):
        BoundedDecoder("gzip", limit=10_000).feed(packed)


def test_gzip_cut_short() -> None:
    decoder = BoundedDecoder("gzip", limit=10_000)
    decoder.feed(packed_gzip(TEXT)[:-1])
    with pytest.raises(RequestFailedError, match="breaks off"):
        decoder.finish()


def test_a_compression_that_was_not_asked_for() -> None:
    for encoding in ("br", "deflate", "gzip, gzip"):
        with pytest.raises(RequestFailedError, match=encoding):
            BoundedDecoder(encoding, limit=10)


@settings(max_examples=200, deadline=None)
@given(
    encoding=st.sampled_from(["", "gzip"]),
    pieces=st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.binary(max_size=200).map(gzip.compress),
            st.just(gzip.compress(bytes(5000))),
        )
    ),
)
def test_unpacked_bodies_never_exceed_the_limit(encoding: str, pieces: list[bytes]) -> None:
    decoder = BoundedDecoder(encoding, limit=1000)
    try:
        for piece in pieces:
            decoder.feed(piece)
        decoder.finish()
    except RequestFailedError:
        pass
    assert len(decoder.body) <= 1000
