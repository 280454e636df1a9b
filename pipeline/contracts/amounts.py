"""Numbers as people write them: 100M tokens, $20, 24h, 2 days, 95%, 8k, 8x."""

import re
from dataclasses import dataclass, field

MAX_TOKENS = 1e16
"""About 100 times as many tokens as the largest training runs use; more would overflow the dollar columns."""

# A number begins with a digit: a shell turns "$2.50" into .50.
_NUMBER = re.compile(
    r"(?P<before>[^\d.+-]*)"
    r"(?P<number>[+-]?(?:[1-9]\d{0,2}(?:[, _]\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?)(?:e[+-]?\d+)?"
    r"|[+-]?inf(?:inity)?)"
    r"(?P<after>.*)"
)


def _each(words: str, factor: float = 1) -> dict[str, float]:
    return dict.fromkeys(words.split(), factor)


_MULTIPLES = (
    _each("k thousand", 1e3)
    | _each("m mn mio million", 1e6)
    | _each("b bn billion", 1e9)
    | _each("t tn trillion", 1e12)
)


@dataclass(frozen=True, slots=True)
class _Unit:
    """How amounts in a unit are written: an example, words for units with their size in this unit, and the
    words for multiples."""

    example: str
    words: dict[str, float]
    multiples: dict[str, float] = field(default_factory=lambda: _MULTIPLES)


_USD = "$ us$ usd dollar dollars"
_UNITS = {
    "tokens": _Unit("100M", _each("token tokens")),
    "examples": _Unit("30k", _each("example examples row rows sample samples")),
    "sequences": _Unit("4", _each("sequence sequences")),
    "epochs": _Unit("3", _each("epoch epochs")),
    "times": _Unit("2", _each("x time times")),
    "GPUs": _Unit("8", _each("x gpu gpus card cards")),
    "machines": _Unit("2", _each("x machine machines node nodes")),
    "USD": _Unit("20 USD", _each(_USD)),
    "USD per hour": _Unit("2 USD", _each(f"{_USD} $/h $/hour $perhour usd/h usd/hour usdperhour")),
    "hours": _Unit(
        "24h or 2 days",
        _each("h hr hrs hour hours")
        | _each("min mins minute minutes", 1 / 60)
        | _each("d day days", 24)
        | _each("w wk week weeks", 7 * 24),
        {},
    ),
    "days": _Unit(
        "30 days", _each("d day days") | _each("w wk week weeks", 7) | _each("y year years", 365), {}
    ),
    "share": _Unit("0.95 or 95%", _each("% percent", 1 / 100), {}),
    "": _Unit("16", {}),
}
"""The units of the settings of a job (the column ``unit`` of job_settings)."""

_LENGTH = _Unit("2048 or 8k", _UNITS["tokens"].words, {"k": 2**10, "m": 2**20})
"""Lengths are powers of two in the field: a context of 8k is 8,192 tokens."""


def number_in(text: str, unit: str = "", *, is_length: bool = False) -> float:
    """Return the number in a string such as 100M, "20 USD" or "2 days", in ``unit``, a unit of job settings.
    In a length in tokens, 8k is 8,192. Raises ValueError with an example if the string is no such number."""
    known = _LENGTH if is_length else _UNITS[unit]
    found = _NUMBER.fullmatch(" ".join(text.lower().split()))
    if found is None:
        raise ValueError(_refusal(text, unit, known))
    number, words = float(re.sub("[, _]", "", found["number"])), found["after"].strip()
    for multiple in sorted(known.multiples, key=len, reverse=True):
        if words.startswith(multiple) and not words.removeprefix(multiple)[:1].isalpha():
            number, words = number * known.multiples[multiple], words.removeprefix(multiple)
            break
    rest = "".join(f"{found['before']}{words}".split())
    if rest and rest not in known.words:
        raise ValueError(_refusal(text, unit, known))
    factor = known.words.get(rest, 1.0)
    return number * factor if factor >= 1 else number / round(1 / factor)


def _refusal(text: str, unit: str, known: _Unit) -> str:
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
