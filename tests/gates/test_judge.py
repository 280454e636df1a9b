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
from pipeline.gates.reviews import Review, Reviews
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.home.paths import Home
from pipeline.record.records import Records
from tests.gates.screening import DAY, H100, YESTERDAY, offers_in, reviewed
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
    before = offer("2.00")
    records.write_accepted(YESTERDAY, "acme", [before, *OTHERS])
    built, acceptance = judged(records, [offer("9.00"), *OTHERS], expect)
    held = f"held, though this source always has it: {H100}"
    warnings = ("4 offers, more than the 3 expected", "a warning of the reader", held)
    assert acceptance == Acceptance(True, warnings=warnings)
    stays = before.model_copy(update={"doubt": "price_too_far", "believed_on": YESTERDAY})
    assert built.offers == [*OTHERS, stays]
    assert [row.reason for row in built.rejects] == ["price_out_of_bounds", "price_too_far"]
    built, acceptance = judged(records, OTHERS, expect)
    missing = f"missing cards that this source always has: {H100}"
    assert acceptance == Acceptance(
        False,
        missing,
        ("a warning of the reader",),
        ("3 offers, where 4 are usual", f"{H100}: 0 offers, where 1 are usual"),
    )
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
        "small": "1 offers, where 4 are usual",
        "foreign": "https://acme.example/prices shows 3 amounts in EUR and 0 in USD, the currency of acme",
        "grown": "55 offers, where 4 are usual",
        "usual": None,
        "outside": "2 of 5 prices are not between 0.01 and 40 USD per GPU-hour, as expected of this source",
        "too few": "8 offers, fewer than the 9 expected",
    }
    built, acceptance = judged(records, [offer("9.00", region=f"{n}") for n in range(4)])
    assert not acceptance.accepted
    assert (acceptance.reason or "").startswith("4 of 4 compared prices are not believed (most_prices_moved)")
    assert ({each.doubt for each in built.offers}, len(built.rejects)) == ({"most_prices_moved"}, 5)


def test_a_reading_that_lacks_answers_is_refused_for_some_days(records: Records) -> None:
    """The missing answers may never come back."""
    last = DAY - timedelta(days=THRESHOLDS.unanswered_days)
    records.write_accepted(last, "acme", OTHERS)
    few = OTHERS[:1]
    lost = "1 offers, where 3 are usual"
    _, accepted = judged(records, few, lacks_answers=True)
    assert accepted == Acceptance(True, warnings=("a warning of the reader",), lost=(lost,))
    assert judged(records, few)[1].reason == lost
    assert judged(records, few, day=DAY - timedelta(days=1), lacks_answers=True)[1].reason == lost
    assert judged(records, OTHERS, lacks_answers=True)[1].lost == ()


def test_a_first_reading_that_contradicts_itself_is_refused(records: Records) -> None:
    """Later readings are compared with it price by price."""
    flagged = [*OTHERS, offer("2.00", flag_reason=FlagReason.OLDER_GPU_DEARER)]
    why = "the first reading contradicts itself (1 older_gpu_dearer): a column was probably misread"
    assert judged(records, flagged)[1].reason == why
    assert judged(records, [*OTHERS, offer(flag_reason=FlagReason.UNEVEN_PRICES)])[1].accepted
    records.write_accepted(YESTERDAY, "acme", OTHERS)
    assert judged(records, flagged)[1].accepted


def test_a_persons_word_on_a_reading(records: Records) -> None:
    """It counts for the answers that the person saw, and what was usual before no longer is."""
    records.write_accepted(YESTERDAY, "acme", OTHERS)

    def verdict(*reviews: tuple[str, str], day: date = DAY, sha256: str = "a") -> str | None:
        found = Reviews([Review(source="acme", day=DAY, verdict=word, sha256=of) for word, of in reviews])
        return judged(records, OTHERS[:1], day=day, reviews=found, sha256=sha256)[1].reason

    lost = "1 offers, where 3 are usual"
    assert verdict(("believed", "a")) is None
    assert (
        verdict(("refused", "a"))
        == verdict(("believed", "a"), ("refused", "a"))
        == ("a person refused this reading")
    )
    assert verdict(("refused", "b")) == verdict() == lost
    records.write_accepted(DAY, "acme", OTHERS[:1])
    later = DAY + timedelta(days=1)
    assert verdict(day=later, sha256="c") == "1 offers, where 2 are usual"
    assert verdict(("believed", "a"), day=later, sha256="c") is None
    nothing = judged(records, [], reviews=Reviews([Review(source="acme", day=DAY, verdict="believed")]))
    assert (nothing[1].reason or "").startswith("no offers were read")


def test_prices_that_a_person_refused_do_not_refuse_the_others(records: Records) -> None:
    records.write_accepted(YESTERDAY, "acme", OTHERS)
    reviews = Reviews([reviewed(each, "refused") for each in OTHERS[:2]])
    built, acceptance = judged(records, OTHERS, reviews=reviews)
    assert (acceptance.accepted, [each.doubt for each in built.offers]) == (
        True,
        [None, "refused_by_a_person", "refused_by_a_person"],
    )


def test_other_sources_that_moved_alike_release_a_price(records: Records) -> None:
    for source in ("lambda", "crusoe"):
        for day, price in ((YESTERDAY, "2.00"), (DAY, "8.00")):
            records.write_accepted(day, source, [offer(price, source=source)])
    records.write_accepted(YESTERDAY, "acme", [offer("2.00"), *OTHERS])
    built, _ = judged(records, [offer("8.00"), *OTHERS])
    assert built.offers == [offer("8.00", believed_because="market"), *OTHERS]


def test_a_currency_that_the_source_is_not_known_to_ask(records: Records) -> None:
    """A first price is rejected; a price that cost as much in dollars before is believed, also on a page
    whose amounts are all in that currency."""
    page = [replace(CAPTURED, body=b"\xe2\x82\xac2 \xe2\x82\xac3 \xe2\x82\xac4")]
    euros = offers_in("1.71 native_currency=EUR usd=2.00 | 1.71 native_currency=EUR usd=2.00 region=eu")
    records.write_accepted(YESTERDAY, "acme", [offer("2.00")])
    built, acceptance = judged(records, euros, answers=page)
    assert acceptance.accepted
    assert built.offers == [euros[0].model_copy(update={"believed_because": "same_amount"})]
    (rejected,) = built.rejects[1:]
    assert (rejected.reason, rejected.detail) == (
        "unexpected_currency",
        "'H100 SXM' is in EUR; acme is expected to ask USD",
    )


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
