"""kill -9 of a refresh at a random moment: nothing that was fetched is lost, the next refresh is whole.

And two refreshes of one home at once: both end, and the record is that of one of them.
"""

import time
from datetime import date, timedelta
from random import Random

import pytest

from pipeline.home.paths import Home
from tests.nightly.stress.homes import ALL, SEED, Lab, archived, problems_of, published_problems, rows
from tests.nightly.stress.market import FIRST_DAY, SOURCES

COUNTED = "SELECT day, source, count(*), sum(native_price) FROM main.offers GROUP BY ALL ORDER BY ALL"


def refresh_well(lab: Lab, home: Home, day: date) -> float:
    """Refresh; return the seconds that it took."""
    began = time.monotonic()
    answer = lab.refresh(home, day)
    assert (answer.published, answer.accepted) == (day, set(SOURCES)), answer.said
    return time.monotonic() - began


@pytest.mark.parametrize(
    ("home_number", "kills"), [(number, 10) for number in range(20)] if ALL else [(0, 3)]
)
def test_a_kill_loses_no_answer_and_the_next_refresh_is_whole(home_number: int, kills: int, lab: Lab) -> None:
    """In rows on one home, so that the traces pile up as they would for an operator."""
    dice = Random(f"{SEED} kills {home_number}")
    home = lab.home("home")
    seconds = refresh_well(lab, home, FIRST_DAY)  # the moments are spread over what the refresh before took
    running = answers = 0
    for number in range(1, kills + 1):
        day = FIRST_DAY + timedelta(days=number)
        before = archived(home)
        with lab.serving(day) as server:
            child = lab.start(home, server, day)
            time.sleep(dice.uniform(0, seconds))
            running += child.kill()
            served = dict(server.served)
        answers += sum(served.values())
        assert published_problems(home, [day - timedelta(days=1), day]) == []
        kept = archived(home) - before
        # The answer that was on its way when the process died is the only one that may be missing.
        assert {source: count for source, count in served.items() if kept[source] < count - 1} == {}
        seconds = refresh_well(lab, home, day)
        assert problems_of(lab, home, day) == []
    assert running > 0
    assert answers > 0
    assert len(rows(home, "SELECT DISTINCT day FROM main.offers")) == kills + 1


@pytest.mark.parametrize("pair", range(10 if ALL else 1))
def test_two_refreshes_at_once_leave_the_record_of_one(pair: int, lab: Lab) -> None:
    dice = Random(f"{SEED} two at once {pair}")
    alone, both = lab.home("alone"), lab.home("both")
    day = FIRST_DAY + timedelta(days=1)
    refresh_well(lab, alone, day)
    with lab.serving(day) as server:
        first = lab.start(both, server, day)
        time.sleep(dice.uniform(0, 1.5))
        second = lab.start(both, server, day)
        answers = [first.wait(), second.wait()]
    for answer in answers:
        assert (answer.published, answer.accepted) == (day, set(SOURCES)), answer.said
    assert problems_of(lab, both, day) == []
    assert rows(alone, COUNTED) == rows(both, COUNTED)
