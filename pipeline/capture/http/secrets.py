"""Keys from the environment: filled into requests last, kept out of everything that is written or shown."""

import html
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from urllib.parse import quote, quote_plus

from pipeline.capture.http.user_network import secrets_of_proxies
from pipeline.contracts.listing import Request

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

_SHORTEST_SECRET = 6  # shorter values would match everywhere; they are no keys

_SOUNDS_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)


def _spellings(value: str) -> tuple[str, ...]:
    """The ways in which a value may be spelled in an address, a JSON text or a page."""
    in_json = json.dumps(value)[1:-1]
    in_address = (quote(value), quote(value, safe=""), quote_plus(value))
    return (value, *in_address, in_json, in_json.replace("/", "\\/"), html.escape(value))


class MissingKeyError(Exception):
    """A request needs an environment variable that is not set; ``name`` says which."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the environment variable {name} is not set")
        self.name = name


class WatchedEnvironment(Mapping[str, str]):
    """The environment as a source sees it, values stripped; remembers which variables were read, since those
    may be keys."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.read.add(name)
        value = self._environment[name].strip()
        if not value:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._environment)

    def __len__(self) -> int:
        return len(self._environment)


def without_keys(environment: Mapping[str, str], key_names: Collection[str]) -> dict[str, str]:
    """The environment with ``${NAME}`` for the value of every variable that is a key of the source, or sounds
    like one: requests made with it have placeholders where the keys would be."""
    return {
        name: f"${{{name}}}"
        if value.strip() and (name in key_names or _SOUNDS_SECRET.search(name))
        else value
        for name, value in environment.items()
    }


class Secrets:
    """The keys of one source. ``fill`` puts them in place of ``${NAME}``; ``redact`` does the reverse, also
    for the password of a proxy.

    Only variables named in the source's yaml are filled in: ``${HOME}`` in an answer gets nothing.
    """

    def __init__(self, environment: WatchedEnvironment, fillable: frozenset[str]) -> None:
        self._environment = environment
        self._fillable = fillable
        self._of_proxies = tuple(secrets_of_proxies(environment))

    @staticmethod
    def names_in(text: str) -> frozenset[str]:
        """The variables that a text has placeholders for."""
        return frozenset(_PLACE.findall(text))

    def fill(self, request: Request) -> Request:
        """The request as it is sent. Raises MissingKeyError."""
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
            name = place.group(1)
            if name not in self._fillable:
                return place.group(0)
            try:
                return spelled(self._environment[name])
            except KeyError:
                raise MissingKeyError(name) from None

        return _PLACE.sub(value_at, text)

    def _pairs(self) -> list[tuple[str, str]]:
        """Each spelling of each key with its placeholder, longest first."""
        read = {name for name in self._environment.read if _SOUNDS_SECRET.search(name)}
        values = [(self._environment.get(name, ""), name) for name in read | self._fillable]
        pairs = {
            (spelling, f"${{{name}}}")
            for value, name in (*values, *self._of_proxies)
            if len(value) >= _SHORTEST_SECRET
            for spelling in _spellings(value)
        }
        return sorted(pairs, key=lambda pair: -len(pair[0]))

    def redact(self, text: str) -> str:
        """The text with every key replaced by its placeholder."""
        for spelling, place in self._pairs():
            text = text.replace(spelling, place)
        return text

    def redact_bytes(self, body: bytes) -> bytes:
        """The bytes with every key replaced by its placeholder; the same object when they contain none."""
        for spelling, place in self._pairs():
            if spelling.encode() in body:
                body = body.replace(spelling.encode(), place.encode())
        return body

    def redact_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """An answer's headers as they may be stored: lower-case names, no cookies, no keys."""
        return {
            name.lower(): "[redacted]" if name.lower() in _SENSITIVE_HEADERS else self.redact(value)
            for name, value in headers.items()
        }

    def are_in(self, request: Request) -> bool:
        """Whether a request, as it is sent, has a key anywhere."""
        return self.contains_secret(request.url, request.body or b"", *request.headers.values())

    def contains_secret(self, *texts: str | bytes) -> bool:
        """Whether a key occurs in any of the texts."""
        as_bytes = [text.encode() if isinstance(text, str) else text for text in texts]
        return any(spelling.encode() in text for spelling, _ in self._pairs() for text in as_bytes)
