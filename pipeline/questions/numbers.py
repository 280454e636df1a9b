"""Numbers in words and tables, rounded in one way."""

from decimal import Decimal


def number_text(value: float) -> str:
    """Return a number without decimals from 1,000 on, with one from 10 on, with two from 0.1 on, and with two
    significant digits below."""
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:,.1f}"
    return f"{value:.2f}" if size >= 0.1 else f"{value:.2g}"


def amount_text(value: float) -> str:
    """Return a number of tokens or examples as people write it, such as 100M, 1.5B or 300K."""
    for scale, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if value >= scale:
            return f"{value / scale:.6g}{unit}"
    return f"{value:.6g}"


def price_text(value: Decimal) -> str:
    """Return a price with two decimals or, if it is below one dollar, with all of its decimals."""
    digits = 2 if abs(value) >= 1 else max(2, -int(value.normalize().as_tuple().exponent))
    return f"{value:,.{digits}f}"
