"""HTML pages: refused if truncated, read as visitors see them, and searched for tags that must be unique."""

import re
from collections.abc import Callable, Iterable

from bs4 import BeautifulSoup, Tag
from bs4.element import PreformattedString

from pipeline.contracts.listing import Answer
from pipeline.parsing.text import clean_text

HIDDEN_CLASSES = frozenset({"hide", "hidden", "w-condition-invisible"})
_NOT_TEXT = frozenset({"script", "style"})
_TWO_DIGITS = re.compile(r"\s*[.,]?\d{2}\s*")
_WHOLE_MONEY = re.compile(r"[$€£]\s?\d[\d,]*[.,]?\s*$")
_DISPLAY_NONE = re.compile(r"display\s*:\s*none", re.IGNORECASE)


def page(answer: Answer) -> BeautifulSoup:
    """Parse an answer as a page.

    Raises SourceChangedError for a page that ends inside text or inside a tag, because a truncated price
    still looks like a price.
    """
    text = answer.text().rstrip()
    if "<" in text and not text.endswith(">"):
        raise answer.changed(f"the page is truncated: it ends in {text[-40:]!r}")
    return BeautifulSoup(text, "lxml")


def text_of(tag: Tag) -> str:
    """Return the clean text of a tag, without superscript footnotes, scripts, styles or comments."""
    return clean_text(" ".join(strings_in(tag, lambda part: part.name in _NOT_TEXT)))


def strings_in(root: Tag, is_excluded: Callable[[Tag], bool]) -> list[str]:
    """Return the non-empty strings inside a tag, without comments, superscripts or excluded tags.

    Two digits in a superscript may be cents (``$1<sup>39</sup>``) or a footnote: they are joined to the
    amount before them in a form that is not a price (``$1~39``).
    """
    found: list[str] = []
    in_sup: set[int] = set()
    excluded: set[int] = set()
    for part in root.descendants:  # one pass is enough, because a tag comes before its content
        parent = id(part.parent)
        if isinstance(part, Tag):
            if parent in in_sup or part.name == "sup":
                in_sup.add(id(part))
            if parent in excluded or is_excluded(part):
                excluded.add(id(part))
        elif isinstance(part, PreformattedString) or parent in excluded or not (text := str(part)).strip():
            continue
        elif parent not in in_sup:
            found.append(text)
        elif found and _TWO_DIGITS.fullmatch(text) and _WHOLE_MONEY.search(clean_text(found[-1])):
            found[-1] = f"{found[-1].rstrip()}~{text.strip()}"
    return found


def texts_of(tags: Iterable[Tag]) -> list[str]:
    """Return the clean text of each tag."""
    return [text_of(tag) for tag in tags]


def exactly_one(found: Iterable[Tag], what: str, answer: Answer) -> Tag:
    """Return the only tag found. Raises SourceChangedError if there is no tag, or more than one."""
    tags = list(found)
    if len(tags) != 1:
        raise answer.changed(f"expected exactly one {what}, found {len(tags)}")
    return tags[0]


# CSS selectors take ten times as long as these loops, and pages are searched again for every row and cell.


def named(root: Tag, *names: str) -> list[Tag]:
    """Return every tag inside ``root`` that has one of these names, in document order."""
    return [part for part in root.descendants if isinstance(part, Tag) and part.name in names]


def with_class(root: Tag, name: str) -> list[Tag]:
    """Return every tag inside ``root`` that has the given class, in document order."""
    return [tag for tag in root.descendants if isinstance(tag, Tag) and name in (tag.get("class") or ())]


def is_hidden(tag: Tag) -> bool:
    """True if the page hides the tag or an element around it."""
    return any(hides(part) for part in (tag, *tag.parents))


def hides(tag: Tag) -> bool:
    """True if the tag's own attributes hide it."""
    if not tag.attrs:
        return False
    style = tag.get("style")
    return (
        tag.has_attr("hidden")
        or not HIDDEN_CLASSES.isdisjoint(tag.get_attribute_list("class"))
        or (isinstance(style, str) and _DISPLAY_NONE.search(style) is not None)
    )
