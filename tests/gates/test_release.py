"""Held prices are believed by evidence: time, the market, the source's own history, a stated date, the same
amount, or a person's word; and what the record keeps of them."""

import math
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.contracts.offer import Offer
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.gates.held import HeldPrice
from pipeline.gates.history import dated_price, moves_at_other_sources, read_history
from pipeline.gates.judge import Screened, screen
from pipeline.gates.prices import price_key
from pipeline.gates.reviews import Review, Reviews, ReviewsError, add_reviews, read_reviews
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.home.paths import Home
from pipeline.record.records import Records
from tests.gates.screening import DAY, H100, STEADY, YESTERDAY, offers_in, reasons, reviewed, screened
from tests.offers.builders import config, offer

JUMP, TOO_FAR = RejectReason.PRICE_JUMP, RejectReason.PRICE_TOO_FAR


def because(result: Screened) -> list[str | None]:
    """Return the evidence for each price of the day, apart from the steady ones."""
    return [each.believed_because for each in result.offers[len(STEADY) :]]


def after(days: int, reason: RejectReason = JUMP, held: str = "3.80", now: str = "3.80") -> Screened:
    """Screen a price that was held ``days`` ago, after a price of two dollars."""
    price = HeldPrice(reason, Decimal(held), DAY - timedelta(days=days))
    return screened([offer(now)], [offer("2.00")], held={price_key(offer()): price})


def test_time_releases_only_what_does_not_have_the_shape_of_a_misread() -> None:
    days = THRESHOLDS.held_days
    assert because(after(days)) == because(after(days + 9)) == ["time"]
    assert after(days - 1).rejects != []
    assert because(after(days, held="3.99")) == ["time"]  # the same, up to a twentieth
    assert after(days, held="4.00").rejects != []
    for far in ("8.00", "8.50"):
        assert after(300, held=far, now=far).rejects != []
    assert after(300, reason=RejectReason.PRICE_OF_ANOTHER_OFFER).rejects != []


def test_a_price_that_returns_to_its_last_value_is_believed_at_once() -> None:
    assert because(after(1, now="2.00")) == [None]
    assert because(after(1, TOO_FAR, held="8.50", now="2.00")) == [None]


def test_an_earlier_price_of_this_very_offer_returns() -> None:
    long_ago = DAY - timedelta(days=9)
    earlier = {long_ago: [offer("8.50"), offer("9.50", region="eu"), offer("7.50", native_currency="EUR")]}
    found = {
        price: because(screened([offer(price)], [offer("2.00")], earlier=earlier)) for price in ("8.50",)
    }
    assert found == {"8.50": ["history"]}
    for price in ("8.51", "9.50", "7.50"):
        assert screened([offer(price)], [offer("2.00")], earlier=earlier).rejects != []


def test_a_price_is_believed_when_other_sources_moved_alike() -> None:
    """From 2 to 8.50; the others from 2: two of them at least two thirds to one and a half times as far."""
    asked: list[tuple[Any, ...]] = []

    def moves(*to: str) -> Any:
        def moves_since(*about: Any) -> list[float]:
            asked.append(about)
            return [math.log(float(each) / 2) for each in to]

        return moves_since

    now, before = [offer("8.50")], [offer("2.00")]
    believed = {
        ("5.30", "17.40"): True,
        ("5.20", "8.50"): False,
        ("8.50", "17.60"): False,
        ("8.50",): False,
        ("8.50", "2.00", "8.40"): True,
        ("0.50", "0.50"): False,
    }
    found = {to: because(screened(now, before, moves=moves(*to))) == ["market"] for to in believed}
    assert found == believed
    assert set(asked) == {(H100, "on_demand", YESTERDAY)}
    # The market says nothing of other currencies, of unknown cards and of names without an earlier price.
    with_it = moves("8.50", "8.50")
    euros = offers_in("8 native_currency=EUR usd=3")
    assert reasons(euros, before, moves=with_it) == ["currency_changed"]
    unknown = [offer(price, gpu_id=None) for price in ("2.00", "8.50")]
    assert reasons(unknown[1:], unknown[:1], moves=with_it) == ["price_too_far"]
    assert reasons([offer("8.50", raw_label="new")], before, moves=with_it) == ["price_too_far"]


