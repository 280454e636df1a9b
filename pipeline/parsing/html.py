"""Pages: parsed only when they are whole, read by what a visitor sees, selected by exactly-one rules."""

import re
from collections.abc import Iterable
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.element import PreformattedString

from pipeline.contracts.listing import Answer, read_json
from pipeline.parsing.text import clean_text

HIDDEN_CLASSES = frozenset({"hide", "hidden", "w-condition-invisible"})
_NOT_TEXT = frozenset({"sup", "script", "style"})
_TWO_DIGITS = re.compile(r"\s*[.,]?\d{2}\s*")
_WHOLE_MONEY = re.compile(r"[$€£]\s?\d[\d,]*[.,]?\s*$")
_DISPLAY_NONE = re.compile(r"display\s*:\s*none", re.IGNORECASE)


def page(answer: Answer) -> BeautifulSoup:
    """The answer as a parsed page.

    Raises SourceChangedError for a page that ends inside a text or a tag: a truncated price is a price too.
    """
    text = answer.text().rstrip()
    if "<" in text and not text.endswith(">"):
        raise answer.changed(f"the page is truncated: it ends in {text[-40:]!r}")
    return BeautifulSoup(text, "lxml")


def json_ld(soup: BeautifulSoup, answer: Answer) -> list[Any]:
    """The content of each JSON-LD script of a page, decimal fractions as Decimal.

    Raises SourceChangedError for a script that is not JSON.
    """
    scripts = soup.find_all("script", type="application/ld+json")
    try:
        return [read_json(script.get_text(), answer.url) for script in scripts]
    except ValueError as error:
        raise answer.changed(f"the page's JSON-LD cannot be read ({error})") from error


def text_of(tag: Tag) -> str:
    """The clean text of a tag, without superscript footnotes, scripts, styles and comments."""
    skipped: set[int] = set()
    parts: list[str] = []
    for part in tag.descendants:  # in one pass: readers ask for the text of every cell
        if isinstance(part, Tag):
            if part.name in _NOT_TEXT:
                skipped.update(id(inner) for inner in part.descendants)
        elif isinstance(part, PreformattedString):
            continue
        elif id(part) not in skipped:
            parts.append(str(part))
        elif parts and is_cents(parts[-1], str(part)):
            parts[-1] = glued(parts[-1], str(part))
    return clean_text(" ".join(parts))


def is_cents(before: str, note: str) -> bool:
    """True if a superscript may be the cents of the money before it (``$1<sup>39</sup>``), not a footnote."""
    return bool(_TWO_DIGITS.fullmatch(note)) and bool(_WHOLE_MONEY.search(before))


def glued(before: str, note: str) -> str:
    """Money with its superscript as a text that is no price: whether it is cents or a note is not certain."""
    return f"{before.rstrip()}~{note.strip()}"


def texts_of(tags: Iterable[Tag]) -> list[str]:
    """The clean text of each tag."""
    return [text_of(tag) for tag in tags]


def exactly_one(found: Iterable[Tag], what: str, answer: Answer) -> Tag:
    """The single tag there must be. Raises SourceChangedError for none and for several."""
    tags = list(found)
    if len(tags) != 1:
        raise answer.changed(f"expected exactly one {what}, found {len(tags)}")
    return tags[0]


# Selectors of CSS take ten times as long as these loops, and a page is searched for every row and cell.


def named(root: Tag, *names: str) -> list[Tag]:
    """Every tag below another with one of these names, in the page's order."""
    return [part for part in root.descendants if isinstance(part, Tag) and part.name in names]


def with_class(root: Tag, name: str) -> list[Tag]:
    """Every tag below another that has a class, in the page's order."""
    return [tag for tag in root.descendants if isinstance(tag, Tag) and name in (tag.get("class") or ())]


def is_hidden(tag: Tag) -> bool:
    """True if the page hides the tag or an element around it."""
    return any(hides(part) for part in (tag, *tag.parents))


def hides(tag: Tag) -> bool:
    """True if the page hides what is in the tag by the tag's own attributes."""
    if not tag.attrs:
        return False
    style = tag.get("style")
    return (
        tag.has_attr("hidden")
        or not HIDDEN_CLASSES.isdisjoint(tag.get_attribute_list("class"))
        or (isinstance(style, str) and _DISPLAY_NONE.search(style) is not None)
    )
