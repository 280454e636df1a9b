"""Numbers as people write them: 100M tokens, $20, 24h, 1h30m, 2 days, 95%, 8k, 8x."""

import re
from dataclasses import dataclass, field
from itertools import pairwise

MAX_TOKENS = 1e16
"""About 100 times as many tokens as the largest training runs use; more would overflow the dollar columns."""

_NUMBER = re.compile(
    r"(?P<before>[^\d.+-]*)"
    r"(?P<number>[+-]?(?:[1-9]\d{0,2}(?:[, _]\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?"
    r"|[+-]?inf(?:inity)?)"
    r"(?P<after>.*)"
)
_PARTS = re.compile(r"(\d+(?:\.\d+)?) ?([a-z]+)(?: and |, ?| )?")
"""A part of an amount in several units, such as 1h30m."""


def _each(words: str, factor: float = 1) -> dict[str, float]:
    return dict.fromkeys(words.split(), factor)


_MULTIPLES = (
    _each("k thousand", 1e3)
    | _each("m mn mio million", 1e6)
    | _each("b bn billion", 1e9)
    | _each("t tn trillion", 1e12)
)


@dataclass(frozen=True, slots=True)
class Unit:
    """How amounts in a unit are written: an example, words for units with their size in this unit, and the
    words for multiples."""

    example: str
    words: dict[str, float]
    multiples: dict[str, float] = field(default_factory=lambda: _MULTIPLES)


_USD = "$ us$ usd dollar dollars"
UNITS = {
    "tokens": Unit("100M", _each("token tokens")),
    "examples": Unit("30k", _each("example examples row rows sample samples")),
    "sequences": Unit("4", _each("sequence sequences")),
    "epochs": Unit("3", _each("x epoch epochs")),
    "times": Unit("2 or 200%", _each("x time times") | _each("% percent", 1 / 100)),
    "GPUs": Unit("8", _each("x gpu gpus card cards")),
    "machines": Unit("2", _each("x machine machines node nodes")),
    "USD": Unit("20 USD", _each(_USD)),
    "USD per hour": Unit("2 USD", _each(f"{_USD} $/h $/hour $perhour usd/h usd/hour usdperhour")),
    "hours": Unit(
        "24h or 2 days",
        _each("h hr hrs hour hours")
        | _each("m min mins minute minutes", 1 / 60)
        | _each("d day days", 24)
        | _each("w wk week weeks", 7 * 24),
        {},
    ),
    "days": Unit(
        "30 days", _each("d day days") | _each("w wk week weeks", 7) | _each("y year years", 365), {}
    ),
    "share": Unit("0.95 or 95%", _each("% percent", 1 / 100), {}),
    "": Unit("16", {}),
}
"""The units of the settings of a job (the column ``unit`` of job_settings)."""

LENGTH = Unit("2048 or 8k", UNITS["tokens"].words, {"k": 2**10, "m": 2**20})
"""Lengths are powers of two in the field: a context of 8k is 8,192 tokens."""


def number_in(text: str, unit: str = "", *, is_length: bool = False) -> float:
    """Return the number in a string such as 100M, "20 USD" or "2 days", in ``unit``, a unit of job settings.
    In a length in tokens, 8k is 8,192. Raises ValueError with an example if the string is no such number."""
    known = LENGTH if is_length else UNITS[unit]
    written = " ".join(text.lower().split())
    parts = _PARTS.findall(written)
    if len(parts) > 1 and not _PARTS.sub("", written) and all(word in known.words for _, word in parts):
        return _sum_of(parts, text, unit, known)
    found = _NUMBER.fullmatch(written)
    # A shell turns "$2.50" into .50.
    if found is None or ("$" in known.words and found["number"].lstrip("+-").startswith(".")):
        raise ValueError(_refusal(text, unit, known))
    number, words = float(re.sub("[, _]", "", found["number"])), found["after"].strip()
    for multiple in sorted(known.multiples, key=len, reverse=True):
        if words.startswith(multiple) and not words.removeprefix(multiple)[:1].isalpha():
            number, words = number * known.multiples[multiple], words.removeprefix(multiple)
            break
    rest = "".join(f"{found['before']}{words}".split())
    if rest and rest not in known.words:
        raise ValueError(_refusal(text, unit, known))
    # +50% may mean half of it or half of it more.
    if rest in ("%", "percent") and found["number"].startswith("+"):
        raise ValueError(_refusal(text, unit, known))
    return _in_unit(number, known.words.get(rest, 1.0))


def _in_unit(number: float, size: float) -> float:
    return number * size if size >= 1 else number / round(1 / size)


def _sum_of(parts: list[tuple[str, str]], text: str, unit: str, known: Unit) -> float:
    """Return the sum of the parts of an amount such as 1h30m, each of a smaller unit than the one before."""
    sizes = [known.words[word] for _, word in parts]
    if any(next_size >= size for size, next_size in pairwise(sizes)):
        raise ValueError(_refusal(text, unit, known))
    return sum(_in_unit(float(number), size) for (number, _), size in zip(parts, sizes, strict=True))


def _refusal(text: str, unit: str, known: Unit) -> str:
    kinds = {
        "share": "a share or a percentage",
        "USD": "an amount in US dollars",
        "USD per hour": "an amount in US dollars",
        "": "a number",
    }
    return f"{text!r} is not {kinds.get(unit) or f'a number of {unit}'}, such as {known.example}"


def amount_in(text: str, unit: str = "tokens") -> float:
    """Return the number of tokens or examples in a string (100M is 100,000,000). Raises ValueError unless the
    string is a number above 0 and at most MAX_TOKENS."""
    amount = number_in(text, unit)
    if not 0 < amount <= MAX_TOKENS:
        raise ValueError(f"{text!r} must be above 0 and at most {MAX_TOKENS:g}")
    return amount
