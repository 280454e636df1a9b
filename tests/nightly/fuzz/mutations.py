"""Seeded mutations of saved answers: what a provider, a proxy or a disk may do to a page.

A mutation is a function of an answer's bytes and a random.Random. One that has nothing to change in a page
returns it as it is. The same seed, source and number always give the same pages.
"""

import json
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from pipeline.contracts.listing import Answer
from tests.sources.helpers import answer as new_answer

Mutation = Callable[[bytes, Random], bytes]

MAX_MUTATIONS = 3
"""A page gets at most this many mutations at once: one most of the time."""

DEPTH = 3_000
PAGE_DEPTH = 1_200
"""Levels of nesting, above Python's limit of recursion; a page so deep is slow to search, but no hang."""

NONSENSE: list[Any] = [
    None, True, -1, 0, 10**40, 0.1, "", "N/A", "<b>", "1e999999", "$1.00", "８", "1,5", [], [[]], {},
    {"a": 1}, ["x"], "ａ\u202e", "=1+1", "8 x", "x" * 3_000,
]  # fmt: skip
TEXTS = [
    "", "$1.00", "€2", "$0.00", "-$3", "$1.3O", "$4.5.6", "1,50 €", "$2 .50/hr", "$3/month", "Contact us",
    "8", "1 year", "spot", "reserved", "N/A", "</div>", "<script>", "&#36;1.20", "$9" * 200,
]  # fmt: skip

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_PRICE = re.compile(r"(?<=[$€£:\"] )\d+\.\d+|(?<=[$€£:\">])\d+\.\d+")
_SIGN = re.compile(r"[$€£]|\b(?:USD|EUR|GBP)\b")
_UNIT = re.compile(r"/ ?(?:hr|hour|h|gpu|second|sec|min)\b|\bper (?:hour|gpu|second|minute)\b", re.IGNORECASE)
_ROW = re.compile(r"<tr\b.*?</tr>|<li\b.*?</li>", re.DOTALL)
_CELL = re.compile(r"<t[dh]\b.*?</t[dh]>|<span\b[^<>]*>[^<>]*</span>|<div\b[^<>]*>[^<>]*</div>", re.DOTALL)
_TAG = re.compile(r"(<[^>]*>)")
_ATTRIBUTE = re.compile(r'\s[\w-]+="[^"]*"')


def mutated(answers: Sequence[Answer], dice: Random) -> list[Answer]:
    """The answers of one visit, one of them mutated (all of them at times), sometimes out of order."""
    pages = list(answers)
    every = dice.random() < 0.1
    for at in range(len(pages)) if every else [dice.randrange(len(pages))]:
        body = pages[at].body
        for _ in range(dice.choices(range(1, MAX_MUTATIONS + 1), [8, 3, 1])[0]):
            body = dice.choice(_mutations_of(body))(body, dice)
        pages[at] = new_answer(body, url=pages[at].url, observed_at=pages[at].observed_at)
    if len(pages) > 1 and dice.random() < 0.1:
        dice.choice((pages.reverse, lambda: dice.shuffle(pages), pages.pop, lambda: pages.append(pages[0])))()
    return pages


def _mutations_of(body: bytes) -> Sequence[Mutation]:
    is_json = body.lstrip()[:1] in (b"{", b"[")
    return JSON_MUTATIONS if is_json else PAGE_MUTATIONS


# ------------------------------------------------------------------ bytes


def flip_bits(body: bytes, dice: Random) -> bytes:
    changed = bytearray(body)
    for _ in range(dice.choice((1, 1, 3, 20)) if body else 0):
        changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def cut(body: bytes, dice: Random) -> bytes:
    """A body that breaks off, lacks its beginning, or lacks a piece."""
    one, other = sorted((dice.randrange(len(body) + 1), dice.randrange(len(body) + 1)))
    return dice.choice((body[:one], body[one:], body[:one] + body[min(other, one + 200) :]))


