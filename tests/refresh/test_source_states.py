"""`gpufare sources` and the published source_health are one definition: the newest attempt decides."""

import json
import logging
import shutil
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline.capture.archive import ID_FORMAT
from pipeline.catalog.source_config import configs, source_config
from pipeline.contracts.outcome import Outcome, SourceResult
from pipeline.health.source_states import source_states, why_text
from pipeline.home.paths import Home
from pipeline.record.journal import Journal
from pipeline.record.months import Month, file_of
from pipeline.record.records import Records
from pipeline.refresh.demo import sample_days
from pipeline.refresh.permissions import off_sources
from pipeline.warehouse.query import ask
from tests.conftest import PAGES, gpufare, reader_on

DAY = sample_days(PAGES)[0]
NEXT_DAY = DAY + timedelta(days=1)
NEXT_MONTH = DAY + timedelta(days=10)


@pytest.fixture
def home(small_home: Home, sample_home: Home) -> Home:
    """The record of a good day, without the archive and without a published file."""
    shutil.copytree(sample_home.record, small_home.record)
    return small_home


def states(
    home: Home, today: date, environment: Mapping[str, str] | None = None
) -> dict[str, dict[str, Any]]:
    return {row["source"]: row for row in source_states(home, today, environment or {}).dicts()}


def failed(source: str, day: date, error: str) -> Outcome:
    """The outcome of an attempt that begins now, so after those of the sample pages."""
    return Outcome(
        day=day,
        source=source,
        attempt=f"{datetime.now(UTC):{ID_FORMAT}}",
        status="failed",
        result=SourceResult.UNREACHABLE,
        accepted=False,
        reason=error,
        requests=2,
        failed_requests=2,
        error=error,
    )


@pytest.mark.parametrize("days", [0, 1, 5, 8])
def test_the_command_and_the_published_table_agree(days: int, sample_home: Home) -> None:
    today = DAY + timedelta(days=days)
    shared = "source, title, state, last_attempt_day, last_accepted_day, age_days, offers"
    with reader_on(sample_home.published, today) as connection:
        published = ask(connection, f"SELECT {shared} FROM main.source_health ORDER BY source")
    computed = states(sample_home, today)
    off = off_sources(configs().values(), sample_home, {})
    assert {computed[name]["state"] for name in off} == {"needs_permission"}
    told = [row for row in published.dicts() if row["source"] not in off]
    assert [{name: computed[row["source"]][name] for name in row} for row in told] == told


def test_after_an_outage_no_source_is_called_good(home: Home) -> None:
    """Nothing could be sent, so the archive has no request of that day: the outcomes are what tells."""
    unreachable = "robots_disallowed: robots.txt of the host could not be read (no route to host)"
    for source in states(home, DAY):
        Records(home).write_outcome(failed(source, NEXT_DAY, unreachable))
    found = states(home, NEXT_DAY)
    assert {found.pop(name)["state"] for name in ("tensordock", "imported")} == {"disabled"}
    for name in off_sources(configs().values(), home, {}):
        assert found.pop(name)["state"] == "needs_permission"
    keyless = {name for name in found if source_config(name).needs_key}
    assert {found[name]["state"] for name in keyless} == {"never_accepted"}
    assert {row["state"] for name, row in found.items() if name not in keyless} == {"failing"}
    assert all(unreachable in row["why"] for row in found.values())
    assert f"stay in the rankings until {DAY + timedelta(days=7)}" in found["lambda"]["why"]


def test_a_source_that_was_never_reached_was_asked(tmp_path: Path) -> None:
    home = Home(tmp_path)
    Records(home).write_outcome(failed("modal", DAY, "dns_error: no such host"))
    found = states(home, DAY)
    assert (found["modal"]["state"], found["modal"]["last_attempt_day"]) == ("never_accepted", DAY)
    assert found["modal"]["why"] == f"dns_error: no such host (since {DAY})"
    assert found["lambda"]["state"] == "not_asked"


def test_a_failed_evening_is_not_hidden_by_a_good_morning(home: Home) -> None:
    Records(home).write_outcome(failed("lambda", DAY, "http_500: an internal error"))
    row = states(home, DAY)["lambda"]
    assert (row["state"], row["age_days"]) == ("failing", 0)
    assert row["why"].startswith(f"http_500: an internal error (since {DAY}); its prices of {DAY} stay")


def test_a_key_that_is_set_is_not_missing(home: Home) -> None:
    assert states(home, DAY)["primeintellect"]["why"] == "needs a key in PRIME_API_KEY"
    found = states(home, DAY, {"PRIME_API_KEY": "secret"})
    assert found["primeintellect"]["state"] == "not_asked"


