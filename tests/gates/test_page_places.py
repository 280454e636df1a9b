"""Whether a page shows a price's change in the place of the earlier price, and what the gates make of it."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal

import pytest

from pipeline.capture.index import sha256_of
from pipeline.catalog.tables import catalog_rows
from pipeline.contracts.listing import Answer
from pipeline.contracts.offer import Offer
from pipeline.gates import page_places
from pipeline.gates.history import History, read_history
from pipeline.gates.judge import screen
from pipeline.gates.page_places import OnPage, moves_on_page
from pipeline.gates.page_terms import MAX_PHRASE_CHARACTERS, new_terms, phrases
from pipeline.gates.price_moves import EarlierPrices, Move, moves_of
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.home.paths import Home
from pipeline.record.records import Records
from tests.gates.screening import DAY, YESTERDAY
from tests.offers.builders import CAPTURED, config, offer

ROW = "<tr><td>{}</td><td class='price'>${}</td><td>per hour</td></tr>"
TABLE = ROW.format("H100", "2.00") + ROW.format("A10", "0.75")
CUT = TABLE.replace("2.00", "1.50")
A10 = offer("0.75", raw_label="A10", gpu_id="a10")


def answer(text: str | bytes) -> Answer:
    body = text if isinstance(text, bytes) else text.encode()
    return Answer(CAPTURED.url, body, CAPTURED.observed_at, sha256_of(body))


def seen(
    was: Sequence[Offer], now: Sequence[Offer], before: Sequence[Answer], after: Sequence[Answer]
) -> dict[int, OnPage]:
    """Return what two captures say of the moves between two readings."""
    kept = {(CAPTURED.sha256, YESTERDAY): before}
    moves = list(moves_of(now, EarlierPrices(History(was, YESTERDAY))))
    return moves_on_page(moves, after, lambda *of: kept.get(of, []))


def shown(
    before: str | bytes, after: str | bytes, to: str = "1.50", price: str = "2.00", **facts: str
) -> bool | None:
    """Return whether a page shows that one price moved, beside another that did not."""
    found = seen([offer(price, **facts), A10], [offer(to, **facts), A10], [answer(before)], [answer(after)])
    assert found.keys() <= {0}
    return found[0].in_place if found else None


@pytest.mark.parametrize(
    ("about", "page", "is_shown"),
    [
        ("another figure", CUT, True),
        ("a row more", CUT + ROW.format("L4", "0.40"), True),
        ("a row less", ROW.format("H100", "1.50"), True),
        ("the rows in another order", ROW.format("A10", "0.75") + ROW.format("H100", "1.50"), True),
        ("all rows in other tags", CUT.replace("price", "price-v2"), True),
        ("this row in other tags", CUT.replace("price", "new", 1), False),
        ("a note elsewhere", CUT + "<p>Trusted by 40 teams.</p>", True),
        ("the former figure beside it", TABLE.replace("$2.00", "<del>$2.00</del> $1.50"), False),
        ("a column more", TABLE.replace("2.00</td>", "2.00</td><td class='price'>$1.50</td>"), False),
        ("other words after the figure", TABLE.replace("2.00", "1.50 with a code"), False),
        ("another sign eight tokens before", CUT.replace("H100</td>", "H100</td)"), False),
        ("another word nine tokens before", CUT.replace("H100</td>", "H100</th>"), True),
        ("another sign four tokens after", CUT.replace("1.50</td>", "1.50</td)"), False),
        ("another sign five tokens after", CUT.replace("1.50</td><", "1.50</td>("), True),
        ("only the other row", TABLE.replace("0.75", "1.50"), False),
        ("no such figure", TABLE.replace("2.00", "1.80"), False),
    ],
)  # fmt: skip
def test_a_move_is_shown_if_its_figure_stands_where_the_earlier_one_did(
    about: str, page: str, is_shown: bool
) -> None:
    assert shown(TABLE, page) is is_shown, about


def test_prices_that_change_to_each_others_figures_are_shown() -> None:
    """2.00 becomes 1.50, and 3.00 becomes 2.00, so that there are as many as before."""
    before = ROW.format("H100", "2.00") + ROW.format("H200", "3.00") + ROW.format("A10", "0.75")
    after = ROW.format("H100", "1.50") + ROW.format("H200", "2.00") + ROW.format("A10", "0.75")
    assert shown(before, after) is True


def test_a_page_may_state_cents_or_thousands_with_commas() -> None:
    cents = '{{"cents": {}, "gpus": {}, "free": {}}}'
    assert shown(cents.format(200, 2, "true"), cents.format(150, 2, "false")) is True
    assert shown(cents.format(200, 2, "true"), '{"now": 150, "gpus": 2}') is False
    for thousands in ("1,500.00", "1.500,00", "1500", "1500,00"):
        assert shown(ROW.format("H100", "2,000"), ROW.format("H100", thousands), "1500", "2000") is True
    for others in (("20.00", "15.00"), ("0.20", "0.15")):
        before, after = (ROW.format("disk", other) for other in others)
        assert shown(ROW.format("H100", "2.00") + before, ROW.format("H100", "2.00") + after) is False
    long = ROW.format("H100", "2.0000000012345678901234567")
    assert shown(long, ROW.format("H100", "1.5")) is True


def test_small_numbers_are_no_prices_unless_they_have_a_currency_sign() -> None:
    """A page that states 16 dollars for a machine of 8 GPUs, and has 2 regions, says nothing of 2.00."""
    page = "<p>{} in 2 regions</p>" + ROW.format("A10", "0.75")
    assert shown(page.format("$16"), page.format("$12")) is None
    assert shown(page.format("$2"), page.format("$3")) is False
    assert shown(page.format("$2"), page.format("$3"), to="3.00") is True


def test_pages_may_say_nothing_of_a_move(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(TABLE, TABLE) is None  # the reader has changed
    assert shown(TABLE.replace("2.00", "1.00"), TABLE) is None  # a price per two machines
    assert shown(TABLE, CUT, tier="marketplace") is None
    assert seen([offer("2.00")], [offer("1.50")], [], [answer(CUT)]) == {}  # the archive lacks it
    euros = offer("1.50", native_currency="EUR")
    assert seen([offer("2.00")], [euros], [answer(TABLE)], [answer(CUT)]) == {}
    assert shown(TABLE.encode() + b"\xff", CUT.encode() + b"\xff") is True
    limit = THRESHOLDS.model_copy(update={"max_compared_mib": len(CUT) / 2**20})
    monkeypatch.setattr(page_places, "THRESHOLDS", limit)
    assert shown(TABLE, CUT) is True
    assert shown(TABLE, CUT + " ") is None
    assert shown(TABLE + " ", CUT) is None


def test_a_capture_is_compared_as_a_whole_and_found_once() -> None:
    """Three prices of two answers, one of which was last read and believed on an earlier day."""
    pages = [answer(ROW.format("H100", "2.00")), answer(ROW.format("A10", "0.75"))]
    old = [answer(ROW.format("L4", "0.50"))]
    was = [
        offer("2.00", capture_sha256=pages[0].sha256),
        A10.model_copy(update={"capture_sha256": pages[1].sha256}),
        offer("0.50", raw_label="L4", capture_sha256=old[0].sha256, believed_on=date(2026, 8, 1)),
    ]
    prices = ("1.50", "0.65", "0.40")
    now = [
        each.model_copy(update={"native_price": Decimal(to)}) for each, to in zip(was, prices, strict=True)
    ]
    asked: list[date] = []

    def former(sha256: str, day: date) -> Sequence[Answer]:
        asked.append(day)
        return pages if day == YESTERDAY else old

    labels = ("H100", "A10", "L4")
    today = [answer(ROW.format(*each)) for each in zip(labels, prices, strict=True)]
    found = moves_on_page(list(moves_of(now, EarlierPrices(History(was, YESTERDAY)))), today, former)
    assert found == {index: OnPage(True, "") for index in range(3)}
    assert asked == [YESTERDAY, date(2026, 8, 1)]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("<p>With prepaid credit, from 12 hours</p>", "'credit' (a reduction), 'prepaid' (a commitment)"),
        ('{"feePercent": 8, "spot_window": "\\nyearly"}',
         "'fee' (a charge on top), 'spot' (another machine or market), 'yearly' (a commitment)"),
        ("\\u003cspan\\u003eincl.&nbsp;VAT\\u003c", "'incl' (a charge on top), 'vat' (a charge on top)"),
        ("<p>As&nbsp;low as</p>", "'as low as' (an approximation)"),
        (f"<p>spot {'x' * (MAX_PHRASE_CHARACTERS - 5)}</p>", "'spot' (another machine or market)"),
        (f"<p>spot {'x' * (MAX_PHRASE_CHARACTERS - 4)}</p>", ""),
        ("<p>Trusted by 60 teams</p>", ""),  # a phrase of the page, but for its figure
        ("<p>A coffee, a spotless place, a creditor</p>", ""),
        ("<p>tax vat fee fees gst surcharge</p>", ", ".join(
            f"'{word}' (a charge on top)" for word in ("fee", "fees", "gst", "surcharge", "tax"))),
    ],
)  # fmt: skip
def test_new_terms_are_words_about_prices_in_phrases_that_the_page_lacked(text: str, terms: str) -> None:
    page = "<p>Trusted by 40 teams</p><td>spot</td>"
    before, after = phrases([answer(page)]), phrases([answer(page + text), answer(b"\xff")])
    assert new_terms(before, after) == terms
    assert new_terms(after, before) == ""


def test_each_term_is_in_lower_case_and_listed_once() -> None:
    words = [row["words"] for row in catalog_rows("price_terms.csv")]
    assert words == [word.casefold() for word in dict.fromkeys(words)]


def test_terms_count_for_spot_prices_and_asks_only_if_most_of_these_move() -> None:
    page = [answer(TABLE + "<p>Prices with a yearly commitment</p>")]
    both = "'commitment' (a commitment), 'yearly' (a commitment)"
    for facts in ({"price_kind": "spot"}, {"tier": "marketplace"}):
        was = [offer("2.00", raw_label=f"{number}", **facts) for number in range(4)]
        for moved, terms in ((1, ""), (2, both)):
            now = [
                each.model_copy(update={"native_price": Decimal("1.50")}) if number < moved else each
                for number, each in enumerate(was)
            ]
            found = seen(was, now, [answer(TABLE)], page)
            assert {each.terms for each in found.values()} == {terms}
    found = seen([offer("2.00"), A10], [offer("1.50"), A10], [answer(TABLE)], page)
    assert found[0].terms == both


OTHER_TAGS = CUT.replace("price", "price-v2")
CROSSED_OUT = CUT.replace("$1.50", "<del>$2.00</del> $1.50")
PREPAID = CUT + "<p>prepaid</p>"


STEADY = [A10, offer("0.80", raw_label="L4", gpu_id="l4"), offer("0.90", raw_label="T4", gpu_id="t4")]


def held_on(
    records: Records, pages: Sequence[str], to: str = "1.50", others: Sequence[Offer] = STEADY
) -> list[str]:
    """Return for each page, which is that of a day after the first, why prices are held on that day or
    because of what they are believed."""
    kept = [[answer(page)] for page in (TABLE, *pages)]

    def read(number: int, *offers: Offer) -> str:
        day = DAY + timedelta(days=number)

        def on_page(moves: Sequence[Move]) -> dict[int, OnPage]:
            return moves_on_page(moves, kept[number], lambda _, of: kept[(of - DAY).days])

        result = screen(offers, read_history(records, "acme", day), config(), day, on_page=on_page)
        records.write_accepted(day, "acme", result.offers)
        records.write_rejects(day, "acme", result.rejects)
        reasons = [row.reason.value for row in result.rejects]
        return " ".join(
            [*reasons, *(each.believed_because for each in result.believed if each.believed_because)]
        )

    read(0, offer("2.00"), *STEADY)
    return [read(number, offer(to), *others) for number in range(1, len(kept))]


@pytest.mark.parametrize(
    ("pages", "to", "held"),
    [
        ([CUT, CUT, CUT], "1.50", ["price_jump", "page", ""]),
        ([CUT, CUT, CUT], "1.90", ["", "", ""]),
        ([CUT, CUT, CUT], "1.00", ["moved_by_a_unit"] * 3),
        ([CUT, CUT, CUT], "0.75", ["price_of_another_offer", "page", ""]),
        ([CROSSED_OUT] * 3, "1.50", ["page_changed"] * 3),
        ([CROSSED_OUT] * 3, "1.88", ["page_changed"] * 3),
        ([CROSSED_OUT] * 3, "1.91", ["", "", ""]),  # hardly a change
        ([CROSSED_OUT, CUT, CUT], "1.50", ["page_changed", "page", ""]),
        ([OTHER_TAGS] * 3, "1.50", ["price_jump", "page", ""]),
        ([CUT, OTHER_TAGS, OTHER_TAGS], "1.50", ["price_jump", "page", ""]),
        ([PREPAID] * 3, "1.50", ["page_changed"] * 3),
        ([CUT, PREPAID, PREPAID], "1.50", ["price_jump", "page", ""]),  # it came later
        ([TABLE] * 3, "1.50", ["price_jump", "time", ""]),
    ],
)  # fmt: skip
def test_a_move_that_the_page_shows_is_believed_on_its_second_day_and_another_is_not(
    pages: Sequence[str], to: str, held: list[str], records: Records
) -> None:
    assert held_on(records, [page.replace("1.50", to) for page in pages], to) == held


@pytest.mark.parametrize(("factor", "reason"), [("0.9", "moved_by_a_discount"), ("0.93", "list_moved")])
def test_a_list_that_the_page_shows_is_believed_on_its_second_day(
    factor: str, reason: str, records: Records
) -> None:
    moved = [each.model_copy(update={"native_price": each.native_price * Decimal(factor)}) for each in STEADY]
    page = ROW.format("H100", 2 * Decimal(factor)) + ROW.format("A10", moved[0].native_price)
    held = held_on(records, [page, page], str(2 * Decimal(factor)), moved)
    # The page does not state the other two.
    assert held[0] == " ".join([reason] * 4)
    assert held[1].split().count("page") == 2


def test_a_price_that_returns_is_believed_though_its_page_has_changed(records: Records) -> None:
    for days, price in ((9, "1.50"), (8, "2.00")):
        records.write_accepted(DAY - timedelta(days=days), "acme", [offer(price)])
    assert held_on(records, [CROSSED_OUT]) == ["history"]


def test_the_reject_says_what_would_release_the_price(records: Records) -> None:
    held_on(records, [CROSSED_OUT, PREPAID])
    details = [records.rejects("acme", DAY + timedelta(days=number))[0]["detail"] for number in (1, 2)]
    until = (
        "held until the page of another day shows it where the earlier price stood, other sources' prices "
        "for the card move alike, or you confirm it with `gpufare confirm acme`"
    )
    went = "'H100 SXM' went from 2.00000000 to 1.50 USD, and the page"
    assert details == [
        f"{went} shows no such change in the same place; {until}",
        f"{went} has new texts with 'prepaid' (a commitment); {until}",
    ]


@pytest.fixture
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    return Records(Home(tmp_path_factory.mktemp("home")))
