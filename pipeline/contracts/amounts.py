"""Numbers of tokens and examples as people write them, such as 100M."""

MAX_TOKENS = 1e16
"""About 100 times as many tokens as the largest training runs use; more would overflow the dollar columns."""

_SCALES = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


def amount_in(text: str) -> float:
    """Return the number in a string, with or without a suffix K, M, B or T (100M is 100,000,000). Raises
    ValueError unless the string is a number above 0 and at most MAX_TOKENS."""
    digits = text.strip().upper().replace(",", "").replace("_", "")
    scale = _SCALES.get(digits[-1:])
    try:
        amount = float(digits) if scale is None else float(digits[:-1]) * scale
    except ValueError:
        raise ValueError(f"{text!r} is not a number such as 100M") from None
    if not 0 < amount <= MAX_TOKENS:
        raise ValueError(f"{text!r} must be above 0 and at most {MAX_TOKENS:g}")
    return amount
