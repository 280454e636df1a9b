"""Answers mangled at random: a reader refuses them or reads them, and never breaks or yields nonsense."""

import json
import random
from decimal import Decimal

import pytest

from pipeline.contracts.listing import SourceChangedError
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
ROUNDS = 150


def mangle(node, chance, dice):
    if dice.random() < chance:
        return dice.choice(NONSENSE)
    if isinstance(node, dict):
        kept = {k: mangle(v, chance, dice) for k, v in node.items() if dice.random() > chance}
        return kept | ({"extra": dice.choice(NONSENSE)} if dice.random() < chance else {})
    if isinstance(node, list):
        return [mangle(item, chance, dice) for item in node]
    return node


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
        assert listings or rejects
        for row in listings:
            assert isinstance(row.native_price, Decimal)
            assert row.native_price > 0
            assert row.gpu_count is None or row.gpu_count > 0
            assert row.raw_label
    assert read_rounds > 5 or name.startswith("availability")