def repeat_bytes(body: bytes, dice: Random) -> bytes:
    start = dice.randrange(len(body) + 1)
    piece = body[start : start + dice.choice((1, 10, 300))]
    return body[:start] + piece * dice.choice((2, 2, 50)) + body[start + len(piece) :]


def insert_bytes(body: bytes, dice: Random) -> bytes:
    at = dice.randrange(len(body) + 1)
    return body[:at] + dice.randbytes(dice.choice((1, 4, 100))) + body[at:]


def other_encoding(body: bytes, dice: Random) -> bytes:
    text = body.decode("utf-8", errors="replace")
    encoding = dice.choice(("utf-16", "latin-1", "cp1252", "utf-8-sig", "utf-7", "utf-32"))
    return text.encode(encoding, errors="replace")


def nothing(body: bytes, dice: Random) -> bytes:
    return dice.choice((b"", b" ", b"null", b"[]", b"{}", b"<html></html>", b"\x00" * 40, body[:1]))


# ------------------------------------------------------------------ numbers and words of the text


def _in_text(change: Callable[[str, Random], str]) -> Mutation:
    def mutation(body: bytes, dice: Random) -> bytes:
        return change(body.decode("utf-8", errors="surrogateescape"), dice).encode(
            "utf-8", errors="surrogateescape"
        )

    mutation.__name__ = change.__name__
    return mutation


def _replace_one(
    text: str, patterns: Sequence[re.Pattern[str]], dice: Random, new: Callable[[str], str]
) -> str:
    for pattern in patterns:
        if places := list(pattern.finditer(text)):
            found = dice.choice(places)
            return text[: found.start()] + new(found[0]) + text[found.end() :]
    return text


@_in_text
def malformed_number(text: str, dice: Random) -> str:
    """A number that is none any more: a reader must not take a part of it."""

    def new(number: str) -> str:
        at = dice.randrange(len(number))
        return dice.choice(
            (
                number.replace("0", "O") if "0" in number else number + "O",
                number[:-1] + "O",
                number.replace("1", "l") if "1" in number else "l" + number,
                number + dice.choice("abOlk%"),
                dice.choice("xOv") + number,
                number + ".5",
                number.replace(".", ".."),
                number[:at] + dice.choice((" ", "_", "'", "\u00a0", "\u200b", ",")) + number[at:],
                number.replace(".", ","),
                f"{number}-{number}",
                f"{number}e",
                "0x1F",
                "NaN",
                "Infinity",
            )
        )

    return _replace_one(text, dice.choice(((_PRICE, _NUMBER), (_NUMBER,))), dice, new)


@_in_text
def other_number(text: str, dice: Random) -> str:
    """A number that is well-formed and wrong, or too large to be anything."""

    def new(number: str) -> str:
        at = dice.randrange(len(number))
        digits = number[:at] + dice.choice("0123456789") + number[at + 1 :]
        return dice.choice(
            (
                digits,
                number.replace(".", ""),
                number + "0",
                "0",
                "0.00",
                "-" + number,
                "1" * 400,
                "1e308",
                "1e999999999",
                f"{number}e3",
                str(10 ** dice.randrange(30)),
                number.translate(str.maketrans("0123456789", "０１２３４５６７８９")),
                number + "²",
            )
        )

    return _replace_one(text, dice.choice(((_PRICE, _NUMBER), (_NUMBER,))), dice, new)


@_in_text
def swapped_numbers(text: str, dice: Random) -> str:
    pattern = dice.choice((_PRICE, _NUMBER))
    places = list(pattern.finditer(text))
    if len(places) < 2:
        return text
    one, other = sorted(dice.sample(places, 2), key=lambda found: found.start())
    between = text[one.end() : other.start()]
    return text[: one.start()] + other[0] + between + one[0] + text[other.end() :]


@_in_text
def other_currency(text: str, dice: Random) -> str:
    """One sign changes, or all of them."""
    new = dice.choice(("€", "£", "$", "USD", "EUR", "₹", "R$", "A$", ""))
    if dice.random() < 0.3:
        return _SIGN.sub(lambda _: new, text)
    return _replace_one(text, (_SIGN,), dice, lambda _: new)


