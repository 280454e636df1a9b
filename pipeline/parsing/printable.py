"""Makes text from price pages safe to store and to show in terminals, files and SQL."""

import re
from typing import Any

MAX_CHARACTERS = 300
"""Maximum length of the name of a GPU, machine or region."""

LONGEST_ADDRESS = 80

_ADDRESS = re.compile(r"https?://\S+")
_SPACES = re.compile(r"[\t\n\x0b\f\r\x85\u2028\u2029]")
# Zero-width and direction marks, which can make one string look like another.
_INVISIBLE = re.compile(
    r"[\xad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\U000e0000-\U000e007f]"
)
# Terminal escape codes begin with control characters; half a surrogate pair cannot be written as UTF-8.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def printable(text: str) -> str:
    """Return the text without invisible marks; line breaks become spaces, and control characters U+FFFD."""
    if text.isascii() and text.isprintable():
        return text
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", _INVISIBLE.sub("", _SPACES.sub(" ", text)))


def short_addresses(text: str) -> str:
    """Return the text with every long URL cut: its query is dropped, then its end if still too long."""
    return _ADDRESS.sub(lambda found: _short_address(found[0]), text)


def _short_address(address: str) -> str:
    if len(address) <= LONGEST_ADDRESS:
        return address
    return f"{address.partition('?')[0][: LONGEST_ADDRESS - 1]}…"


def printable_json(value: Any) -> Any:
    """Return the value with every string in it made printable, including keys."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(str(name)): printable_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [printable_json(item) for item in value]
    return value
