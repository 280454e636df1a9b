"""Mutated sample pages of every source: never a crash, and no price that its own page does not say.

`make stress` reads 10,000 pages per source with other seeds; docs/explanation/stress.md has its figures.
"""

import json
import re
from decimal import Decimal

import pytest

from pipeline.catalog.source_config import configs
from pipeline.contracts.offer import Offer
from pipeline.refresh.ingest import read_answers
from tests.nightly.fuzz.oracle import findings
from tests.nightly.fuzz.run import RATES, SOURCES, fuzz, page_of, sample_answers, sample_currencies
from tests.sources.helpers import answer

PAGES_PER_SOURCE = 30
SLOWEST_SECONDS = 10
"""Far above what a reader needs (0.03 s), so that a busy machine is not taken for a hang."""
MEMORY_MIB = 400


@pytest.mark.parametrize("source", SOURCES)
def test_mutated_pages_are_refused_or_read_right(source: str) -> None:
    tally = fuzz(source, range(PAGES_PER_SOURCE), seed="make test")
    assert tally.crashes == []
    assert tally.findings == []
    assert tally.slowest_seconds < SLOWEST_SECONDS, f"page {tally.slowest}"
    assert tally.peak_growth_mib < MEMORY_MIB
    # Mutations that leave nothing to read, or nothing changed, would test nothing.
    assert tally.accepted > PAGES_PER_SOURCE / 5
    assert tally.unchanged < PAGES_PER_SOURCE / 3


def test_a_number_always_gives_the_same_page() -> None:
    assert page_of("aws", 7, "a") == page_of("aws", 7, "a")
    assert len({str(page_of("aws", number, "a")) for number in range(30)}) > 20


# ------------------------------------------------------------------ the oracle sees what it is for


def offers_of(source: str) -> list[Offer]:
    return read_answers(sample_answers(source), configs()[source], RATES).offers


def kinds(source: str, offers: list[Offer], old: str = "", new: str = "") -> set[str]:
    """The kinds of findings among offers, on the sample page with ``old`` replaced by ``new``."""
    pages = []
    for page in sample_answers(source):
        text = page.body.decode()
        pages.append(answer(re.sub(old, new, text) if old else text))
    assert not old or any(
        page.body != sample.body for page, sample in zip(pages, sample_answers(source), strict=True)
    )
    return {found.kind for found in findings(offers, pages, configs()[source], sample_currencies(source))}


@pytest.mark.parametrize("source", [name for name in SOURCES if configs()[name].kind == "prices"])
def test_nothing_is_wrong_with_a_sample_page(source: str) -> None:
    assert offers_of(source)
    assert kinds(source, offers_of(source)) == set()


@pytest.mark.parametrize(
    "glued", ["1.4O", "1.49O", "1.49.5", "1..49", "x1.49", "1.49-1.59", "1.49%", "-1.49", "A$1.49", "1,49"]
)
def test_partly_read_price_is_detected(glued: str) -> None:
    assert kinds("jarvislabs", offers_of("jarvislabs"), r"(?<=\$)1\.49", glued) == {"price"}


@pytest.mark.parametrize(
    "whole",
    [
        "1 .49",
        "1.490",
        "<b>1</b>.49",
        "1.49<sup>2</sup>",
        "1.49²",
        "1.49 USD",
        "<sup></td><td>1.49</td><td>x<sup>1</sup>",
    ],
)
def test_other_spellings_of_a_price_are_not_findings(whole: str) -> None:
    assert kinds("jarvislabs", offers_of("jarvislabs"), r"(?<=\$)1\.49", whole) == set()


def test_a_price_under_a_repeated_key_is_seen() -> None:
    text = json.dumps({"results": [{"gpu_price_ethernet": "1.77"}]}).replace(
        '"1.77"', '"5.55", "gpu_price_ethernet": "1.77"'
    )
    (offer, *_) = offers_of("voltagepark")
    offer = offer.model_copy(update={"native_price": Decimal("1.77"), "gpu_count": 1})
    config, currencies = configs()["voltagepark"], sample_currencies("voltagepark")
    assert [f.kind for f in findings([offer], [answer(text)], config, currencies)] == ["price"]
    once = text.replace('"5.55", "gpu_price_ethernet": ', "")
    assert findings([offer], [answer(once)], config, currencies) == []


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"gpu_count": 18_000}, "count"),
        ({"gpu_count": 7}, "count"),
        ({"gpu_count": 0.3}, "count"),
        ({"native_currency": "GBP"}, "currency"),
        ({"native_price": Decimal("1.7654321")}, "price"),
    ],
)
def test_another_count_currency_or_price_is_seen(change: dict[str, object], kind: str) -> None:
    first, *others = offers_of("voltagepark")
    assert kinds("voltagepark", [first.model_copy(update=change), *others]) == {kind}


def test_prices_out_of_order_are_seen() -> None:
    offers = offers_of("gcp")
    dearest = max(offer.native_price for offer in offers)
    reserved = next(
        offer for offer in offers if offer.price_kind == "reserved" and offer.native_price < dearest / 2
    )
    assert kinds("gcp", [*offers, reserved.model_copy(update={"native_price": dearest})]) == {"order"}