@_in_text
def other_unit(text: str, dice: Random) -> str:
    new = dice.choice(("", "/month", "/ day", "per minute", "/token", "/2 hours", "/hrs", "hr"))
    if dice.random() < 0.3:
        return _UNIT.sub(new, text)
    return _replace_one(text, (_UNIT,), dice, lambda _: new)


# ------------------------------------------------------------------ rows and cells of a page


@_in_text
def changed_rows(text: str, dice: Random) -> str:
    return _changed_pieces(text, _ROW, dice)


@_in_text
def changed_cells(text: str, dice: Random) -> str:
    return _changed_pieces(text, _CELL, dice)


def _changed_pieces(text: str, pattern: re.Pattern[str], dice: Random) -> str:
    """One piece dropped, written twice or swapped with another."""
    places = list(pattern.finditer(text))
    if len(places) < 2:
        return text
    one, other = sorted(dice.sample(places, 2), key=lambda found: found.start())
    before, between, after = text[: one.start()], text[one.end() : other.start()], text[other.end() :]
    kept = dice.choice(("", one[0] * 2, one[0] * 30, None))
    if kept is None:
        return before + other[0] + between + one[0] + after
    return before + kept + between + other[0] + after


@_in_text
def swapped_columns(text: str, dice: Random) -> str:
    """Two cells swapped in every row, or in the header only."""
    one, other = dice.randrange(6), dice.randrange(6)
    only_header = dice.random() < 0.5

    def row(found: re.Match[str]) -> str:
        parts = re.split(r"(<t[dh]\b.*?</t[dh]>)", found[0], flags=re.DOTALL)
        first, second = 2 * one + 1, 2 * other + 1
        if max(first, second) < len(parts):
            parts[first], parts[second] = parts[second], parts[first]
        return "".join(parts)

    return _ROW.sub(row, text, count=1 if only_header else 0)


@_in_text
def changed_markup(text: str, dice: Random) -> str:
    """Tags and texts dropped, replaced or swapped."""
    parts = _TAG.split(text)
    for _ in range(dice.choice((1, 1, 2, 8))):
        one, other = dice.randrange(len(parts)), dice.randrange(len(parts))
        if dice.random() < 0.5:
            parts[one] = dice.choice(TEXTS)
        else:
            parts[one], parts[other] = parts[other], parts[one]
    return "".join(parts)


@_in_text
def changed_attribute(text: str, dice: Random) -> str:
    hidden = ' style="display:none"', ' class="hidden"', ' colspan="3"', ' rowspan="1000000"', ""
    return _replace_one(text, (_ATTRIBUTE,), dice, lambda _: dice.choice(hidden))


@_in_text
def deep_markup(text: str, dice: Random) -> str:
    at = dice.choice([found.end() for found in _TAG.finditer(text)] or [0])
    return text[:at] + "<div>" * PAGE_DEPTH + text[at:]


# ------------------------------------------------------------------ values of JSON


def _in_json(change: Callable[[Any, Random], Any]) -> Mutation:
    """A change of the decoded value; a body that is no JSON is cut instead."""

    def mutation(body: bytes, dice: Random) -> bytes:
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return cut(body, dice)
        return json.dumps(change(value, dice), ensure_ascii=False).encode("utf-8", errors="surrogatepass")

    mutation.__name__ = change.__name__
    return mutation


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container with each of its keys."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        node = waiting.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        for key in keys:
            found.append((node, key))
            waiting.append(node[key])
    return found


@_in_json
def other_values(value: Any, dice: Random) -> Any:
    if dice.random() < 0.02:
        return dice.choice(NONSENSE)
    if places := _places(value):
        for node, key in dice.sample(places, min(len(places), dice.choice((1, 1, 3, 30)))):
            node[key] = dice.choice(NONSENSE)
    return value


