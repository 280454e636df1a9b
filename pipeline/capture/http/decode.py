"""Decompression of an answer, piece by piece and never past a limit."""

import zlib

from pipeline.capture.http.response import RequestFailedError
from pipeline.contracts.outcome import OutcomeCode

_GZIP = 31
"""The value of zlib's ``wbits`` for data with a gzip header and checksum."""


class BoundedDecoder:
    """Decodes one body with a Content-Encoding (gzip or none) to at most ``limit`` bytes.

    ``body`` holds the decoded bytes. Raises RequestFailedError as soon as the decoded bytes would exceed the
    limit (a decompression bomb is unpacked no further: ``body`` then holds ``limit`` bytes), when more than
    ``limit`` bytes arrive, and for bytes that are damaged or in an encoding that was not requested.
    """

    def __init__(self, encoding: str, limit: int) -> None:
        name = encoding.strip().lower().removeprefix("x-")
        if name not in ("", "identity", "gzip"):
            raise _bad_encoding(f"Content-Encoding {encoding!r} was not requested")
        self._limit = limit
        self._arrived = 0
        self._inflater = zlib.decompressobj(wbits=_GZIP) if name == "gzip" else None
        self._padding = False
        self.body = bytearray()

    def feed(self, data: bytes) -> None:
        """Decode the next bytes into ``body``."""
        self._arrived += len(data)
        if self._inflater is None:
            self._take(data)
        elif not self._padding:
            self._inflate(data)
        if self._arrived > self._limit:
            raise self._too_much()

    def finish(self) -> None:
        """Raise RequestFailedError if the compressed body is incomplete."""
        if self._arrived and self._inflater is not None and not self._inflater.eof:
            raise _bad_encoding("the compressed answer breaks off")

    def _inflate(self, data: bytes) -> None:
        while data and self._inflater is not None:
            try:
                self._take(self._inflater.decompress(data, self._limit - len(self.body) + 1))
            except zlib.error as error:
                raise _bad_encoding(f"the compressed answer is damaged ({error})") from error
            data = self._inflater.unconsumed_tail
            if self._inflater.eof and len(self._inflater.unused_data) >= 2:
                # A gzip body may be several gzip streams in a row; anything else after a stream is padding.
                data = self._inflater.unused_data
                self._padding = not data.startswith(b"\x1f\x8b")
                if self._padding:
                    return
                self._inflater = zlib.decompressobj(wbits=_GZIP)

    def _take(self, decoded: bytes) -> None:
        room = self._limit - len(self.body)
        self.body += decoded[:room]
        if len(decoded) > room:
            raise self._too_much()

    def _too_much(self) -> RequestFailedError:
        if self._arrived > self._limit:
            return RequestFailedError(OutcomeCode.TOO_LARGE, f"more than {self._limit} bytes")
        detail = f"{self._arrived} bytes unpack to more than {self._limit}"
        return RequestFailedError(OutcomeCode.TOO_LARGE, detail)


def _bad_encoding(detail: str) -> RequestFailedError:
    return RequestFailedError(OutcomeCode.BAD_ENCODING, detail)