def test_a_date_that_the_source_states_releases_its_new_prices() -> None:
    """Not those that had the date before, nor what has another shape of a misread."""
    stated = {
        YESTERDAY: False,  # when the last price was read
        DAY: True,
        DAY + timedelta(days=1): False,
    }
    for day, is_believed in stated.items():
        result = screened([offer("8.50", effective_from=day)], [offer("2.00")])
        assert because(result) == (["stated_date"] if is_believed else []), day
        assert bool(result.rejects) is not is_believed
    assert reasons([offer("4.00", effective_from=DAY)], [offer("2.00")]) == ["moved_by_a_unit"]
    dated = [offer(price, effective_from=DAY) for price in ("8.50", "2.00")]
    assert reasons(dated[:1], dated[1:]) == ["price_too_far"]


def test_the_same_amount_in_another_currency_is_believed() -> None:
    before = [offer("2.00")]
    believed = {"2.00": True, "2.10": True, "2.11": False, "1.91": True, "1.90": False, "-": False}
    for usd, is_believed in believed.items():
        result = screened(offers_in(f"1.71 native_currency=EUR usd={usd}"), before)
        assert bool(result.rejects) is not is_believed, usd
        assert because(result) == (["same_amount"] if is_believed else [None])


def test_moves_of_other_sources_are_read_from_their_records(tmp_path: Path) -> None:
    records = Records(Home(tmp_path))
    later = DAY + timedelta(days=1)
    for day, price in ((YESTERDAY, "2.00"), (DAY, "4.00"), (later, "9.00")):
        flat = [offer("2.00", price_kind="spot"), offer("7.00", gpu_id="l40s"), offer("90", raw_label="dear")]
        several = [offer(price, raw_label=f"{n}") for n in range(3)]
        ours = [each.model_copy(update={"source": "lambda"}) for each in (*several, *flat)]
        records.write_accepted(day, "lambda", ours)
        records.write_accepted(day, "vast", [offer(price, source="vast", tier="marketplace_verified")])
        records.write_accepted(day, "runpod", [offer(price, source="runpod")])
    records.write_accepted(DAY, "vultr", [offer("5.00", source="vultr")])
    records.write_accepted(YESTERDAY, "crusoe", [offer("5.00", source="crusoe")])
    damaged = Home(tmp_path).record / "offers" / "nebius" / "2026-08.parquet"
    for day in (YESTERDAY, DAY):
        records.write_accepted(day, "nebius", [offer("2.00", source="nebius")])
    damaged.write_bytes(damaged.read_bytes().replace(b"PAR1", b"XXXX", 1))

    def moves(kind: str, since: date, day: date = DAY) -> Sequence[float]:
        return list(moves_at_other_sources(records, "runpod", day)(H100, kind, since))

    assert moves("on_demand", YESTERDAY) == [pytest.approx(math.log(2))]
    assert moves("on_demand", YESTERDAY, later) == [pytest.approx(math.log(4.5))]
    assert moves("on_demand", DAY, later) == [pytest.approx(math.log(9 / 4))]
    assert moves("spot", YESTERDAY) == [0]
    assert moves("reserved", YESTERDAY) == moves("on_demand", DAY) == []


def test_a_persons_word_counts_for_its_price_only() -> None:
    now = offer("8.50")
    held: list[tuple[Review, bool]] = [
        (reviewed(now), False),
        (reviewed(now, price="8.508"), False),  # the same figure
        (reviewed(now, price="8.509"), True),
        (reviewed(now, currency="EUR"), True),
        (reviewed(offer("8.50", region="eu")), True),
        (reviewed(now, "refused"), True),
    ]
    for review, is_held in held:
        result = screened([now], [offer("2.00")], reviews=Reviews([review]))
        assert bool(result.rejects) is is_held, review
        assert because(result) == ([None] if is_held else ["person"])
    refused = [reviewed(offer("2.00"), "refused")]
    assert reasons([offer("2.00")], [offer("2.00")], reviews=Reviews(refused)) == ["refused_by_a_person"]
    again = Reviews([*refused, reviewed(offer("2.00"))])
    assert screened([offer("2.00")], [offer("2.00")], reviews=again).rejects == []  # the newest counts