@_in_json
def other_types(value: Any, dice: Random) -> Any:
    """A value as text, in a list, in an object."""
    if places := _places(value):
        node, key = dice.choice(places)
        wraps = (str, lambda v: [v], lambda v: {"value": v}, lambda v: f"{v} USD", lambda v: f"{v}O")
        node[key] = dice.choice(wraps)(node[key])
    return value


@_in_json
def changed_items(value: Any, dice: Random) -> Any:
    """Items of a list dropped, repeated, swapped."""
    lists = [node for node in {id(n): n for n, _ in _places(value)}.values() if isinstance(node, list)]
    if not lists:
        return value
    items = dice.choice(lists)
    one, other = dice.randrange(len(items)), dice.randrange(len(items))
    kind = dice.randrange(4)
    if kind == 0:
        del items[one]
    elif kind == 1:
        items.extend([items[one]] * dice.choice((1, 40)))
    elif kind == 2:
        items[one], items[other] = items[other], items[one]
    else:
        del items[min(one, other) : max(one, other)]
    return value


@_in_json
def swapped_fields(value: Any, dice: Random) -> Any:
    """Two fields of one object swapped, renamed or dropped."""
    objects = [
        n for n in {id(n): n for n, _ in _places(value)}.values() if isinstance(n, dict) and len(n) > 1
    ]
    if not objects:
        return value
    found = dice.choice(objects)
    one, other = dice.sample(list(found), 2)
    kind = dice.randrange(3)
    if kind == 0:
        found[one], found[other] = found[other], found[one]
    elif kind == 1:
        found[one + "_2"] = found.pop(one)
    else:
        del found[one]
    return value


def repeated_keys(body: bytes, dice: Random) -> bytes:
    """A key twice in one object, the second time with another value."""
    text = body.decode("utf-8", errors="surrogateescape")
    places = list(re.finditer(r'("[\w.-]+")\s*:\s*("[^"\\]*"|-?\d[\d.eE+-]*|true|false|null)', text))
    if not places:
        return body
    found = dice.choice(places)
    values = ("1.11", '"2.22"', "null", "8", '"x"', dice.choice(places)[2])
    again = f"{found[1]}: {dice.choice(values)}"
    pair = (found[0], again) if dice.random() < 0.5 else (again, found[0])
    return (text[: found.start()] + ", ".join(pair) + text[found.end() :]).encode(
        "utf-8", errors="surrogateescape"
    )


def deep_json(body: bytes, dice: Random) -> bytes:
    """A value inside of thousands of lists or objects."""
    text = body.decode("utf-8", errors="surrogateescape")
    places = list(re.finditer(r":\s*(\"[^\"\\]*\"|-?\d[\d.]*|null)", text))
    start, end = dice.choice([found.span(1) for found in places] or [(0, len(text))])
    depth = dice.choice((20, DEPTH, 100_000))
    left, right = dice.choice((("[", "]"), ('{"a":', "}")))
    return (text[:start] + left * depth + (text[start:end] or "1") + right * depth + text[end:]).encode(
        "utf-8", errors="surrogateescape"
    )


# The same mutation several times is chosen that often: numbers are what prices are made of.
ANY_MUTATIONS: tuple[Mutation, ...] = (
    flip_bits, cut, repeat_bytes, insert_bytes, other_encoding, nothing,
    malformed_number, malformed_number, malformed_number, malformed_number,
    other_number, other_number, other_number, swapped_numbers, swapped_numbers, other_currency, other_unit,
)  # fmt: skip
PAGE_MUTATIONS = (
    *ANY_MUTATIONS, other_currency, other_unit, changed_rows, changed_rows, changed_cells, changed_cells,
    swapped_columns, changed_markup, changed_markup, changed_attribute, deep_markup,
)  # fmt: skip
JSON_MUTATIONS = (
    *ANY_MUTATIONS, other_values, other_values, other_values, other_types, other_types, changed_items,
    changed_items, swapped_fields, swapped_fields, repeated_keys, repeated_keys, deep_json,
)  # fmt: skip
