"""Text of price pages as it may be kept and shown: terminals, files and SQL survive whatever a page says."""

import re
from typing import Any

MAX_CHARACTERS = 300
"""No name of a GPU, machine or region is longer."""

_SPACES = re.compile(r"[\t\n\x0b\f\r\x85\u2028\u2029]")
# Zero-width and direction marks: they make one text look like another.
_INVISIBLE = re.compile(
    r"[\xad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\U000e0000-\U000e007f]"
)
# Escape codes of terminals begin with these; half a surrogate pair cannot be written as UTF-8.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def plain(text: str) -> str:
    """The text without invisible marks, its line breaks as spaces, control characters shown as U+FFFD."""
    if text.isascii() and text.isprintable():
        return text
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", _INVISIBLE.sub("", _SPACES.sub(" ", text)))


def plain_json(value: Any) -> Any:
    """The same for every text in a JSON value, keys included."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(str(name)): plain_json(held) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    return value
