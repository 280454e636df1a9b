"""The ways in which an answer may spell a key: plain, in hex, in base64, or escaped for HTML, URLs, JSON or
JavaScript, and any mixture of these."""

import html
import re
from base64 import b64encode
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from html.entities import html5
from urllib.parse import unquote_to_bytes

MAX_LAYERS = 4
"""The number of layers of escapes that are looked through; an answer that quotes another adds one."""

_REFERENCE = rb"&(?:amp;){0,%d}" % MAX_LAYERS
_PERCENT = rb"%%(?:25){0,%d}" % MAX_LAYERS
_BACKSLASHES = rb"\\\\{0,%d}" % 2**MAX_LAYERS


@cache
def patterns_of(value: str) -> Sequence[re.Pattern[bytes]]:
    """Return patterns that find a value in the bytes of an answer, whichever way each character is
    spelled. In base64, the characters that also encode what surrounds the value do not count."""
    body = value.encode()
    also_blank = {" ": " +"}
    also_safe = {"+": "+-", "/": "/_"}
    return [
        _pattern(value, also_blank),
        *(_pattern(core, also_safe) for core in _in_base64(body)),
        re.compile(rb"(?i:%s)" % body.hex().encode()),
    ]


def decoded(body: bytes) -> bytes:
    """Return an answer with its escapes undone, and without the zero bytes of UTF-16 and UTF-32."""
    body = body.replace(b"\0", b"")
    for _ in range(MAX_LAYERS):
        before = body
        body = unquote_to_bytes(body) if b"%" in body else body
        body = _ESCAPE.sub(_unescaped, body) if b"\\" in body else body
        body = _ENTITY.sub(_character_of, body) if b"&" in body else body
        if body == before:
            break
    return body


_ENTITY = re.compile(rb"&(?:#[xX]?[0-9a-fA-F]{1,40}|[A-Za-z][A-Za-z0-9]{1,31});?")
_ESCAPE = re.compile(
    rb"\\(?:u\{0*([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([^ux]))", re.DOTALL
)


def _character_of(entity: re.Match[bytes]) -> bytes:
    return html.unescape(entity[0].decode()).encode("utf-8", "surrogatepass")


def _unescaped(escape: re.Match[bytes]) -> bytes:
    if code := escape[1] or escape[2] or escape[3]:
        return chr(min(int(code, 16), 0x10FFFF)).encode("utf-8", "surrogatepass")
    return escape[4]


def _in_base64(body: bytes) -> set[str]:
    """Return the characters of base64 that encode only this value, for each place among groups of three."""
    found = set()
    for before in range(3):
        text = b64encode(b"\0" * before + body).decode()
        found.add(text[-(-before * 8 // 6) : (before + len(body)) * 8 // 6])
    return found


def _pattern(text: str, also: Mapping[str, str]) -> re.Pattern[bytes]:
    spelled = [b"|".join(map(_spelled, also.get(character, character))) for character in text]
    return re.compile(b"".join(b"(?:%s)" % each for each in spelled), re.DOTALL)


def _spelled(character: str) -> bytes:
    """Return a pattern for a character; escapes come before the character itself, which may begin them."""
    code, plain = ord(character), re.escape(character.encode())
    names = [re.escape(name.encode()) for name in _NAMES[character]]
    references = [rb"#0{0,9}%d;?" % code, rb"#[xX]0{0,9}(?i:%x);?" % code, *names]
    units = character.encode("utf-16-be").hex(" ", 2).encode().split()
    in_script = _BACKSLASHES.join(rb"u(?i:%s)" % unit for unit in units)
    escapes = [in_script, rb"u\{0{0,9}(?i:%x)\}" % code, rb"x(?i:%02x)" % code, plain]
    return b"|".join(
        [
            _REFERENCE + rb"(?:%s)" % b"|".join(references),
            b"".join(_PERCENT + rb"(?i:%02x)" % byte for byte in character.encode()),
            _BACKSLASHES + rb"(?:%s)" % b"|".join(escapes),
            plain,
        ]
    )


def _names() -> Mapping[str, list[str]]:
    """Return the names that HTML has for each character, longest first."""
    names = defaultdict[str, list[str]](list)
    for name in sorted(html5, key=len, reverse=True):
        names[html5[name]].append(name)
    return names


_NAMES = _names()
