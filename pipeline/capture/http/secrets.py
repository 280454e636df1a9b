"""Keys from the environment: filled into requests last, and kept out of everything written or shown."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from urllib.parse import quote

from pipeline.capture.http.proxy_settings import PROXY_VARIABLE, secrets_of_proxy
from pipeline.capture.http.response import RequestFailedError
from pipeline.capture.http.spellings import decoded, patterns_of
from pipeline.contracts.listing import Request
from pipeline.contracts.outcome import OutcomeCode

_PLACE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

_SENSITIVE_HEADERS = frozenset(
    {
        "authorization",
        "cookie",
        "proxy-authenticate",
        "proxy-authorization",
        "set-cookie",
        "set-cookie2",
        "www-authenticate",
        "x-api-key",
        "x-auth-token",
    }
)

_REDACTED = "[redacted]"

_SHORTEST_SECRET = 6  # a shorter value would match everywhere, and is not a key


def placeholders(environment: Mapping[str, str], key_names: Collection[str]) -> dict[str, str]:
    """Map each key that is set to its ``${NAME}``; a blank key counts as not set."""
    return {name: f"${{{name}}}" for name in key_names if environment.get(name, "").strip()}


class KeyStaysError(Exception):
    """A key cannot be taken out of an answer, which must therefore not be stored."""


class Secrets:
    """The keys of one source. ``fill`` puts each key in place of its ``${NAME}``; ``redact`` does the
    reverse, and also replaces the proxy's password.

    Only the variables in ``key_names``, which come from the source's yaml, are filled in, so ``${HOME}`` in
    an answer stays as it is.
    """

    def __init__(self, environment: Mapping[str, str], key_names: Collection[str]) -> None:
        self._values = {name: environment.get(name, "").strip() for name in key_names}
        hidden = {
            (value, f"${{{name}}}".encode())
            for name, value in (
                *self._values.items(),
                *((PROXY_VARIABLE, text) for text in secrets_of_proxy(environment)),
            )
            if len(value) >= _SHORTEST_SECRET
        }
        # Longest first, as a key may contain another.
        self._patterns = [
            (pattern, place)
            for value, place in sorted(hidden, key=lambda pair: (-len(pair[0]), pair))
            for pattern in patterns_of(value)
        ]

    @staticmethod
    def names_in(text: str) -> frozenset[str]:
        """Return the names of the variables that have placeholders in a string."""
        return frozenset(_PLACE.findall(text))

    def fill(self, request: Request) -> Request:
        """Return the request with its keys filled in. Raises RequestFailedError if a key is not set."""
        body = None
        if request.body is not None:
            filled = self._fill(request.body.decode("utf-8", "surrogateescape"))
            body = filled.encode("utf-8", "surrogateescape")
        return replace(
            request,
            url=self._fill(request.url, lambda value: quote(value, safe="")),
            headers={name: self._fill(value) for name, value in request.headers.items()},
            body=body,
        )

    def _fill(self, text: str, spelled: Callable[[str], str] = str) -> str:
        def value_at(place: re.Match[str]) -> str:
            value = self._values.get(place[1])
            if value == "":
                raise RequestFailedError(OutcomeCode.NEEDS_KEY, f"set {place[1]}")
            return place[0] if value is None else spelled(value)

        return _PLACE.sub(value_at, text)

    def redact(self, text: str) -> str:
        """Return a string with every key replaced by its placeholder; all of it is replaced if it still
        contains a key that is encoded more than once."""
        body = text.encode("utf-8", "surrogatepass")
        try:
            return self.redact_bytes(body).decode("utf-8", "surrogatepass")
        except KeyStaysError:
            return _REDACTED

    def redact_bytes(self, body: bytes) -> bytes:
        """Return the bytes with every key replaced by its placeholder, in whatever way a page spells it.

        Raises KeyStaysError if a key would stay, for example in UTF-16 or in several encodings at once.
        """
        body = self._replaced(body)
        if self._patterns and (inner := decoded(body)) != body and self._replaced(inner) != inner:
            raise KeyStaysError("it contains a key, encoded in a way that cannot be taken out")
        return body

    def _replaced(self, body: bytes) -> bytes:
        for pattern, place in self._patterns:
            body = pattern.sub(place, body)
        return body

    def redact_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return an answer's headers in storable form: with lower-case names and without cookies or keys."""
        return {
            name.lower(): _REDACTED if name.lower() in _SENSITIVE_HEADERS else self.redact(value)
            for name, value in headers.items()
        }

    def contains_secret(self, *texts: str | bytes) -> bool:
        """True if a key occurs in any of the ``texts``."""
        return any(
            self._replaced(each) != each
            for text in texts
            for body in [text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text]
            for each in (body, decoded(body))
        )
