"""Money with something glued to it is refused whole, never read up to what still looks like a price."""

import random
import re
from decimal import Decimal

import pytest

from pipeline.contracts.listing import Listing, SourceChangedError
from pipeline.parsing.prices import RowError, cell_price
from pipeline.parsing.text import MONEY_IN_TEXT, clean_text
from tests.sources.helpers import answer, page, read

HTML_PAGES = [
    ("baseten", "pricing.html"),
    ("civo", "pricing.html"),
    ("coreweave", "pricing.html"),
    ("crusoe", "pricing.html"),
    ("gcp", "accelerator-optimized.html"),
    ("hotaisle", "pricing.html"),
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

GLUED = [
    "A$1.39",
    "R$1.39",
    "$1.3O",
    "$1,3O",
    "$1.39x",
    "$1.39.5",
    "$1..39",
    "$1. 39",
    "$1 ,39",
    "$1.39–2.49",
    "$1.39 – $2.49",
    "$1.39-hr",
    "$1.39k",
    "$1.39e3",
    "$1.39%",
    "$1.39+",
    "$1.39€",
    "$1.39$2.49",
    "$1'399",
    "$1½",
    "$O.39",
    "$.39",
    "$-1.39",
    "$١.٣٩",
    "$1.3९",
    "$1.39/2.49",
]


def prices_in(text: str) -> list[Decimal]:
    """Return the prices that a reader of running text finds."""
    found = []
    for money in re.findall(rf"{MONEY_IN_TEXT}(?:/\S+)?", clean_text(text)):
        try:
            found.append(cell_price(money)[0])
        except RowError:
            continue
    return found


@pytest.mark.parametrize("text", GLUED)
@pytest.mark.parametrize("around", ["{}", "L4 · 24 GB {} on demand", "({})", "{}.", "{}, spot"])
def test_glued_money_is_not_a_price(text: str, around: str) -> None:
    assert prices_in(around.format(text)) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$1.39", "1.39"),
        ("at $1.39, and more", "1.39"),
        ("$1.39. Then", "1.39"),
        ("($1.39)", "1.39"),
        ("$1.39|", "1.39"),
        ("$ 1.39 / hr", "1.39"),
        ("$1 .39", "1.39"),
        ("$1,399.00", "1399.00"),
        ("$1.39①", "1.39"),
        ("$1.39₁", "1.39"),
        ("$1.39 - 8 GPUs", "1.39"),
        ("$1.39·80 GB", "1.39"),
    ],
)
def test_money_ends_where_it_surely_ends(text: str, expected: str) -> None:
    assert prices_in(text) == [Decimal(expected)]


SHOWN = re.compile(r"(?<=>)(\s*)\$ ?\d[\d,]*\.\d+(?=[^<]*<)")


@pytest.mark.parametrize(("source", "name"), HTML_PAGES)
def test_no_reader_mistakes_a_glued_price_for_another(source: str, name: str) -> None:
    """On each page, one price at a time is replaced; no price appears that the page did not have before."""
    original = page(source, name)
    known = prices_of(source, original)
    shown = list(SHOWN.finditer(original))
    dice = random.Random(source)
    for text in GLUED:
        at = dice.choice(shown)
        mangled = original[: at.start()] + text + original[at.end() :]
        assert prices_of(source, mangled) <= known, (text, original[at.start() - 80 : at.end()])


def prices_of(source: str, text: str) -> set[tuple[object, ...]]:
    try:
        listings, _ = read(source, answer(text))
    except SourceChangedError:
        return set()
    return {_identity(row) for row in listings}


def _identity(row: Listing) -> tuple[object, ...]:
    return row.raw_label, row.gpu_count, row.price_kind, row.term_days, row.tier, row.native_price


@pytest.mark.parametrize("source", ["jarvislabs", "thundercompute", "baseten", "modal", "replicate", "salad"])
def test_the_row_of_a_glued_price_is_a_reject(source: str) -> None:
    """It does not vanish: the offers that are missing are rejects with a reason."""
    original = page(source, "pricing.html")
    before, rejected_before = read(source, answer(original))
    lost = 0
    for at in list(SHOWN.finditer(original))[:12]:
        amount = at[0].strip()
        mangled = original[: at.start()] + at[1] + amount[:-1] + "O" + original[at.end() :]
        listings, rejects = read(source, answer(mangled))
        assert len(listings) + len(rejects) >= len(before) + len(rejected_before), amount
        lost += len(before) - len(listings)
    assert lost > 0


@pytest.mark.parametrize("glued", ["1O", "1x", "1/8O", "1/8/2", "1.O", "1,O"])
def test_a_glued_number_of_gpus_is_not_cut_short(glued: str) -> None:
    """Google Cloud's cells ("GPUs: 1 vCPUs: 12 Memory: 170GiB") name a machine's parts as running text."""
    from pipeline.parsing.text import UnreadableError
    from pipeline.sources.gcp import _components

    assert _components("GPUs: 1/8 vCPUs: 6 Memory: 22GiB") == {"gpus": 0.125, "vcpus": 6, "memory": 22}
    with pytest.raises(UnreadableError):
        _components(f"GPUs: {glued} vCPUs: 12 Memory: 170GiB")


DECIMALS = re.compile(r"(?<=>)(\s*\$ ?\d[\d,]*)\.(\d\d)(?!\d)(?=[^<]*<)")


@pytest.mark.parametrize(("source", "name"), HTML_PAGES)
@pytest.mark.parametrize("cents", ["<sup>{}</sup>", "<sup>.{}</sup>", ".<sup>{}</sup>", "<sup> {} </sup>"])
def test_cents_as_a_superscript_are_not_dropped_as_a_footnote(source: str, name: str, cents: str) -> None:
    original = page(source, name)
    known = prices_of(source, original)
    for found in list(DECIMALS.finditer(original))[:6]:
        shown = f"{found[1]}{cents.format(found[2])}"
        mangled = original[: found.start()] + shown + original[found.end() :]
        assert prices_of(source, mangled) <= known, shown


def test_a_footnote_is_dropped_as_ever() -> None:
    from bs4 import BeautifulSoup

    from pipeline.parsing.html import text_of
    from pipeline.parsing.text_blocks import visible_texts

    for markup in ("<p>$1.39<sup>1</sup></p>", "<p>$1.39<sup>12</sup></p>", "<p>$2<sup>1</sup></p>"):
        soup = BeautifulSoup(markup, "lxml")
        assert text_of(soup) == visible_texts(soup)[0] == markup[3:].partition("<")[0]
    soup = BeautifulSoup("<p>H100 $1<sup>39</sup> / hr</p>", "lxml")
    assert text_of(soup) == "H100 $1~39 / hr"
    assert visible_texts(soup) == ["H100", "$1~39", "/ hr"]
