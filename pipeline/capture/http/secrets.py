"""Keys from the environment: filled into requests last, and kept out of everything written or shown."""

import html
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from urllib.parse import quote, quote_plus

from pipeline.capture.http.proxy_settings import PROXY_VARIABLE, secrets_of_proxy
from pipeline.capture.http.response import RequestFailedError
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

_SHORTEST_SECRET = 6  # a shorter value would match everywhere, and is not a key


def placeholders(environment: Mapping[str, str], key_names: Collection[str]) -> dict[str, str]:
    """Map each key that is set to its ``${NAME}``; a blank key counts as not set."""
    return {name: f"${{{name}}}" for name in key_names if environment.get(name, "").strip()}


class Secrets:
    """The keys of one source. ``fill`` puts each key in place of its ``${NAME}``; ``redact`` does the
    reverse, and also replaces the proxy's password.

    Only the variables in ``key_names``, which come from the source's yaml, are filled in, so ``${HOME}`` in
    an answer stays as it is.
    """

    def __init__(self, environment: Mapping[str, str], key_names: Collection[str]) -> None:
        self._values = {name: environment.get(name, "").strip() for name in key_names}
        spellings = {
            (spelling, f"${{{name}}}")
            for name, value in (
                *self._values.items(),
                *((PROXY_VARIABLE, text) for text in secrets_of_proxy(environment)),
            )
            if len(value) >= _SHORTEST_SECRET
            for spelling in _spellings(value)
        }
        self._places_by_spelling = dict(sorted(spellings, key=lambda pair: (-len(pair[0]), pair)))

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
        """Return a string with every key replaced by its placeholder."""
        for spelling, place in self._places_by_spelling.items():
            text = text.replace(spelling, place)
        return text

    def redact_bytes(self, body: bytes) -> bytes:
        """Return the bytes with every key replaced by its placeholder."""
        for spelling, place in self._places_by_spelling.items():
            body = body.replace(spelling.encode(), place.encode())
        return body

    def redact_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return an answer's headers in storable form: with lower-case names and without cookies or keys."""
        return {
            name.lower(): "[redacted]" if name.lower() in _SENSITIVE_HEADERS else self.redact(value)
            for name, value in headers.items()
        }

    def contains_secret(self, *texts: str | bytes) -> bool:
        """True if a key occurs in any of the ``texts``."""
        as_bytes = [text.encode() if isinstance(text, str) else text for text in texts]
        return any(spelling.encode() in text for spelling in self._places_by_spelling for text in as_bytes)


def _spellings(value: str) -> tuple[str, ...]:
    """Return the ways in which a value may be spelled in a URL, a JSON string or a page."""
    in_json = json.dumps(value)[1:-1]
    in_address = (quote(value), quote(value, safe=""), quote_plus(value))
    return (value, *in_address, in_json, in_json.replace("/", "\\/"), html.escape(value))
