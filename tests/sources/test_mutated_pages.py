"""Every source's sample pages, changed in the ways in which a provider may change them.

An offer of a changed page is one that the page had before, or it is missing, flagged or of no known GPU;
it is never another price. Each test reads all sources and lists every failure.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import yaml

from pipeline.catalog.source_config import source_config
from pipeline.contracts.listing import Answer, SourceChangedError
from pipeline.contracts.offer import Built, Offer
from pipeline.refresh.ingest import read_answers
from tests.parsing.test_text import GLUED
from tests.sources.helpers import PRICE_SOURCES, RATES, read_sample, sample_answers

EXPECTED = yaml.safe_load(Path(__file__).with_name("page_changes.yaml").read_text(encoding="utf-8"))
"""Known exceptions: the changes of pages after which some sources have other offers, and why."""

FACTS = (
    *("gpu_id", "gpu_count", "price_kind", "term_days", "min_gpu_count"),
    *("native_price", "native_currency", "native_unit"),
)
"""The columns of an offer that may not become others."""

SIZES = ("gpu_counts", "max_nodes", "vcpus", "ram_gib", "local_disk_gb", "node_network_gbps")
"""The columns that may get lost or be zero with what they are read from, but may not become others."""


@cache
def known_offers(source: str) -> Mapping[tuple[Any, ...], list[Offer]]:
    """The offers of the sample pages that a ranking has, by their facts."""
    known: dict[tuple[Any, ...], list[Offer]] = defaultdict(list)
    for offer in ranked(read_sample(source)):
        known[facts_of(offer)].append(offer)
    return dict(known)


def ranked(built: Built) -> list[Offer]:
    good = (offer for offer in built.offers if offer.flag_reason is None and offer.gpu_id)
    return [offer for offer in good if offer.price_kind != "reserved" or offer.term_days]


def facts_of(offer: Offer) -> tuple[Any, ...]:
    return tuple(getattr(offer, name) for name in FACTS)


def is_known(offer: Offer) -> bool:
    return any(
        all(getattr(offer, name) in (None, 0, getattr(other, name)) for name in SIZES)
        for other in known_offers(offer.source).get(facts_of(offer), [])
    )


def read(source: str, answers: Sequence[Answer] | None) -> Built | None:
    """The answers as the daily job reads them; None if they are not in a shape that the reader knows."""
    try:
        return read_answers(answers, source_config(source), RATES) if answers else None
    except SourceChangedError:
        return None


def wrong_offers(built: Built | None) -> list[str]:
    return [
        f"{offer.raw_label}: {offer.gpu_count:g} x {offer.gpu_id}, {offer.price_kind}, {offer.native_price}"
        for offer in (ranked(built) if built else [])
        if not is_known(offer)
    ]


# ------------------------------------------------------------------ fields of JSON

PRICE_SCALES = (1, 100, 10**8)
"""A price may be stated in cents, or in whole numbers of 1e-8."""

Field = tuple[str, str]
"""The name of a field, after the name of the field with its object."""


def fields_of(value: Any, parent: str = "") -> Iterator[Field]:
    if isinstance(value, list):
        for item in value:
            yield from fields_of(item, parent)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if is_data(name, inner):
                yield from fields_of(inner, "*")
            else:
                yield parent, name
                yield from fields_of(inner, name)


def is_data(name: str, value: Any) -> bool:
    """True if an object is kept by what it is of, such as a region, instead of under a field's name."""
    return isinstance(value, dict) and re.fullmatch("[A-Za-z_]+", name) is None


def renamed(name: str, value: Any) -> tuple[str, Any]:
    return f"{name}_2", value


def made_text(name: str, value: Any) -> tuple[str, Any]:
    """A number with a letter behind it, and another number without. Other values stay as they are."""
    return name, f"{value}1O" if is_number(value) else value


def made_zero(name: str, value: Any) -> tuple[str, Any]:
    return name, 0 if is_number(value) else value


def is_number(value: Any) -> bool:
    return type(value) in (int, float) or (
        isinstance(value, str) and re.fullmatch(r"\d+(?:\.\d+)?", value) is not None
    )


