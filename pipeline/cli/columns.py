"""The columns of a table: their widths, and headings and names in lines that fit them."""

import re
import textwrap
from dataclasses import dataclass

GAP = "  "

SHORT_TEXT = 36
"""Characters of a text for which headings are broken before the text is cut."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, with its minimum width and its full width, in terminal cells. A column ``yields``
    if it may be narrower than its cells."""

    heading: str
    least: int
    whole: int
    is_number: bool
    wraps: bool
    yields: bool


class _NameWrapper(textwrap.TextWrapper):
    """Breaks text at spaces, and names after underscores, but never elsewhere within a word."""

    wordsep_simple_re = re.compile(r"(?<=_)|(\s+)")


def broken(text: str, size: int) -> str:
    """Return the text in lines of at most ``size`` characters; a longer word stays whole."""
    wrapper = _NameWrapper(size, break_long_words=False, break_on_hyphens=False)
    return "\n".join(wrapper.wrap(text)) or text
