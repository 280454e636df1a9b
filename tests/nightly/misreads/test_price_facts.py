"""The gates against dated prices of many providers: how many good ones they would hold or flag.

Skipped where the file of facts is not at hand.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from pipeline.catalog.source_config import configs
from pipeline.catalog.tables import catalog_rows
from pipeline.contracts.offer import Offer
from pipeline.gates.contradictions import flag_contradictions
from pipeline.gates.history import History
from pipeline.gates.judge import screen
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.warehouse.database import in_memory
from pipeline.warehouse.marts import fill
from tests.nightly.misreads.price_facts import (
    MARKETPLACES,
    Fact,
    bounds,
    facts_file,
    max_inversion,
    read_facts,
)
from tests.nightly.misreads.world import GATES, FalseAlarms
from tests.offers.builders import offer

FACTS = facts_file()

pytestmark = pytest.mark.skipif(FACTS is None, reason="the file of dated prices is not at hand")

MAX_FALSE_ALARMS = 0.01
"""Largest share of good offers that may be stopped."""


@pytest.fixture(scope="module")
def facts() -> Sequence[Fact]:
    """Those of sources that we read, without copies of one price in several files."""
    assert FACTS is not None
    found = [fact for fact in read_facts(FACTS) if fact.source in configs()]
    return list({replace(fact, origin=""): fact for fact in found}.values())


def as_offer(fact: Fact) -> Offer:
    usd = round(fact.usd_per_gpu_hour, 8)
    same = ("source", "gpu_id", "gpu_count", "price_kind", "term_days", "region")
    return offer(
        **{name: getattr(fact, name) for name in same},
        provider=configs()[fact.source].provider,
        raw_label=fact.label,
        tier="marketplace" if fact.source in MARKETPLACES else fact.tier,
        native_price=usd,
        usd_per_gpu_hour=usd,
        usd_per_hour=usd * Decimal(str(fact.gpu_count)),
        observed_at=datetime.combine(date.fromisoformat(fact.day), datetime.min.time(), UTC),
    )


def by_day(facts: Sequence[Fact]) -> Mapping[str, Mapping[str, list[Offer]]]:
    days: dict[str, dict[str, list[Offer]]] = defaultdict(lambda: defaultdict(list))
    for fact in facts:
        days[fact.day][fact.source].append(as_offer(fact))
    return days


def test_the_bounds_and_the_largest_inversion_are_those_of_the_facts() -> None:
    """python -m tests.nightly.misreads.price_facts PRICE_FACTS.csv > catalog/gpu_price_bounds.csv"""
    assert FACTS is not None
    assert catalog_rows("gpu_price_bounds.csv") == bounds(read_facts(FACTS))
    assert max_inversion(read_facts(FACTS)) == THRESHOLDS.max_inversion


def test_good_offers_of_real_days_pass(facts: Sequence[Fact]) -> None:
    counts: Counter[str] = Counter()
    for day, sources in by_day(facts).items():
        published: list[Offer] = []
        for source, offers in sources.items():
            flagged = flag_contradictions(offers, configs()[source])
            counts.update(str(each.flag_reason) for each in flagged if each.flag_reason in GATES)
            screened = screen(flagged, History(), configs()[source], date.fromisoformat(day))
            counts.update(reject.reason.value for reject in screened.rejects)
            published += screened.offers
        counts += not_ranked(published, day)
    alarms = FalseAlarms(len(facts), counts)
    assert alarms.share <= MAX_FALSE_ALARMS, alarms


def not_ranked(offers: Sequence[Offer], day: str) -> Counter[str]:
    """By the comparison of all sources of the day."""
    with in_memory("offers_latest") as database:
        database.execute("SET VARIABLE as_of_day = ?", [date.fromisoformat(day)])
        names = list(Offer.model_fields)
        marks = ", ".join("?" for _ in names)
        database.executemany(
            f"INSERT INTO main.offers ({', '.join(names)}, day) VALUES ({marks}, ?)",
            [[*each.model_dump().values(), date.fromisoformat(day)] for each in offers],
        )
        fill(database, "offers_latest")
        reasons = database.execute("SELECT not_ranked_reason FROM main.offers_latest").fetchall()
    return Counter(reason for (reason,) in reasons if reason in GATES)
