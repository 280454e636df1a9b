"""Seeded mutations of saved answers: what a provider, a proxy or a disk may do to a page.

A mutation is a function of an answer's bytes and a random.Random. One that has nothing to change in a page
returns it as it is. Changes that a provider makes on purpose are in tests/sources/test_mutated_pages.py.
"""

import json
import re
from collections.abc import Callable, Sequence
from functools import wraps
from random import Random
from typing import Any

from pipeline.contracts.listing import Answer
from tests.sources.helpers import answer as new_answer

Mutation = Callable[[bytes, Random], bytes]

DEPTH = 3_000
PAGE_DEPTH = 1_200
"""Levels of nesting, above Python's limit of recursion; a page so deep is slow to search, but no hang."""

NONSENSE: list[Any] = [
    None, True, -1, 0, 10**40, 0.1, "", "N/A", "<b>", "1e999999", "$1.00", "８", "1,5", [], [[]], {},
    {"a": 1}, ["x"], "ａ\u202e", "=1+1", "8 x", "x" * 3_000,
]  # fmt: skip
TEXTS = [
    "", "$1.00", "€2", "-$3", "$1.3O", "$4.5.6", "1,50 €", "$2 .50/hr", "$3/month", "8", "1 year", "spot",
    "</div>", "<script>", "&#36;1.20", "$9" * 200, ' style="display:none"', ' rowspan="1000000"',
]  # fmt: skip

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_PRICE = re.compile(r"(?<=[$€£:\"] )\d+\.\d+|(?<=[$€£:\">])\d+\.\d+")
_ROW = re.compile(r"<tr\b.*?</tr>|<li\b.*?</li>", re.DOTALL)
_CELL = re.compile(r"<t[dh]\b.*?</t[dh]>|<span\b[^<>]*>[^<>]*</span>|<div\b[^<>]*>[^<>]*</div>", re.DOTALL)
_TAG = re.compile(r"(<[^>]*>|\s[\w-]+=\"[^\"]*\")")


def mutated(answers: Sequence[Answer], dice: Random) -> list[Answer]:
    """The answers of one visit, one of them mutated (all of them at times), sometimes out of order."""
    pages = list(answers)
    every = dice.random() < 0.1
    for at in range(len(pages)) if every else [dice.randrange(len(pages))]:
        body = pages[at].body
        for _ in range(dice.choices((1, 2, 3), [8, 3, 1])[0]):
            is_json = body.lstrip()[:1] in (b"{", b"[")
            body = dice.choice(JSON_MUTATIONS if is_json else PAGE_MUTATIONS)(body, dice)
        pages[at] = new_answer(body, url=pages[at].url, observed_at=pages[at].observed_at)
    if len(pages) > 1 and dice.random() < 0.1:
        dice.choice((pages.reverse, lambda: dice.shuffle(pages), pages.pop, lambda: pages.append(pages[0])))()
    return pages


# ------------------------------------------------------------------ bytes


def flip_bits(body: bytes, dice: Random) -> bytes:
    changed = bytearray(body)
    for _ in range(dice.choice((1, 1, 3, 20)) if body else 0):
        changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def other_bytes(body: bytes, dice: Random) -> bytes:
    """A body that breaks off, lacks its beginning or a piece, repeats one, or has foreign bytes."""
    one, other = sorted((dice.randrange(len(body) + 1), dice.randrange(len(body) + 1)))
    piece = body[one : one + dice.choice((1, 10, 300))]
    added = dice.choice((piece * 2, piece * 50, dice.randbytes(dice.choice((1, 4, 100)))))
    without = body[:one] + body[min(other, one + 200) :]
    return dice.choice((body[:one], body[one:], without, body[:one] + added + body[one:]))


def other_encoding(body: bytes, dice: Random) -> bytes:
    encoding = dice.choice(("utf-16", "latin-1", "cp1252", "utf-8-sig", "utf-7", "utf-32"))
    return body.decode("utf-8", errors="replace").encode(encoding, errors="replace")


def nothing(body: bytes, dice: Random) -> bytes:
    return dice.choice((b"", b" ", b"null", b"[]", b"{}", b"<html></html>", b"\x00" * 40, body[:1]))


# ------------------------------------------------------------------ numbers of the text


def _in_text(change: Callable[[str, Random], str]) -> Mutation:
    @wraps(change)
    def mutation(body: bytes, dice: Random) -> bytes:
        text = change(body.decode("utf-8", errors="surrogateescape"), dice)
        return text.encode("utf-8", errors="surrogateescape")

    return mutation


def _other_number(text: str, dice: Random, new: Callable[[str], Sequence[str]]) -> str:
    """The text with one of the new forms of one of its numbers, most often of a price."""
    for pattern in dice.choice(((_PRICE, _NUMBER), (_NUMBER,))):
        if places := list(pattern.finditer(text)):
            found = dice.choice(places)
            return text[: found.start()] + dice.choice(new(found[0])) + text[found.end() :]
    return text


@_in_text
def malformed_number(text: str, dice: Random) -> str:
    """A number that is none any more: a reader must not take a part of it."""

    def new(number: str) -> Sequence[str]:
        at, split = dice.randrange(len(number)), dice.choice((" ", "_", "'", "\u00a0", "\u200b", ","))
        return (
            number.replace("0", "O") if "0" in number else number + "O", number[:-1] + "O",
            number.replace("1", "l") if "1" in number else "l" + number, number + dice.choice("abOlk%"),
            dice.choice("xOv") + number, number + ".5", number.replace(".", ".."), number.replace(".", ","),
            number[:at] + split + number[at:], f"{number}-{number}", f"{number}e", "0x1F", "NaN", "Infinity",
        )  # fmt: skip

    return _other_number(text, dice, new)


