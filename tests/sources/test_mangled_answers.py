"""Answers mangled at random: a reader refuses them or reads them, and never breaks or yields nonsense."""

import json
import random
import re
from decimal import Decimal

import pytest

from pipeline.contracts.listing import SourceChangedError
from pipeline.contracts.reject_reasons import RejectReason
from tests.sources.helpers import answer, page, read

PAGES = [
    ("runpod", "gpu_types.json"),
    ("aws", "on_demand_us-east-1.json"),
    ("aws", "spot.json"),
    ("azure", "page_1.json"),
    ("scaleway", "servers_fr-par-2.json"),
    ("scaleway", "availability_fr-par-2.json"),
]
NONSENSE = [
    None,
    True,
    -1,
    0,
    10**40,
    "",
    "N/A",
    "<b>",
    "1e999999",
    [],
    [[]],
    {},
    {"a": 1},
    ["x"],
    "ａ\u202e",
    0.1,
]
HTML_PAGES = [
    ("baseten", "pricing.html"),
    ("coreweave", "pricing.html"),
    ("crusoe", "pricing.html"),
    ("gcp", "accelerator-optimized.html"),
    ("hyperstack", "gpu-pricing.html"),
    ("jarvislabs", "pricing.html"),
    ("lambda", "pricing.html"),
    ("modal", "pricing.html"),
    ("nebius", "prices.html"),
    ("replicate", "pricing.html"),
    ("salad", "pricing.html"),
    ("thundercompute", "pricing.html"),
    ("together", "pricing.html"),
]
HTML_NONSENSE = ["", "$1.00", "€2", "$0.00", "-$3", "Contact us", "8", "1 year", "spot", "reserved", "</div>"]
ROUNDS = 150
HTML_ROUNDS = 12


def mangle(node, chance, dice):
    if dice.random() < chance:
        return dice.choice(NONSENSE)
    if isinstance(node, dict):
        kept = {k: mangle(v, chance, dice) for k, v in node.items() if dice.random() > chance}
        return kept | ({"extra": dice.choice(NONSENSE)} if dice.random() < chance else {})
    if isinstance(node, list):
        return [mangle(item, chance, dice) for item in node]
    return node


def mangle_html(text, changes, dice):
    """The page with some of its tags and texts dropped, replaced or swapped."""
    parts = re.split(r"(<[^>]*>)", text)
    for _ in range(changes):
        one, other = dice.randrange(len(parts)), dice.randrange(len(parts))
        if dice.random() < 0.5:
            parts[one] = dice.choice(HTML_NONSENSE)
        else:
            parts[one], parts[other] = parts[other], parts[one]
    return "".join(parts)


def check_rows(listings, rejects):
    assert listings or rejects
    for row in listings:
        assert isinstance(row.native_price, Decimal)
        assert row.native_price > 0
        assert row.gpu_count is None or row.gpu_count > 0
    for reject in rejects:
        assert reject.reason in set(RejectReason)
        assert reject.detail


@pytest.mark.parametrize(("source", "name"), PAGES)
def test_mangled_answers_are_refused_or_read(source, name):
    dice = random.Random(f"{source} {name}")
    whole = json.loads(page(source, name))
    read_rounds = 0
    for at in range(ROUNDS):
        mangled = mangle(whole, chance=0.002 * 2 ** (at % 7), dice=dice)
        try:
            listings, rejects = read(source, answer(mangled))
        except SourceChangedError:
            continue
        read_rounds += 1
        check_rows(listings, rejects)
        assert all(row.raw_label for row in listings)
    assert read_rounds > 5 or name.startswith("availability")


@pytest.mark.parametrize(("source", "name"), HTML_PAGES)
def test_mangled_pages_are_refused_or_read(source, name):
    dice = random.Random(f"{source} {name}")
    whole = page(source, name)
    read_rounds = 0
    for at in range(HTML_ROUNDS):
        try:
            listings, rejects = read(source, answer(mangle_html(whole, 2 ** (at % 6), dice)))
        except SourceChangedError:
            continue
        read_rounds += 1
        check_rows(listings, rejects)
    assert read_rounds > 1