def with_field(
    value: Any, field: Field, change: Callable[[str, Any], tuple[str, Any]], parent: str = ""
) -> Any:
    """The value with a field changed, wherever it stands."""
    if isinstance(value, list):
        return [with_field(item, field, change, parent) for item in value]
    if not isinstance(value, dict):
        return value
    return dict(
        change(name, inner)
        if (parent, name) == field and not is_data(name, inner)
        else (name, with_field(inner, field, change, "*" if is_data(name, inner) else name))
        for name, inner in value.items()
    )


def changed_in_json(source: str, change: Callable[[Any], Any]) -> list[Answer] | None:
    """The sample pages with their JSON changed; None if nothing changes."""
    bodies = [json.loads(page.body) if page.is_json else None for page in sample_answers(source)]
    changed = [body if body is None else change(body) for body in bodies]
    if changed == bodies:
        return None
    return [
        page if new == old else replace(page, body=json.dumps(new).encode())
        for page, old, new in zip(sample_answers(source), bodies, changed, strict=True)
    ]


def test_a_field_that_is_renamed_no_number_or_zero_leads_to_no_wrong_offer() -> None:
    wrong: dict[str, str] = {}
    for source in PRICE_SOURCES:
        bodies = [json.loads(page.body) for page in sample_answers(source) if page.is_json]
        for field in dict.fromkeys(field for body in bodies for field in fields_of(body)):
            for change in (renamed, made_text, made_zero):
                pages = changed_in_json(source, partial(with_field, field=field, change=change))
                for found in wrong_offers(read(source, pages)):
                    wrong[f"{source} {'.'.join(field)}"] = f"{change.__name__}: {found}"
    assert {name: found for name, found in wrong.items() if name not in EXPECTED["foreseen"]} == {}
    assert EXPECTED["foreseen"].keys() - wrong.keys() == set(), "foreseen in vain"


def items_at_another_price(source: str, value: Any) -> Any:
    """Every object of a list stands there once more, with other prices."""
    prices = {offer.native_price * scale for offer in read_sample(source).offers for scale in PRICE_SCALES}

    def dearer(inner: Any) -> Any:
        if isinstance(inner, list):
            return [dearer(each) for each in inner]
        if isinstance(inner, dict):
            return {name: dearer(each) for name, each in inner.items()}
        is_price = is_number(inner) and Decimal(str(inner)) in prices
        return type(inner)(float(inner) * 1.25) if is_price else inner

    return with_lists(value, lambda items: [*items, *map(dearer, items)])


def with_lists(value: Any, change: Callable[[list[Any]], list[Any]]) -> Any:
    """The value with every outermost list changed."""
    if isinstance(value, dict):
        return {name: with_lists(inner, change) for name, inner in value.items()}
    return change(value) if isinstance(value, list) and value else value


def test_items_that_are_repeated_at_another_price_lead_to_no_wrong_offer() -> None:
    found = {
        source: changed_in_json(source, partial(items_at_another_price, source)) for source in PRICE_SOURCES
    }
    assert [offer for source, pages in found.items() for offer in wrong_offers(read(source, pages))] == []
    assert len([pages for pages in found.values() if pages]) > 20


# ------------------------------------------------------------------ texts of pages

SIGNED = re.compile(r"(?:US\s?)?[$€£]{1,2}\s?\d[\d,]*(?:\s?\.\s?\d+)?")
MONEY = re.compile(SIGNED.pattern + r'|(?<=[:"> ])\d+\.\d+(?=["\\,}<\s])')
CENTS = re.compile(r"\$ ?\d[\d,]*\.\d\d(?!\d)")
UNIT = re.compile(r"(?i)(?<![a-z])(?:hour(?:ly|s)?|hr|minute|min|second|sec)(?![a-z])|(?<=/)[hs]\b")
WHOLE_NUMBER = re.compile(r"(?<![\w.,/$#;=\"-])\d{1,3}(?:/\d{1,3})?(?![\w.,/;\"%])")
COUNT = re.compile(r"(?i)(?<![\w.])\d{1,3} ?[x×](?!\w)")
ROW = re.compile(r"<tr\b.*?</tr>|<li\b.*?</li>", re.DOTALL)
PLAIN_MONEY = re.compile(r"(?<!from )((?:(?<![A-Za-z])US)?\${1,2}\s?\d[\d,]*\s?\.\d|[€£]\s?\d)")
OTHER_CURRENCY = {"$": "€", "€": "$", "USD": "EUR", "EUR": "USD", "usd": "eur", "eur": "usd"}
SUPERSCRIPTS = ("{}<sup>{}</sup>", "{}<sup>.{}</sup>", "{}.<sup>{}</sup>", "{}<sup> {} </sup>")


