"""Mutated sample pages of every source: never a crash, and no price that its own page does not say."""

import re
from decimal import Decimal

import pytest

from pipeline.catalog.source_config import configs
from pipeline.contracts.offer import Offer
from pipeline.refresh.ingest import read_answers
from tests.nightly.fuzz.oracle import findings
from tests.nightly.fuzz.run import RATES, SOURCES, fuzz, page_of, sample_answers, sample_currencies
from tests.nightly.stress.homes import ALL, SEED
from tests.sources.helpers import PRICE_SOURCES, answer

PAGES, PAGES_PER_RUN = (10_000, 1_000) if ALL else (150, 150)
SLOWEST_SECONDS = 20
"""Far above what a reader needs (0.03 s), so that a busy machine is not taken for a hang."""
MEMORY_MIB = 500


@pytest.mark.parametrize("start", range(0, PAGES, PAGES_PER_RUN))
@pytest.mark.parametrize("source", SOURCES)
def test_mutated_pages_are_refused_or_read_right(source: str, start: int) -> None:
    assert page_of(source, start, SEED) == page_of(source, start, SEED)
    tally = fuzz(source, range(start, start + PAGES_PER_RUN), seed=SEED)
    assert tally.crashes == []
    assert tally.findings == []
    assert tally.slowest[0] < SLOWEST_SECONDS, tally.slowest
    assert tally.peak_growth_mib < MEMORY_MIB
    # Mutations that leave nothing to read, or nothing changed, would test nothing.
    assert tally.accepted > PAGES_PER_RUN / 5
    assert tally.unchanged < PAGES_PER_RUN / 3


# ------------------------------------------------------------------ the oracle sees what it is for


def offers_of(source: str) -> list[Offer]:
    return read_answers(sample_answers(source), configs()[source], RATES).offers


def kinds(source: str, offers: list[Offer], old: str = "$^", new: str = "") -> set[str]:
    """The kinds of findings among offers, on the sample page with ``old`` replaced by ``new``."""
    answers = [answer(re.sub(old, new, page.body.decode())) for page in sample_answers(source)]
    found = findings(offers, answers, configs()[source], sample_currencies(source))
    return {each.split(":")[0] for each in found}


def test_nothing_is_wrong_with_a_sample_page() -> None:
    assert [source for source in PRICE_SOURCES if kinds(source, offers_of(source))] == []


def test_a_price_that_is_read_in_part_is_a_finding_and_another_spelling_is_none() -> None:
    glued = ("1.4O", "1.49O", "1.49.5", "1..49", "x1.49", "1.49-1.59", "1.49%", "-1.49", "A$1.49", "1,49")
    whole = (
        "1 .49", "1.490", "<b>1</b>.49", "1.49<sup>2</sup>", "1.49²", "1.49 USD",
        "<sup></td><td>1.49</td><td>x<sup>1</sup>",
    )  # fmt: skip
    offers = offers_of("jarvislabs")
    found = {text: kinds("jarvislabs", offers, r"(?<=\$)1\.49", text) for text in (*glued, *whole)}
    assert found == {text: {"price"} if text in glued else set() for text in found}


def test_another_count_currency_or_price_is_seen_and_one_under_a_repeated_key() -> None:
    first, *others = offers_of("linode")
    for kind, column, values in (
        ("count", "gpu_count", (18_000, 7, 0.3)),
        ("currency", "native_currency", ("GBP",)),
        ("price", "native_price", (Decimal("1.7654321"),)),
    ):
        for value in values:
            assert kinds("linode", [first.model_copy(update={column: value}), *others]) == {kind}
    assert kinds("linode", [first, *others], r'("hourly"): ?[\d.]+', r'\g<0>, \1: "5.55"') == {"price"}
