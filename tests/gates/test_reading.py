"""Acceptance of a day's reading as a whole: every bound on both sides and exactly on it."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from pipeline.catalog.source_config import source_config
from pipeline.contracts.offer import Offer, RejectedRow
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gates.reading import Acceptance, check_reading, why_grown, why_in_another_currency
from tests.gates.screening import rows
from tests.offers.builders import CAPTURED, config, offer
from tests.record.builders import reject


def offers(count: int, filled: int = 0) -> list[Offer]:
    return [offer(raw_label=f"card {n}", region="eu" if n < filled else None) for n in range(count)]


def outside_bounds(count: int, reason: str = "price_out_of_bounds", detail: str = "") -> list[RejectedRow]:
    return [reject(reason=RejectReason(reason), detail=detail, raw={})] * count


def why(read: list[Offer], **expect: Any) -> str | None:
    """Return why a reading is refused; None if it is accepted without a warning."""
    acceptance = check_reading(read, config(**expect))
    assert acceptance == Acceptance(acceptance.reason is None, acceptance.reason)
    return acceptance.reason


def test_the_size_of_a_reading() -> None:
    assert why(offers(5), rows_min=5) is why(offers(6), rows_min=5) is None
    assert why(offers(4), rows_min=5) == "4 offers, fewer than the 5 expected"
    assert why([]) == "no offers were read"
    assert check_reading(offers(5), config(rows_max=5)) == Acceptance(True)
    too_many = ("6 offers, more than the 5 expected",)
    assert check_reading(offers(6), config(rows_max=5)) == Acceptance(True, warnings=too_many)


def test_the_completeness_of_a_reading() -> None:
    missing = "missing cards that this source always has: a10, l40s"
    assert why(offers(1), must_have=("l40s", "h100-sxm-80gb", "a10")) == missing
    assert why(offers(10, filled=7), fill_min={"region": 0.7, "raw_label": 1}) is None
    few = "region is filled in 60% of the offers, expected 70%"
    assert why(offers(10, filled=6), fill_min={"region": 0.7}) == few


def test_a_reading_without_offers_names_the_commonest_reject() -> None:
    rejects = [*outside_bounds(1, detail="too dear"), *outside_bounds(2, "missing_field", "without a price")]
    assert check_reading([], config(), rejects) == Acceptance(
        False, "no offers were read; rejects: 3, missing_field: 2, for example: without a price"
    )


def test_a_fifth_of_the_prices_may_be_out_of_bounds() -> None:
    """One price alone is a misprint, however large its share. Other rejects do not count."""
    accepted = {(1, 1): True, (8, 2): True, (7, 2): False, (12, 3): True, (11, 3): False}
    for (read, outside), is_accepted in accepted.items():
        verdict = check_reading(offers(read), config(), outside_bounds(outside))
        assert verdict.accepted == is_accepted, (read, outside)
    bounds = (Decimal("0.5"), Decimal(8))
    verdict = check_reading(offers(7), config(usd_per_gpu_hour=bounds), outside_bounds(2))
    assert verdict.reason == (
        "2 of 9 prices are not between 0.5 and 8 USD per GPU-hour, as expected of this source"
    )
    assert check_reading(offers(1), config(), outside_bounds(9, "not_offered")).accepted


def test_a_page_in_another_currency_than_the_yamls_is_refused() -> None:
    expected = {
        row["page"]: f"{CAPTURED.url} shows {row['amounts']} amounts in {row['currency']} and 0 in USD,"
        " the currency of acme"
        if row["amounts"]
        else None
        for row in rows("currencies.csv")
    }
    asked = {page: replace(CAPTURED, body=page.encode()) for page in expected}
    assert {page: why_in_another_currency([each], config()) for page, each in asked.items()} == expected
    dollars, euros = asked["$2.00 $3.00 $4.00"], asked["€2,00 €3,00 €4,00"]
    assert why_in_another_currency([dollars, euros], config()) == expected["€2,00 €3,00 €4,00"]
    mixed = replace(CAPTURED, body="$1 $2 and €1 €2 €3".encode())
    assert " shows 3 amounts in EUR and 2 in USD," in (why_in_another_currency([mixed], config()) or "")
    ovh = source_config("ovh")
    american = replace(asked["€2,00 €3,00 €4,00"], url="https://api.us.ovhcloud.com/list")
    assert " shows 3 amounts in EUR and 0 in USD," in (why_in_another_currency([american], ovh) or "")
    saved = replace(CAPTURED, body="₹2 ₹3 ₹4".encode(), url="https://saved.example/list")
    assert "0 in EUR or USD, the currency of ovh" in (why_in_another_currency([saved], ovh) or "")


def test_a_source_that_grows_at_once_is_refused_until_that_lasts() -> None:
    grown: dict[tuple[int, tuple[int, ...]], str | None] = {
        (300, (100,) * 5): None,  # exactly three times
        (301, (100,) * 5): "301 offers, where 100 are usual",
        (301, (100, 100, 100, 400, 400)): "301 offers, where 100 are usual",
        (301, (100, 101)): None,
        (302, (100, 101)): "302 offers, where 100.5 are usual",
        (60, (10,) * 5): None,  # a small list may grow
        (61, (10,) * 5): "61 offers, where 10 are usual",
        (301, ()): None,
    }
    assert {case: why_grown(*case, ()) for case in grown} == grown
    # The list was refused for its length before, up to a tenth.
    lasting = {(270,): False, (271,): True, (331,): True, (332,): False, (90, 301): True}
    assert {each: why_grown(301, [100], each) is None for each in lasting} == lasting