def test_reviews_are_kept_in_the_home(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert read_reviews(home) == Reviews()
    of_price = reviewed(offer("8.50", effective_from=DAY), why="on the page")
    of_reading = Review(source="other", day=DAY, verdict="refused", sha256="a")
    add_reviews(home, [of_price])
    add_reviews(home, [of_reading])
    assert read_reviews(home).found == (of_price, of_reading)
    assert read_reviews(home, "acme").of_price(offer("8.50", effective_from=DAY)) == "believed"
    assert read_reviews(home, "acme").of_reading("a") is None
    assert read_reviews(home, "other").of_reading("a") == "refused"
    assert read_reviews(home, "other").of_reading("b") is read_reviews(home, "other").of_reading(None) is None
    assert (read_reviews(home, "other").usual_since, Reviews().usual_since) == (date.min, date.min)
    home.reviews.write_text("[{]")
    with pytest.raises(
        ReviewsError, match=r"reviews.json cannot be used \(it is damaged\): mend it, or delete"
    ):
        read_reviews(home)


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(Home(tmp_path))


def read_on(records: Records, day: date, *offers: Offer) -> list[RejectReason]:
    """Record a day's reading as a refresh does."""
    result = screen([*STEADY, *offers], read_history(records, "acme", day), config(), day)
    records.write_accepted(day, "acme", result.offers)
    records.write_rejects(day, "acme", result.rejects)
    return [row.reason for row in result.rejects]


@pytest.mark.parametrize("days_between", [1, 40])
def test_a_jump_is_held_for_a_day_of_the_record_and_what_is_too_far_for_good(
    records: Records, days_between: int
) -> None:
    """Also at a source that is seldom read."""
    days = [DAY + timedelta(days=days_between * n) for n in range(6)]
    prices = {day: ("3.80", "8.50") if day > DAY else ("2.00", "2.00") for day in days}
    found = [
        read_on(records, day, offer(near), offer(far, region="eu")) for day, (near, far) in prices.items()
    ]
    assert found == [[], [JUMP, TOO_FAR], *[[TOO_FAR]] * 4]


def test_what_the_record_says_of_held_prices(records: Records) -> None:
    key = price_key(offer())
    days = [DAY + timedelta(days=n) for n in range(6)]
    read_on(records, DAY, offer("2.00"))
    assert read_history(records, "acme", DAY).last_day is None
    for number, (price, since) in enumerate((("8.50", 1), ("8.70", 1), ("9.50", 3)), start=1):
        read_on(records, days[number], offer(price))
        held = HeldPrice(TOO_FAR, Decimal(price), days[since])
        history = read_history(records, "acme", days[number + 1])
        assert history.held == {key: held}
        (stays,) = (each for each in history.last if each.doubt)
        assert (stays.native_price, stays.believed_on) == (Decimal("2.00"), DAY)
    assert read_history(records, "acme", days[1]).held == {}
    read_on(records, days[4], offer("2.10"))  # accepted, so that nothing is held any more
    last = read_history(records, "acme", days[5])
    assert (last.held, last.last_day, len(last.last)) == ({}, days[4], 4)
    assert last.earlier()[dated_price(offer("2.00"))] == days[:4]


def test_a_shape_remains_one_when_what_showed_it_is_gone(records: Records) -> None:
    """On the second day, the price would be only a jump."""
    read_on(records, DAY, offer("2.00"), offer("3.80", price_kind="spot"))
    held = [read_on(records, DAY + timedelta(days=n), offer("3.80")) for n in range(1, 5)]
    assert held == [[RejectReason.COLUMN_OF_ANOTHER_KIND]] * 4


def test_a_price_held_beside_an_accepted_one_with_its_key_stays_held(records: Records) -> None:
    result = screened([offer("8.50"), offer("2.00")], [offer("2.00")])
    records.write_accepted(YESTERDAY, "acme", result.offers)
    records.write_rejects(YESTERDAY, "acme", result.rejects)
    assert price_key(offer()) in read_history(records, "acme", DAY).held


def test_held_prices_are_looked_up_in_the_latest_readings_only(records: Records) -> None:
    jump = screened([offer("8.50")], [offer("2.00")]).rejects
    for age in range(1, THRESHOLDS.history_readings + 1):
        records.write_rejects(DAY - timedelta(days=age), "acme", jump if age == 30 else [])
        records.write_rejects(DAY - timedelta(days=age), "other", [])
    assert read_history(records, "acme", DAY).held.keys() == {price_key(offer())}
    records.write_rejects(DAY, "acme", [])
    assert read_history(records, "acme", DAY + timedelta(days=1)).held == {}


def test_an_old_page_is_not_believed_for_its_old_prices(records: Records) -> None:
    """Not even when nothing shows any more that it is old."""
    days = [DAY + timedelta(days=n) for n in range(4)]
    for day, price in zip(days[:2], ("8.50", "2.00"), strict=True):
        records.write_accepted(day, "acme", [*STEADY, offer(price)])
        records.write_rejects(day, "acme", [])
    old = {offer().capture_sha256: date(2026, 1, 1)}
    for day, page in ((days[2], old), (days[3], {})):
        history = read_history(records, "acme", day)
        result = screen([*STEADY, offer("8.50")], history, config(), day, page_days=page)
        assert [row.reason for row in result.rejects] == ["earlier_page"]
        records.write_accepted(day, "acme", result.offers)
        records.write_rejects(day, "acme", result.rejects)