@_in_text
def other_number(text: str, dice: Random) -> str:
    """A number that is well-formed and wrong, or too large to be anything."""

    def new(number: str) -> Sequence[str]:
        at = dice.randrange(len(number))
        return (
            number[:at] + dice.choice("0123456789") + number[at + 1 :], number.replace(".", ""), number + "0",
            "0", "0.00", "-" + number, "1" * 400, "1e308", "1e999999999", f"{number}e3", number + "²",
            str(10 ** dice.randrange(30)), re.sub(r"\d", lambda digit: chr(ord(digit[0]) + 0xFEE0), number),
        )  # fmt: skip

    return _other_number(text, dice, new)


def _changed_pair(text: str, pattern: re.Pattern[str], dice: Random, *, swapped: bool) -> str:
    """Two places swapped; or else one also dropped, or written thirty times."""
    places = list(pattern.finditer(text))
    if len(places) < 2:
        return text
    one, other = sorted(dice.sample(places, 2), key=lambda found: found.start())
    pairs = [(other[0], one[0])] + ([] if swapped else [("", other[0]), (one[0] * 30, other[0])])
    first, second = dice.choice(pairs)
    return text[: one.start()] + first + text[one.end() : other.start()] + second + text[other.end() :]


@_in_text
def swapped_numbers(text: str, dice: Random) -> str:
    return _changed_pair(text, dice.choice((_PRICE, _NUMBER)), dice, swapped=True)


# ------------------------------------------------------------------ rows, cells and tags of a page


@_in_text
def changed_rows(text: str, dice: Random) -> str:
    return _changed_pair(text, dice.choice((_ROW, _CELL)), dice, swapped=False)


@_in_text
def swapped_columns(text: str, dice: Random) -> str:
    """Two cells swapped in every row, or in the header only."""
    first, second = 2 * dice.randrange(6) + 1, 2 * dice.randrange(6) + 1

    def row(found: re.Match[str]) -> str:
        parts = re.split(r"(<t[dh]\b.*?</t[dh]>)", found[0], flags=re.DOTALL)
        if max(first, second) < len(parts):
            parts[first], parts[second] = parts[second], parts[first]
        return "".join(parts)

    return _ROW.sub(row, text, count=dice.randrange(2))


@_in_text
def changed_markup(text: str, dice: Random) -> str:
    """Tags, attributes and texts dropped, replaced or swapped."""
    parts = _TAG.split(text)
    for _ in range(dice.choice((1, 1, 2, 8))):
        one, other = dice.randrange(len(parts)), dice.randrange(len(parts))
        if dice.random() < 0.5:
            parts[one] = dice.choice(TEXTS)
        else:
            parts[one], parts[other] = parts[other], parts[one]
    return "".join(parts)


@_in_text
def deep_markup(text: str, dice: Random) -> str:
    at = dice.choice([found.end() for found in _TAG.finditer(text)] or [0])
    return text[:at] + "<div>" * PAGE_DEPTH + text[at:]


# ------------------------------------------------------------------ values of JSON


def _in_json(change: Callable[[list[tuple[Any, Any]], Random], None]) -> Mutation:
    """A change of the decoded value, in every container with each of its keys; a body that is no JSON gets
    other bytes instead."""

    @wraps(change)
    def mutation(body: bytes, dice: Random) -> bytes:
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return other_bytes(body, dice)
        places: list[tuple[Any, Any]] = []
        waiting = [value]
        while waiting:
            node = waiting.pop()
            keys = (
                list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
            )
            places += [(node, key) for key in keys]
            waiting += [node[key] for key in keys]
        if places:
            change(places, dice)
        return json.dumps(value, ensure_ascii=False).encode("utf-8", errors="surrogatepass")

    return mutation


@_in_json
def other_values(places: list[tuple[Any, Any]], dice: Random) -> None:
    """Nonsense, or the value as text, in a list, in an object."""
    for node, key in dice.sample(places, min(len(places), dice.choice((1, 1, 3, 30)))):
        value = node[key]
        wrapped = (str(value), [value], {"value": value}, f"{value} USD", f"{value}O")
        node[key] = dice.choice((dice.choice(NONSENSE), dice.choice(wrapped)))


@_in_json
def swapped_values(places: list[tuple[Any, Any]], dice: Random) -> None:
    """Two fields of one object, or two items of one list, swapped."""
    node, one = dice.choice(places)
    other = dice.choice(list(node) if isinstance(node, dict) else range(len(node)))
    node[one], node[other] = node[other], node[one]


@_in_text
def deep_json(text: str, dice: Random) -> str:
    """A value inside of thousands of lists or objects."""
    places = list(re.finditer(r":\s*(\"[^\"\\]*\"|-?\d[\d.]*|null)", text))
    start, end = dice.choice([found.span(1) for found in places] or [(0, len(text))])
    depth = dice.choice((20, DEPTH, 100_000))
    left, right = dice.choice((("[", "]"), ('{"a":', "}")))
    return text[:start] + left * depth + (text[start:end] or "1") + right * depth + text[end:]


# Numbers are what prices are made of: their mutations are chosen several times as often.
ANY_MUTATIONS: tuple[Mutation, ...] = (
    flip_bits, *2 * (other_bytes,), other_encoding, nothing, *4 * (malformed_number,), *3 * (other_number,),
    *2 * (swapped_numbers,),
)  # fmt: skip
PAGE_MUTATIONS = (
    *ANY_MUTATIONS, *4 * (changed_rows,), swapped_columns, *3 * (changed_markup,), deep_markup
)  # fmt: skip
JSON_MUTATIONS = (
    *ANY_MUTATIONS, *5 * (other_values,), *3 * (swapped_values,), deep_json
)  # fmt: skip