def test_damaged_files_are_named_and_earlier_ones_decide(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    records = Records(home)
    records.write_accepted(NEXT_MONTH, "lambda", records.offers("lambda", DAY))
    accepted = next(iter(records.outcomes("lambda", DAY)))
    newest = file_of(home, Month.of("offers", "lambda", NEXT_MONTH))
    newest.write_bytes(newest.read_bytes()[:100])
    content = json.dumps(accepted).replace(str(DAY), str(NEXT_MONTH))
    Journal(home).write("outcome", "lambda", NEXT_MONTH, accepted["attempt"], content)
    with caplog.at_level(logging.WARNING):
        row = states(home, NEXT_MONTH)["lambda"]
    assert accepted["accepted"]
    assert (row["state"], row["last_accepted_day"]) == ("stale", DAY)
    assert f"the prices accepted on {NEXT_MONTH} are no longer in the record" in row["why"]
    assert f"{newest} cannot be read and is skipped" in caplog.text


FAILING = {
    "state": "failing",
    "why": "http_403: forbidden",
    "kind": "prices",
    "last_attempt_day": DAY,
    "last_attempt_accepted": False,
    "last_accepted_day": DAY,
    "failing_since": DAY,
    "failed_attempts": 1,
    "stale_after_days": 7,
    "ranked_until": NEXT_DAY,
    "offers_ranked": 1,
}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            {"failed_attempts": 3},
            f"http_403: forbidden (since {DAY}, 3 attempts); its prices of {DAY} stay in",
        ),
        ({"kind": "exchange_rates"}, f"http_403: forbidden (since {DAY}); its last rates are of {DAY}"),
        ({"offers_ranked": 0}, f"http_403: forbidden (since {DAY}); none of its prices of {DAY} is ranked"),
        (
            {"state": "stale", "offers_ranked": 0},
            f"(since {DAY}); its prices of {DAY} are older than 7 days: ra",
        ),
        ({"state": "aging", "failing_since": None}, f"not asked since {DAY}; its prices of {DAY} stay"),
        ({"state": "current"}, "incomplete: http_403: forbidden"),
        ({"state": "current", "why": None}, "None"),
        ({"state": "disabled", "why": "its terms forbid it"}, "its terms forbid it"),
        (
            {"state": "needs_permission", "why": "off", "failing_since": None},
            f"off; its prices of {DAY} stay",
        ),
    ],
)
def test_states_are_explained(row: Mapping[str, Any], words: str) -> None:
    assert words in str(why_text(FAILING | row))


def test_future_days_decide_nothing(home: Home) -> None:
    ahead = DAY + timedelta(days=400)
    records = Records(home)
    records.write_accepted(ahead, "lambda", records.offers("lambda", DAY))
    records.write_outcome(failed("lambda", ahead, "a clock that was ahead"))
    assert states(home, DAY)["lambda"] == states(home, DAY)["lambda"] | {
        "state": "current",
        "last_accepted_day": DAY,
        "last_attempt_day": DAY,
    }


def test_a_home_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    answer = gpufare("sources", home=tmp_path / "home")
    assert answer.returncode == 1
    assert answer.stderr == f"Error: {tmp_path / 'home'} is a file: set GPUFARE_HOME to the folder with " + (
        "gpufare's data\n"
    )
    assert answer.stdout == ""


def test_a_person_sees_a_table_and_then_why(home: Home) -> None:
    answer = gpufare("sources", home=home)
    table, _, reasons = answer.stdout.strip().partition("\n\n")
    headings = ["source", "state", "accepted", "days", "old", "terms", "evidence", "asked", "title"]
    assert table.splitlines()[0].split() == headings
    assert "primeintellect: needs a key in PRIME_API_KEY" in reasons.splitlines()
    (retired,) = (line for line in reasons.splitlines() if line.startswith("tensordock: "))
    assert "its list of locations is empty" in retired
    (azure,) = (line for line in reasons.splitlines() if line.startswith("azure: "))
    assert azure.startswith(f"azure: not asked since {DAY}; its prices of {DAY} are older than 7")


def test_sources_answers_before_anything_is_published(home: Home) -> None:
    answer = gpufare("sources", "--format", "csv", home=home)
    assert answer.returncode == 0
    assert answer.stdout.splitlines()[0].startswith(
        "source,title,state,last_attempt_day,last_accepted_day,age"
    )
    assert answer.stderr.startswith("note: nothing is published at ")
