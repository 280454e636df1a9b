"""The decision on a whole reading: refused with its reason, or accepted without the held prices."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer
from pipeline.contracts.offer import Built, Offer
from pipeline.contracts.reject_reasons import FlagReason
from pipeline.gates.history import accepted_counts
from pipeline.gates.judge import judge
from pipeline.gates.reading import Acceptance
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.home.paths import Home
from pipeline.record.records import Records
from tests.gates.screening import DAY, H100, YESTERDAY
from tests.gates.test_reading import outside_bounds
from tests.offers.builders import CAPTURED, config, offer
from tests.record.builders import outcome

OTHERS = [offer(f"{number}.50", raw_label=f"other {number}", gpu_id=None) for number in (5, 6, 7)]


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(Home(tmp_path))


def judged(
    records: Records,
    offers: Sequence[Offer],
    expect: SourceConfig | None = None,
    day: date = DAY,
    answers: Sequence[Answer] = (),
    outside: int = 1,
    **more: Any,
) -> tuple[Built, Acceptance]:
    built = Built(list(offers), outside_bounds(outside), ["a warning of the reader"])
    return judge(built, answers, expect or config(), day, records, **more)


def test_a_required_card_that_is_held_is_named_and_the_rest_is_accepted(records: Records) -> None:
    """Refusing the source would take away good prices for one that is in doubt."""
    expect = config(must_have=(H100,), rows_max=3)
    records.write_accepted(YESTERDAY, "acme", [offer("2.00"), *OTHERS])
    built, acceptance = judged(records, [offer("9.00"), *OTHERS], expect)
    held = f"held, though this source always has it: {H100}"
    warnings = ("4 offers, more than the 3 expected", "a warning of the reader", held)
    assert acceptance == Acceptance(True, warnings=warnings)
    assert built.offers == OTHERS
    assert [row.reason for row in built.rejects] == ["price_out_of_bounds", "price_jump"]
    built, acceptance = judged(records, OTHERS, expect)
    missing = f"missing cards that this source always has: {H100}"
    assert acceptance == Acceptance(False, missing, ("a warning of the reader",))
    assert (built.offers, len(built.rejects)) == (OTHERS, 1)


def test_why_a_reading_is_refused(records: Records) -> None:
    """Also for prices that most are not believed of; then the held ones are rejects as well."""
    records.write_accepted(YESTERDAY, "acme", [offer("2.00", region=f"{n}") for n in range(4)])
    records.write_outcome(outcome(YESTERDAY, rows=4))
    euros = [replace(CAPTURED, body=b"\xe2\x82\xac2 \xe2\x82\xac3 \xe2\x82\xac4")]
    small, many = [offer("2.00", region="1")], [offer("2.00", region=f"{n}") for n in range(55)]
    reasons = {
        "small": judged(records, small, answers=euros)[1].reason,
        "foreign": judged(records, many, answers=euros)[1].reason,
        "grown": judged(records, many)[1].reason,
        "usual": judged(records, many[:54])[1].reason,
        "outside": judged(records, OTHERS, outside=2)[1].reason,
        "too few": judged(records, many[:8], config(rows_min=9))[1].reason,
    }
    assert reasons == {
        "small": "1 offers, while the last accepted reading had 4",
        "foreign": "https://acme.example/prices shows 3 amounts in EUR and 0 in USD, the currency of acme",
        "grown": "55 offers where the last 1 accepted readings had 4",
        "usual": None,
        "outside": "2 of 5 prices are not between 0.01 and 40 USD per GPU-hour, as expected of this source",
        "too few": "8 offers, fewer than the 9 expected",
    }
    built, acceptance = judged(records, [offer("9.00", region=f"{n}") for n in range(4)])
    assert not acceptance.accepted
    assert (acceptance.reason or "").startswith("4 of 4 compared prices are not believed (price_jump)")
    assert (built.offers, len(built.rejects)) == ([], 5)


def test_a_reading_that_lacks_answers_is_compared_for_some_days(records: Records) -> None:
    """The missing answers may never come back."""
    last = DAY - timedelta(days=THRESHOLDS.held_days)
    records.write_accepted(last, "acme", OTHERS)
    few = OTHERS[:1]
    refused = "1 offers, while the last accepted reading had 3"
    _, accepted = judged(records, few, lacks_answers=True)
    assert accepted == Acceptance(
        True, warnings=("a warning of the reader", f"{refused}, on 2026-08-17: not all requests are answered")
    )
    assert judged(records, few)[1].reason == refused
    assert judged(records, few, day=DAY - timedelta(days=1), lacks_answers=True)[1].reason == refused
    assert judged(records, OTHERS, lacks_answers=True)[1].warnings == ("a warning of the reader",)


def test_the_market_releases_a_jump(records: Records) -> None:
    for day, price in ((YESTERDAY, "2.00"), (DAY, "8.00")):
        records.write_accepted(day, "lambda", [offer(price, source="lambda")])
    records.write_accepted(YESTERDAY, "acme", [offer("2.00"), *OTHERS])
    built, _ = judged(records, [offer("8.00"), *OTHERS])
    assert built.offers == [offer("8.00"), *OTHERS]


def test_imported_prices_are_flagged_and_compared_with_nothing(records: Records) -> None:
    """None of them is ranked. Their files are checked as any reading."""
    imported = config(rows_min=2, rows_max=2).model_copy(update={"kind": "imported"})
    records.write_accepted(YESTERDAY, "acme", [offer("2.00", region=f"{n}") for n in range(20)])
    now = [offer("9.00"), offer("9.00", flag_reason=FlagReason.UNEVEN_PRICES), offer("1.00", region="eu")]
    built, acceptance = judged(records, now, imported)
    warnings = ("3 offers, more than the 2 expected", "a warning of the reader")
    assert acceptance == Acceptance(True, warnings=warnings)
    flags = [FlagReason.IMPORTED, FlagReason.UNEVEN_PRICES, FlagReason.IMPORTED]
    assert built.offers == [o.model_copy(update={"flag_reason": f}) for o, f in zip(now, flags, strict=True)]
    assert (built.rejects, built.warnings) == (outside_bounds(1), ["a warning of the reader"])
    refused = judged(records, now[:1], imported)[1]
    assert refused == Acceptance(False, "1 offers, fewer than the 2 expected", ("a warning of the reader",))


def test_the_usual_number_of_offers_is_that_of_the_last_accepted_days(records: Records) -> None:
    """The best attempt of each day counts, and neither refused attempts nor days without offers do."""
    for age in range(1, THRESHOLDS.growth_days + 3):
        day = DAY - timedelta(days=age)
        records.write_accepted(day, "acme", [offer()])
        records.write_outcome(outcome(day, rows=10 + age))
        records.write_outcome(outcome(day, rows=age, hour=12))
        records.write_outcome(outcome(day, rows=99, hour=13, accepted=False))
    records.write_accepted(DAY, "acme", [offer()])
    records.write_outcome(outcome(DAY, rows=0))
    week = [10 + age for age in range(THRESHOLDS.growth_days, 0, -1)]
    assert accepted_counts(records, "acme", DAY) == week
    assert accepted_counts(records, "acme", DAY + timedelta(days=1)) == week[1:]
