"""Acceptance of a day's reading as a whole."""

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline.contracts.offer import Built, Offer, RejectedRow
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gates.judge import judge
from pipeline.gates.reading import check_reading, why_grown, why_in_another_currency
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.home.paths import Home
from pipeline.record.records import Records
from tests.offers.builders import CAPTURED, config, offer


def test_a_reading_within_its_bounds_is_accepted() -> None:
    assert check_reading([offer()], config(rows_min=1), None).accepted


@pytest.mark.parametrize(
    ("offers", "expect", "last_rows", "why"),
    [
        ([], {}, None, "no offers"),
        ([offer()], {"rows_min": 2}, None, "fewer than the 2 expected"),
        ([offer()], {"must_have": ("l40s",)}, None, "l40s"),
        ([offer(raw_label=str(i)) for i in range(4)], {}, 9, "the last accepted reading had 9"),
        ([offer(), offer(region="eu")], {"fill_min": {"region": 0.9}}, None, "region is filled in 50%"),
    ],
)
def test_a_reading_out_of_bounds_is_refused_with_its_reason(
    offers: list[Offer], expect: dict[str, Any], last_rows: int | None, why: str
) -> None:
    verdict = check_reading(offers, config(**expect), last_rows)
    assert not verdict.accepted
    assert why in (verdict.reason or "")


def test_a_reading_without_offers_names_the_commonest_reject() -> None:
    rejects = [
        *(row.model_copy(update={"detail": "too dear"}) for row in outside_bounds(1)),
        *(
            row.model_copy(update={"reason": RejectReason.MISSING_FIELD, "detail": "without a price"})
            for row in outside_bounds(2)
        ),
    ]
    verdict = check_reading([], config(), None, rejects)
    assert verdict.reason == (
        "no offers were read; rejects: 3, missing_field: 2, for example: without a price"
    )


def test_too_many_rows_warn_and_are_accepted() -> None:
    verdict = check_reading([offer(), offer("3.00")], config(rows_max=1), None)
    assert verdict.accepted
    assert "more than the 1 expected" in verdict.warnings[0]


def outside_bounds(count: int) -> list[RejectedRow]:
    facts = {
        name: getattr(offer(), name) for name in ("source", "observed_at", "source_url", "capture_sha256")
    }
    return [RejectedRow(**facts, reason="price_out_of_bounds", detail="", raw={}) for _ in range(count)]


@pytest.mark.parametrize(("outside", "accepted"), [(1, True), (2, True), (3, False)])
def test_a_source_with_many_prices_out_of_bounds_was_misread(outside: int, accepted: bool) -> None:
    offers = [offer(raw_label=str(i)) for i in range(9)]
    verdict = check_reading(offers, config(), None, outside_bounds(outside))
    assert verdict.accepted is accepted
    assert accepted or "3 of 12 prices are not between" in (verdict.reason or "")


@pytest.mark.parametrize(
    ("page", "foreign"),
    [
        ("$2.00 $3.00 $4.00", None),
        ("€2,00 €3,00 €4,00", "3 amounts in EUR and 0 in USD"),
        ("2,00 € 3,00 € 4,00 €", "3 amounts in EUR"),
        ('{"currency": "EUR"} ' * 3, "EUR"),
        ("£2 £3 £4", "GBP"),
        ("€2,00 €3,00", None),  # too few to say so
        ("$1 $2 $3 and €1 €2 €3", None),  # as many of the expected
        ("2.00 3.00 4.00", None),
        ("EUR-IS-1 EUR-IS-2 EUR-NO-1 2.49", None),  # names of data centres
        ('{"currencies": "EUR, GBP and EUR or EUR", "price": 2.49}', None),  # what can be paid with
        ('"$1" "$2" €2,00 €3,00 €4,00', "3 amounts in EUR and 0 in USD"),  # references in a page's data
    ],
)
def test_a_page_in_another_currency_than_the_yamls_is_refused(page: str, foreign: str | None) -> None:
    reason = why_in_another_currency([replace(CAPTURED, body=page.encode())], config())
    assert (foreign in (reason or "")) if foreign else reason is None


@pytest.mark.parametrize(
    ("rows", "earlier", "grown"),
    [
        (300, [100] * 5, False),  # exactly three times
        (301, [100] * 5, True),
        (301, [100, 100, 100, 400, 400], True),  # the median counts
        (60, [10] * 5, False),  # a small list may grow
        (61, [10] * 5, True),
        (301, [], False),
    ],
)
def test_a_source_that_grows_at_once_is_refused(rows: int, earlier: list[int], grown: bool) -> None:
    last, today = date(2026, 8, 21), date(2026, 8, 22)
    assert (why_grown(rows, earlier, last, today) is not None) is grown


def test_growth_that_lasts_is_believed() -> None:
    last = date(2026, 8, 21)
    assert why_grown(301, [100], last, last + timedelta(days=THRESHOLDS.held_days - 1)) is not None
    assert why_grown(301, [100], last, last + timedelta(days=THRESHOLDS.held_days)) is None


def test_a_required_card_that_is_held_is_named_and_the_rest_is_accepted(tmp_path: Path) -> None:
    """Refusing the source would take away good prices for one that is in doubt."""
    records, expect = Records(Home(tmp_path)), config(must_have=("h100-sxm-80gb",))
    others = [offer(f"{number}.50", raw_label=f"other {number}", gpu_id=None) for number in (5, 6, 7)]
    day = date(2026, 8, 22)
    records.write_accepted(day, "acme", [offer("2.00"), *others])
    today = Built([offer("9.00"), *others], [])
    built, acceptance = judge(today, [], expect, day + timedelta(days=1), records)
    assert acceptance.accepted
    assert built.offers == others
    assert acceptance.warnings == ("held, though this source always has it: h100-sxm-80gb",)
    gone = judge(Built(others, []), [], expect, day + timedelta(days=1), records)[1]
    assert gone.reason == "missing cards that this source always has: h100-sxm-80gb"
