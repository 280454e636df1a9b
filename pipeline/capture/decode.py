"""Undoing an answer's compression piece by piece, never past a limit."""

import zlib


class TooMuchError(Exception):
    """More bytes come out than may."""


class DecodeError(Exception):
    """The compressed bytes are damaged, cut off, or of a kind that was not asked for."""


class BoundedDecoder:
    """Decodes one body of a Content-Encoding (gzip, deflate or none), at most ``limit`` bytes of it.

    ``body`` is what has come out. Raises TooMuchError as soon as more would: a bomb is never unpacked beyond
    the limit, and ``body`` then holds what comes before it.
    """

    def __init__(self, encoding: str, limit: int) -> None:
        self._encoding = encoding.strip().lower()
        self._limit = limit
        self.body = bytearray()
        if self._encoding in ("", "identity"):
            self._inflater = None
        elif self._encoding in ("gzip", "x-gzip", "deflate"):
            self._inflater = zlib.decompressobj(wbits=47)  # gzip or zlib, told apart by the header
        else:
            raise DecodeError(f"Content-Encoding {encoding!r} was not asked for")
        self._begun = False

    def feed(self, data: bytes) -> None:
        """Decode the next bytes into ``body``."""
        if self._inflater is None:
            self._take(data)
            return
        while data:
            self._take(self._inflate(data))
            if self._inflater.eof:
                data = self._next_member(self._inflater.unused_data)
            else:
                data = self._inflater.unconsumed_tail

    def finish(self) -> None:
        """Raises DecodeError when the compressed body has not come to its end."""
        if self._inflater is not None and self._begun and not self._inflater.eof:
            raise DecodeError("the compressed answer breaks off")

    def _inflate(self, data: bytes) -> bytes:
        assert self._inflater is not None  # noqa: S101 - feed() has seen to it
        room = self._limit - len(self.body) + 1
        try:
            decoded = self._inflater.decompress(data, room)
        except zlib.error as error:
            if self._begun or self._encoding != "deflate":
                raise DecodeError(f"the compressed answer is damaged ({error})") from error
            # Some servers mean bare deflate without the zlib header of RFC 9110.
            self._inflater = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
            self._begun = True
            return self._inflate(data)
        self._begun = True
        return decoded

    def _next_member(self, rest: bytes) -> bytes:
        """A gzip file may be several in a row; anything else behind the end is padding and left out."""
        if not rest.startswith(b"\x1f\x8b"):
            return b""
        self._inflater = zlib.decompressobj(wbits=31)
        return rest

    def _take(self, decoded: bytes) -> None:
        room = self._limit - len(self.body)
        self.body += decoded[:room]
        if len(decoded) > room:
            raise TooMuchError