def half_of(pattern: re.Pattern[str], text: str, dice: Random, new: Callable[[str], str]) -> str:
    """The text with about half of the matches replaced: a row must not get the price of another one."""
    return pattern.sub(lambda found: new(found[0]) if dice.random() < 0.5 else found[0], text)


def spoiled(price: str, dice: Random) -> str:
    """A price that is none any more."""
    cents = re.sub(r"[^0-9]", "", price)
    return dice.choice(
        [f"{cents} cents", f"{cents}¢", "", "Contact us", "$0.00", f"{price} $9.99", *GLUED, *GLUED]
    )


def raised_cents(price: str, dice: Random) -> str:
    return dice.choice(SUPERSCRIPTS).format(*price.split("."))


def in_other_currency(text: str, dice: Random) -> str:
    names = "|".join(re.escape(name) if len(name) == 1 else rf"\b{name}\b" for name in OTHER_CURRENCY)
    return re.sub(names, lambda found: OTHER_CURRENCY[found[0]], text)


def repeated_at_another_price(text: str, dice: Random) -> str:
    """Rows, or where there are none the whole page, once more with another last digit in each price."""

    def again(row: str) -> str:
        return row + SIGNED.sub(lambda price: f"{price[0][:-1]}{(int(price[0][-1]) + 3) % 10}", row)

    return half_of(ROW, text, dice, again) if ROW.search(text) else again(text)


def starting_price(text: str, dice: Random) -> str:
    """The text with a word before each price which says that it is the lowest of several."""
    words = ("from", "Starting at", "starts at", "As low as")
    return PLAIN_MONEY.sub(lambda price: f"{dice.choice(words)} {price[0]}", text)


Mutation = Callable[[str, Random], str]


OF_ANY_TEXT: Mapping[str, Mutation] = {
    "other currency": in_other_currency,
    "Australian dollars": lambda text, dice: re.sub(r"(?:US ?)?\$", "A$", text),
    "per month": lambda text, dice: UNIT.sub("month", text),
    "no count": lambda text, dice: COUNT.sub("", text),
}
OF_PAGES: Mapping[str, Mutation] = {
    "letter in price": lambda text, dice: half_of(MONEY, text, dice, lambda price: f"{price[:-1]}O"),
    "spoiled price": lambda text, dice: half_of(MONEY, text, dice, lambda price: spoiled(price, dice)),
    "raised cents": lambda text, dice: half_of(CENTS, text, dice, lambda price: raised_cents(price, dice)),
    "letter in number": lambda text, dice: half_of(WHOLE_NUMBER, text, dice, lambda number: f"{number}O"),
    "rows missing": lambda text, dice: half_of(ROW, text, dice, lambda row: ""),
    "half a page": lambda text, dice: f"{text[: len(text) // 2]}>",
    "repeated rows": repeated_at_another_price,
    "starting price": starting_price,
}


def changed_in_text(source: str, name: str) -> list[Answer] | None:
    """The sample pages with their text changed; None if nothing changes."""
    mutation = OF_ANY_TEXT.get(name) or OF_PAGES[name]
    dice = Random(f"{source} {name}")
    pages = [
        page
        if page.is_json and name in OF_PAGES
        else replace(page, body=mutation(page.text(), dice).encode())
        for page in sample_answers(source)
    ]
    return None if pages == list(sample_answers(source)) else pages


def test_a_text_that_changes_leads_to_no_wrong_offer() -> None:
    wrong, changed = {}, Counter()
    kept = defaultdict(set)
    for source in PRICE_SOURCES:
        for name in (*OF_ANY_TEXT, *OF_PAGES):
            pages = changed_in_text(source, name)
            changed[name] += pages is not None
            built = read(source, pages)
            if built and ranked(built):
                kept[name].add(source)
            if found := wrong_offers(built):
                wrong[f"{source} {name}"] = found
    assert wrong == {}
    elsewhere = EXPECTED["stated_elsewhere"]
    assert {name: sorted(kept[name]) for name in elsewhere} == elsewhere
    assert {name: of for name, of in changed.items() if of < 5} == {}
