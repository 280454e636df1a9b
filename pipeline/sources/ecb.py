"""The European Central Bank's daily reference rates: a source of exchange rates, not of offers."""

import re
from datetime import date
from decimal import Decimal
from typing import Any

from lxml import etree  # type: ignore[import-untyped]

from pipeline.sources import kit

_RATE = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*")
"""A rate has no sign, exponent, separator or footnote."""


def read(answers: kit.Answers, config: kit.SourceConfig) -> kit.Rows:
    """Raise SourceChangedError, because this source provides no offers, only rates (``read_rates``)."""
    raise kit.SourceChangedError(
        f"{config.title} has exchange rates, not offers; to set a rate yourself, use --fx EUR=1.17"
    )


def read_rates(answers: kit.Answers, config: kit.SourceConfig) -> kit.ExchangeRates:
    """Return the rates of the latest day in the answers. Raises SourceChangedError if the rates are in
    doubt."""
    if not answers:
        raise kit.SourceChangedError("the ECB gave no answer to read rates from")
    return max((_rates(answer, config) for answer in answers), key=lambda rates: rates.date)


def _rates(answer: kit.Answer, config: kit.SourceConfig) -> kit.ExchangeRates:
    tree = _tree(answer)
    days = [cube for cube in tree.iter("{*}Cube") if cube.get("time") is not None]
    if not days:
        raise answer.changed("no Cube with a time")
    # The daily file contains one day, the 90-day file many.
    latest = max(days, key=lambda cube: cube.get("time", ""))
    try:
        day = date.fromisoformat(latest.get("time", ""))
        stated = [(cube.get("currency", ""), cube.get("rate", "")) for cube in latest.iterchildren("{*}Cube")]
        found = [(currency, _rate(rate)) for currency, rate in stated]
    except ValueError as error:
        raise answer.changed(f"a day or rate cannot be read ({error})") from error
    rates = dict(found)
    if len(rates) != len(found) or not all(len(c) == 3 and c.isupper() and r > 0 for c, r in found):
        raise answer.changed("a currency is listed twice, or lacks a code or a rate above 0")
    low, high = (Decimal(bound) for bound in config.settings["usd_per_eur"])
    if "USD" not in rates or not low <= rates["USD"] <= high:
        raise answer.changed(
            f"{rates.get('USD')} dollars per euro on {day}, expected between {low} and {high}"
        )
    # The file gives the number of units of each currency per euro.
    usd_per_unit = {currency: rates["USD"] / per_euro for currency, per_euro in rates.items()}
    return kit.ExchangeRates(day, {**usd_per_unit, "EUR": rates["USD"]})


def _rate(text: str) -> Decimal:
    found = _RATE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is not a rate")
    return Decimal(found[1])


def _tree(answer: kit.Answer) -> Any:
    # No entities, network access or huge trees: the file is small, and its content is not trusted.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        return etree.fromstring(answer.body, parser)
    except etree.XMLSyntaxError as error:
        raise answer.changed(f"the answer is not XML ({error})") from error
