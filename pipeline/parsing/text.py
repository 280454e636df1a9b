"""Strict reading of text, marks of absence, numbers and money as they appear on price pages.

Nothing is guessed. Text that is not exactly one readable number raises UnreadableError, which the reader
turns into a reject.
"""

import re
import unicodedata
from collections.abc import Collection
from decimal import Decimal
from typing import Any

HOURLY = frozenset(
    f"{thing}{hour}"
    for thing in ("", "gpu-", "gpu/", "instance-", "instance/")
    for hour in ("h", "hr", "hour", "1hour")
) | {""}
"""Spellings of "per hour" after a price, in lower case and without spaces; "" stands for a bare price."""

_NOT_OFFERED = frozenset({"", "-", "--", "n/a", "na", "n/a*", "none", "null", "tbd", "x", "coming soon"})
_CONTACT = re.compile(
    r"\b(?:contact(?:ing)?|talk to|get in touch|get a quote|request|inquire|sold out)\b", re.IGNORECASE
)
_MARKDOWN_LINK = re.compile(r"\[([^\[\]]{0,200})\]\([^()]{0,400}\)")
# A footnote must be removed before NFKC folds ¹ into 1: "$3.99¹" is not 3.991.
_FOOTNOTE = re.compile(r"[⁰¹²³⁴-⁹₀-₉①-⒛⓪†‡]|\^[\d*]{1,4}\^?|\*+")
_DASHES = re.compile(r"[‐-―−]")
_INVISIBLE = re.compile(r"[\u200b-\u200f\u2060\ufeff\u00ad]")
_NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,15})(?:\.[0-9]{1,15})?"
STARTING_AT = r"(?:(?:start(?:s|ing)\s)?from|start(?:s|ing)\sat|as\slow\sas)"
"""Words before an amount that mark it as the lowest of several prices."""
AMOUNT = r"[0-9][0-9,]*(?:\s?\.[0-9]+)?"
"""An amount of money, with or without a space before the decimal point ("$2 .0000")."""

_BREAK = r"\s/|()\[\]{};!?\"<>·•"
_GLUED = rf"(?:[^{_BREAK}.,:'’-]|[.,:'’-]+(?=[^{_BREAK}.,:'’-]))"
_CONTINUED = r"(?:\s?\.\s?[0-9]|/[0-9]|\s,[0-9]|\s?-\s?(?:[$€£₹][0-9]|[0-9]+\.[0-9]))"
_SIGN = r"(?<![^\W\d_])(?:[^\W\d_]{1,3})?[$€£₹]"
MONEY_IN_TEXT = (
    rf"(?>(?:\b(?i:{STARTING_AT})\s)?"
    rf"{_SIGN}(?:\s?(?=\d)(?:{AMOUNT})?|(?={_GLUED}))(?:{_CONTINUED}|{_GLUED})*)"
)
"""Money in running text, up to its unambiguous end, with any words that mark it as a starting price.

Characters glued to the amount are part of the match (``$1.3O``, ``$1.39x``, ``$1.39-2.49``, ``A$1.39``), so
that ``money`` refuses the whole text instead of reading a smaller price or another country's dollars.
"""

_MAX_EXPONENT = 18
# Capitals only: "Contact us$1.49" is not a price in US$.
_SIGNS = {"USD": r"(?:(?-i:US)\s?)?\$", "EUR": "€", "GBP": "£"}


class UnreadableError(ValueError):
    """A cell does not contain exactly one value of the expected kind."""


def clean_text(text: str) -> str:
    """Return the text in one Unicode form, with single spaces and without invisible characters or footnote
    marks."""
    text = _MARKDOWN_LINK.sub(r"\1", _FOOTNOTE.sub("", _INVISIBLE.sub("", text)))
    return " ".join(_DASHES.sub("-", unicodedata.normalize("NFKC", text)).split())


def is_not_offered(text: str) -> bool:
    """True if a cell shows that there is no list price: it is empty, a dash, N/A or "Contact sales"."""
    text = clean_text(text).lower()
    return text in _NOT_OFFERED or bool(_CONTACT.search(text))


def is_starting_price(text: str) -> bool:
    """True if a cell gives the lowest of several prices ("from $1.55", "starting at $1.55")."""
    return re.match(STARTING_AT + r"\b", clean_text(text), re.IGNORECASE) is not None


def money(text: str, currency: str = "USD", units: Collection[str] = HOURLY) -> Decimal:
    """Return the amount in a cell such as ``$ 3.49 /hr``, ``from $1.55`` or ``$2 .0000/ 1 hour``.

    ``units`` are the spellings of a unit allowed after the amount (in lower case, without spaces or slashes).
    Raises UnreadableError for another currency, another unit, several numbers or no number.
    """
    sign = _SIGNS[currency]
    amount = rf"(?P<number>{AMOUNT})"
    code = rf"\s?{currency}"
    shapes = (
        rf"{sign}\s?{amount}(?:{code})?",
        rf"{currency}\s?{sign}?\s?{amount}",
        rf"{amount}\s?(?:{sign}|{currency})",
    )
    unit = r"(?:\s?(?:/|\bper\b)\s?(?P<unit>[a-z0-9/ -]{1,40}))?"
    cell = clean_text(text)
    for shape in shapes:
        found = re.fullmatch(rf"(?:(?:{STARTING_AT}|at)\s)?{shape}{unit}", cell, re.IGNORECASE)
        if found:
            spelled = re.sub(r"\s", "", found["unit"] or "").lower()
            if spelled not in units:
                raise UnreadableError(f"{cell!r} is a price per {spelled!r}")
            return number(re.sub(r"\s", "", found["number"]))
    raise UnreadableError(f"{cell[:80]!r} is not one {currency} price")


def number(value: Any) -> Decimal:
    """Return a JSON number or a plain numeric string (``26.00``, ``1,940.00``, ``0E-9``) as Decimal.

    Raises UnreadableError for anything else, including NaN and infinities.
    """
    if isinstance(value, bool) or value is None:
        raise UnreadableError(f"{value!r} is not a number")
    if isinstance(value, int | Decimal):
        amount = Decimal(value)
        # Converted to an int, a JSON number such as 1e999999999 would exhaust memory.
        if not amount.is_finite() or (amount and abs(amount.adjusted()) > _MAX_EXPONENT):
            raise UnreadableError("the number is too large or too small for a price or a count")
        return amount
    if isinstance(value, float):
        return number(repr(value))
    if isinstance(value, str):
        cell = clean_text(value)
        if re.fullmatch(rf"-?{_NUMBER}(?:[eE][+-]?\d{{1,3}})?", cell):
            return number(Decimal(cell.replace(",", "")))
    raise UnreadableError(f"{value!r} is not a number")


def whole_number(value: Any) -> int:
    """Return a whole number. Raises UnreadableError for anything else."""
    amount = number(value)
    if amount != amount.to_integral_value():
        raise UnreadableError(f"{amount} is not a whole number")
    return int(amount)
