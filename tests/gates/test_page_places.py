"""Whether a page shows a price's change in the place of the earlier price, and what the gates make of it."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal

import pytest

from pipeline.capture.index import sha256_of
from pipeline.contracts.listing import Answer
from pipeline.contracts.offer import Offer
from pipeline.gates import page_places
from pipeline.gates.history import History, read_history
from pipeline.gates.judge import screen
from pipeline.gates.page_places import why_not_shown
from pipeline.gates.page_terms import new_terms
from pipeline.gates.price_moves import EarlierPrices
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.home.paths import Home
from pipeline.record.records import Records
from tests.gates.screening import DAY, STEADY, YESTERDAY
from tests.offers.builders import CAPTURED, config, offer

MOVED = "the page shows no such change in the same place"

ROW = "<tr><td>{}</td><td class='price'>${}</td><td>per hour</td></tr>"
TABLE = ROW.format("H100", "2.00") + ROW.format("A10", "0.75")


def answer(text: str) -> Answer:
    body = text.encode()
    return Answer(CAPTURED.url, body, CAPTURED.observed_at, sha256_of(body))


def told(
    before: str, after: str, to: str = "1.50", price: str = "2.00", **facts: str
) -> dict[int, str | None]:
    """Return why a page does not show that one price moved, beside another that did not."""
    was = [offer(price, **facts), offer("0.75", raw_label="A10", gpu_id="a10")]
    now = [offer(to, **facts), was[1]]
    last = {(CAPTURED.sha256, YESTERDAY): [answer(before)]}
    earlier = EarlierPrices(History(was, YESTERDAY))
    return why_not_shown(now, earlier, [answer(after)], lambda *of: last.get(of, []))


@pytest.mark.parametrize(
    ("about", "page", "why"),
    [
        ("another figure", TABLE.replace("2.00", "1.50"), None),
        ("a row more", TABLE.replace("2.00", "1.50") + ROW.format("L4", "0.40"), None),
        ("a row less", ROW.format("H100", "1.50"), None),
        ("the rows in another order", ROW.format("A10", "0.75") + ROW.format("H100", "1.50"), None),
        ("all rows in other tags", TABLE.replace("2.00", "1.50").replace("price", "price-v2"), None),
        ("a note elsewhere", TABLE.replace("2.00", "1.50") + "<p>Trusted by 40 teams.</p>", None),
        ("the former figure beside it", TABLE.replace("$2.00", "<del>$2.00</del> $1.50"), MOVED),
        ("a column more", TABLE.replace("2.00</td>", "2.00</td><td class='price'>$1.50</td>"), MOVED),
        ("other words after the figure", TABLE.replace("2.00", "1.50 with a code"), MOVED),
        ("only the other row", TABLE.replace("0.75", "1.50"), MOVED),
        ("no such figure", TABLE.replace("2.00", "1.80"), MOVED),
    ],
)  # fmt: skip
def test_a_move_is_shown_if_its_figure_stands_where_the_earlier_one_did(
    about: str, page: str, why: str | None
) -> None:
    assert told(TABLE, page) == {0: why}, about


def test_prices_that_change_to_each_others_figures_are_shown() -> None:
    """2.00 becomes 1.50, and 3.00 becomes 2.00, so that there are as many as before."""
    before = ROW.format("H100", "2.00") + ROW.format("H200", "3.00") + ROW.format("A10", "0.75")
    after = ROW.format("H100", "1.50") + ROW.format("H200", "2.00") + ROW.format("A10", "0.75")
    assert told(before, after) == {0: None}


def test_a_page_may_state_cents_or_thousands_with_commas() -> None:
    cents = '{{"gpu": "H100", "cents": {}, "free": {}}}'
    assert told(cents.format(200, "true"), cents.format(150, "false")) == {0: None}
    for thousands in ("1,500.00", "1.500,00", "1500"):
        assert told(ROW.format("H100", "2,000"), ROW.format("H100", thousands), "1500", "2000") == {0: None}


def test_pages_may_say_nothing_of_a_move(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(TABLE, TABLE) == {}  # the reader has changed
    assert told(TABLE.replace("2.00", "1.00"), TABLE) == {}  # a price per two machines
    assert told(TABLE, TABLE.replace("2.00", "1.50"), tier="marketplace") == {}
    limit = THRESHOLDS.model_copy(update={"max_page_tokens": len(page_places._TOKEN.findall(TABLE)) + 1})
    monkeypatch.setattr(page_places, "THRESHOLDS", limit)
    assert told(TABLE, TABLE.replace("2.00", "1.50")) == {0: None}
    assert told(TABLE, TABLE.replace("2.00", "1.50") + " and") == {}


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("<p>With prepaid credit, from 12 hours</p>", ["credit", "prepaid"]),
        ('{"feePercent": 8, "spot_window": "1d"}', ["fee", "spot"]),
        ("\\u003cspan\\u003eincl. VAT\\u003c", ["incl", "vat"]),
        ("<p>Trusted by 60 teams</p>", []),  # a phrase of the page, but for its figure
        ("<p>A coffee, a spotless place, a creditor</p>", []),
        (f"<script>{'x' * 2_000} spot</script>", []),
    ],
)
def test_new_terms_are_words_about_prices_in_phrases_that_the_page_lacked(
    text: str, terms: list[str]
) -> None:
    page = "<p>Trusted by 40 teams</p><td>spot</td>"
    assert new_terms([answer(page)], [answer(page + text)]) == terms
    assert new_terms([answer(page + text)], [answer(page)]) == []


def test_a_move_beside_a_new_term_is_not_shown_even_on_a_marketplace() -> None:
    page = TABLE.replace("2.00", "1.50") + "<p>Prices with a yearly commitment</p>"
    why = {0: "the page has new texts with 'commitment', 'yearly'"}
    assert told(TABLE, page) == told(TABLE, page, tier="marketplace") == why


PAGES = {
    "shown": TABLE.replace("2.00", "1.50"),
    "elsewhere": TABLE.replace("$2.00", "<del>$2.00</del> $1.50"),
}


def held_on(days: Sequence[date], page: str, to: str, records: Records) -> list[list[str]]:
    """Return why prices are held on days on which the page is another than on the first, and record them."""
    kept = {DAY: [answer(TABLE)], **{day: [answer(page)] for day in days}}

    def read(day: date, *offers: Offer) -> list[str]:
        history = read_history(records, "acme", day)
        read = [*STEADY, *offers]

        def pages(earlier: EarlierPrices) -> dict[int, str | None]:
            return why_not_shown(read, earlier, kept[day], lambda _, of: kept.get(of, []))

        result = screen(read, history, config(), day, pages=pages)
        records.write_accepted(day, "acme", result.offers)
        records.write_rejects(day, "acme", result.rejects)
        found.append([each.believed_because for each in result.believed if each.believed_because])
        return [row.reason.value for row in result.rejects]

    found: list[list[str]] = []
    read(DAY, offer("2.00"))
    return [[*read(day, offer(to)), *found[-1]] for day in days]


@pytest.mark.parametrize(
    ("page", "to", "held"),
    [
        ("shown", "1.50", [["price_jump"], ["page"], []]),
        ("shown", "1.90", [[], [], []]),
        ("elsewhere", "1.50", [["page_changed"]] * 3),
        ("elsewhere", "1.88", [["page_changed"]] * 3),
        ("elsewhere", "1.91", [[], [], []]),  # hardly a change
        ("shown", "1.00", [["moved_by_a_unit"]] * 3),
    ],
)
def test_a_move_that_the_page_shows_is_believed_on_its_second_day_and_another_is_not(
    page: str, to: str, held: list[list[str]], records: Records
) -> None:
    days = [DAY + timedelta(days=number) for number in (1, 2, 3)]
    assert held_on(days, PAGES[page].replace("1.50", to), to, records) == held


def test_a_price_is_believed_once_the_page_is_as_before(records: Records) -> None:
    days = [DAY + timedelta(days=1)]
    assert held_on(days, PAGES["elsewhere"], "1.50", records) == [["page_changed"]]
    history = read_history(records, "acme", DAY + timedelta(days=2))
    result = screen(
        [*STEADY, offer("1.50")], history, config(), DAY + timedelta(days=2), pages=lambda _: {3: None}
    )
    assert [each.believed_because for each in result.offers[3:]] == ["page"]


def test_the_reject_says_what_would_release_the_price(records: Records) -> None:
    held_on([DAY + timedelta(days=1)], PAGES["elsewhere"], "1.50", records)
    (row,) = records.rejects("acme", DAY + timedelta(days=1))
    assert row["detail"] == (
        f"'H100 SXM' went from 2.00000000 to 1.50 USD, and {MOVED}; held until the page of another day shows "
        "it where the earlier price stood, other sources' prices for the card move alike, or you confirm it "
        "with `gpufare confirm acme`"
    )
    assert Decimal(row["raw"]["native_price"]) == Decimal("1.50")


@pytest.fixture
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    return Records(Home(tmp_path_factory.mktemp("home")))
