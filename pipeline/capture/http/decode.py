"""Undoing an answer's compression piece by piece, never past a limit."""

import zlib

from pipeline.capture.http.response import RequestFailedError
from pipeline.contracts.outcome import OutcomeCode


class BoundedDecoder:
    """Decodes one body of a Content-Encoding (gzip, deflate or none), at most ``limit`` bytes of it.

    ``body`` is what has been decoded. Raises RequestFailedError as soon as it would exceed the limit, so a
    bomb is never unpacked beyond it (``body`` has the bytes up to the limit), when more than ``limit`` bytes
    arrive, and for bytes that are damaged or in an encoding that was not requested.
    """

    def __init__(self, encoding: str, limit: int) -> None:
        self._encoding = encoding.strip().lower().removeprefix("x-")
        if self._encoding not in ("", "identity", "gzip", "deflate"):
            raise _bad_encoding(f"Content-Encoding {encoding!r} was not asked for")
        self._limit = limit
        self._arrived = 0
        self._head = b""
        self._padding = False
        self._inflater: zlib._Decompress | None = None
        self.body = bytearray()

    def feed(self, data: bytes) -> None:
        """Decode the next bytes into ``body``."""
        self._arrived += len(data)
        self._decode(data)
        if self._arrived > self._limit:
            raise self._too_much()

    def finish(self) -> None:
        """Check that the compressed body has come to its end."""
        if self._head or (self._inflater is not None and not self._inflater.eof):
            raise _bad_encoding("the compressed answer breaks off")

    def _decode(self, data: bytes) -> None:
        if self._encoding in ("", "identity"):
            self._take(data)
            return
        if self._padding:
            return
        if self._inflater is None:
            self._head += data
            if len(self._head) < 2:
                return
            data, self._head = self._head, b""
            self._inflater = zlib.decompressobj(wbits=_window(self._encoding, data))
        self._inflate(self._inflater, data)

    def _inflate(self, inflater: "zlib._Decompress", data: bytes) -> None:
        while data:
            try:
                self._take(inflater.decompress(data, self._limit - len(self.body) + 1))
            except zlib.error as error:
                raise _bad_encoding(f"the compressed answer is damaged ({error})") from error
            data = inflater.unconsumed_tail
            if inflater.eof and len(inflater.unused_data) >= 2:
                # A gzip body may be several in a row; anything else behind the end is padding.
                self._padding = not inflater.unused_data.startswith(b"\x1f\x8b")
                if self._padding:
                    return
                data = inflater.unused_data
                inflater = self._inflater = zlib.decompressobj(wbits=31)

    def _take(self, decoded: bytes) -> None:
        room = self._limit - len(self.body)
        self.body += decoded[:room]
        if len(decoded) > room:
            raise self._too_much()

    def _too_much(self) -> RequestFailedError:
        if self._arrived > self._limit:
            return RequestFailedError(OutcomeCode.TOO_LARGE, f"more than {self._limit} bytes")
        detail = f"{self._arrived} bytes unpack to more than {self._limit}"
        return RequestFailedError(OutcomeCode.DECOMPRESSION_BOMB, detail)


def _bad_encoding(detail: str) -> RequestFailedError:
    return RequestFailedError(OutcomeCode.BAD_ENCODING, detail)


def _window(encoding: str, head: bytes) -> int:
    """Return zlib's wbits. Some servers send bare deflate, without the header of RFC 1950, whose checksum
    makes the first two bytes a multiple of 31."""
    if encoding == "gzip":
        return 31
    has_header = head[0] & 0x0F == 8 and int.from_bytes(head[:2], "big") % 31 == 0
    return zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS
