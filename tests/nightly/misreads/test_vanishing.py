"""Ten ways in which rows vanish, at ten sources on one day: each is seen on the next morning, and told as no
move of what is left."""

import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from pipeline.contracts.listing import Listing, Reject, Row
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.health.digest import digest_of
from pipeline.health.source_states import source_states
from pipeline.home.paths import SQL_DIR, Home
from pipeline.offers.build import build_offers
from pipeline.refresh import ingest
from pipeline.refresh.refresh import refresh
from pipeline.sources import source_module
from pipeline.warehouse.query import ask, reader
from tests.homes import PAGES
from tests.nightly.misreads.misreads import Edit, listings_of
from tests.nightly.misreads.world import FIRST_DAY
from tests.pages_server import PagesServer

NEXT = FIRST_DAY + timedelta(days=1)
NOW = datetime.combine(NEXT, time(12), UTC)


def without(gone: Callable[[Listing], bool]) -> Edit:
    return lambda rows: [row for row in rows if not (isinstance(row, Listing) and gone(row))]


def first_share(share: float) -> Edit:
    """All rows but the last ones."""

    def edit(rows: Sequence[Row]) -> list[Row]:
        kept = listings_of(rows)
        return list(kept[: round(len(kept) * share)])

    return edit


def contact_sales(rows: Sequence[Row]) -> list[Row]:
    """Every second row asks to contact sales."""
    return [
        Reject(RejectReason.NOT_OFFERED, "Contact sales", {}, row.answer)
        if number % 2 and isinstance(row, Listing)
        else row
        for number, row in enumerate(rows)
    ]


def half_of_a_page(rows: Sequence[Row]) -> list[Row]:
    listings = listings_of(rows)
    page = listings[-1].answer.url
    of_page = [row for row in listings if row.answer.url == page]
    return [row for row in listings if row not in of_page[len(of_page) // 2 :]]


WAYS: dict[str, tuple[str, Edit]] = {
    "a fifth of the list": ("hyperstack", first_share(0.8)),
    "half of the list": ("civo", first_share(0.5)),
    "nearly the whole list": ("salad", first_share(0.1)),
    "every spot price": ("coreweave", without(lambda row: row.price_kind == "spot")),
    "every reservation": ("gcp", without(lambda row: row.price_kind == "reserved")),
    "a region": ("aws", without(lambda row: row.region == "us-west-2")),
    "a required card": ("lambda", without(lambda row: "H100" in row.raw_label)),
    "prices that become requests to contact sales": ("e2e", contact_sales),
    "half of one of several pages": ("scaleway", half_of_a_page),
    "all machines of a card": ("jarvislabs", without(lambda row: "H100" in row.raw_label)),
}


@pytest.fixture(scope="module")
def home(sample_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The morning after the rows vanished."""
    copy = Home(tmp_path_factory.mktemp("vanishing") / "home")
    shutil.copytree(sample_home.root, copy.root)
    edits = dict(WAYS.values())

    def within_limits(function: Any, answers: Any, config: Any, *more: Any) -> Any:
        if not more:  # exchange rates
            return function(answers, config)
        rates, reviews, any_currency = more
        rows = edits.get(config.name, list)(list(source_module(config.name).read(answers, config)))
        return build_offers(rows, config, rates, reviews, any_currency=any_currency)

    with PagesServer(PAGES) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest, "within_limits", within_limits)
        report = refresh(copy, day=NEXT, pages=server.base_url, environment={})
    assert report.published
    return copy


def test_each_is_seen_on_the_next_morning(home: Home) -> None:
    digest = digest_of(home, NOW)
    gone = (line for line in digest.changed if line.startswith(("Vanished", "No longer listed")))
    told = " ".join([*(problem.subject for problem in digest.problems), *gone])
    states = {row["source"]: row for row in source_states(home, NEXT, {}, now=NOW).dicts()}
    with reader(home.published) as connection:
        query = (SQL_DIR / "checks" / "sources_list_what_they_did.sql").read_text(encoding="utf-8")
        ask(connection, f"SET VARIABLE as_of_day = DATE '{NEXT}'")
        checked = {row["source"] for row in ask(connection, query).dicts()}
        lost = ask(
            connection, f"SELECT source FROM main.capture_outcomes WHERE day = '{NEXT}' AND NOT accepted"
        )
        refused = {source for (source,) in lost.rows}
    unseen = {
        way: source
        for way, (source, _) in WAYS.items()
        if source not in told or states[source]["why"] is None or source not in checked | refused
    }
    assert unseen == {}


def test_none_is_told_as_a_move(home: Home) -> None:
    with reader(home.published) as connection:
        moved = "SELECT source, gpu_id, change_share FROM main.price_changes WHERE change = 'moved'"
        gone = "SELECT DISTINCT source FROM main.price_changes WHERE change = 'no_longer_listed'"
        assert ask(connection, moved).rows == []
        assert {source for (source,) in ask(connection, gone).rows} >= {"coreweave", "jarvislabs"}
