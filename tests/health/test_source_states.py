"""`gpufare sources` and the published source_health are one definition: the newest attempt decides."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline.capture.archive import ID_FORMAT, Archive
from pipeline.catalog.source_config import configs, source_config
from pipeline.contracts.outcome import Outcome, SourceResult
from pipeline.gates.thresholds import THRESHOLDS
from pipeline.health.source_states import source_states, why_text
from pipeline.home.paths import Home
from pipeline.record.records import Records
from pipeline.refresh.permissions import disable, enable, off_sources
from pipeline.warehouse.database import in_memory
from pipeline.warehouse.lineage import Lineage
from pipeline.warehouse.marts import fill
from pipeline.warehouse.query import ask
from tests.scenario import BAD, GOOD, MENDED, SOURCES, Scenario
from tests.sources.helpers import read_sample

SHARED = "source, title, state, last_attempt_day, last_accepted_day, age_days, offers, offers_ranked"
NOBODY: Mapping[str, str] = {}


def states(home: Home, today: date, environment: Mapping[str, str] = NOBODY) -> dict[str, dict[str, Any]]:
    return {row["source"]: row for row in source_states(home, today, environment).dicts()}


def failed(source: str, day: date, error: str) -> Outcome:
    """The outcome of an attempt that begins now, so after those of the scenario."""
    facts: dict[str, Any] = {"status": "failed", "result": SourceResult.UNREACHABLE, "accepted": False}
    facts |= {"reason": error, "error": error, "requests": 2, "failed_requests": 2}
    return Outcome(day=day, source=source, attempt=f"{datetime.now(UTC):{ID_FORMAT}}", **facts)


def test_the_states_of_the_mended_day_say_why_and_until_when(scenario: Scenario) -> None:
    found = states(scenario.home(MENDED), MENDED)
    assert list(found) == sorted(configs())
    columns = ("state", "last_attempt_day", "last_accepted_day", "age_days")
    columns += ("offers", "offers_ranked", "result")
    told = {name: tuple(found[name][column] for column in columns) for name in SOURCES}
    none, fresh = (None, None, 0, 0), (MENDED, MENDED, 0)
    assert told == {
        "crusoe": ("needs_permission", *fresh, 6, 6, "fresh"),
        "cudo": ("failing", MENDED, BAD, 1, 25, 15, "doubted"),
        "ecb": ("current", *fresh, 0, 0, "fresh"),
        "hyperstack": ("current", *fresh, 25, 18, "fresh"),
        "lambda": ("current", *fresh, 28, 28, "fresh"),
        "linode": ("current", *fresh, 13, 13, "fresh"),
        "primeintellect": ("needs_key", MENDED, *none, "needs_key"),
        "runpod": ("needs_permission", *fresh, 46, 29, "fresh"),
        "salad": ("aging", GOOD, GOOD, 2, 60, 60, "fresh"),
        "scaleway": ("current", *fresh, 16, 13, "fresh"),
        "tensordock": ("disabled", MENDED, *none, "retired"),
        "together": ("current", *fresh, 13, 13, "fresh"),
        "vast": ("needs_permission", *fresh, 29, 26, "fresh"),
    }
    off = off_sources(configs().values(), scenario.home(MENDED), {})
    ranked = "; its prices of {} stay in the rankings until {}".format
    assert {name: found[name]["why"] for name in SOURCES} == dict.fromkeys(SOURCES) | {
        "crusoe": off["crusoe"] + ranked(MENDED, MENDED + timedelta(days=7)),
        "cudo": f"7 offers, where 16 are usual (since {MENDED})" + ranked(BAD, BAD + timedelta(days=7)),
        "lambda": f"its prices were replayed from saved pages (observed on {GOOD})",
        "primeintellect": "needs a key in PRIME_API_KEY",
        "runpod": off["runpod"] + ranked(MENDED, MENDED + timedelta(days=7)),
        "salad": f"not asked since {GOOD}" + ranked(GOOD, GOOD + timedelta(days=7)),
        "tensordock": source_config("tensordock").disabled,
        "vast": off["vast"] + ranked(MENDED, MENDED + timedelta(days=2)),
    }


def test_the_command_and_the_published_table_agree(scenario: Scenario) -> None:
    """But for the sources that are off on this machine, of which the published file knows nothing."""
    differences = []
    for day in (GOOD, BAD, MENDED):
        computed = states(scenario.home(day), day)
        off = off_sources(configs().values(), scenario.home(day), {})
        assert {computed[name]["state"] for name in off} == {"needs_permission"}
        for row in scenario.rows(day, f"SELECT {SHARED} FROM main.source_health ORDER BY source"):
            own = tuple(computed[row[0]][name.strip()] for name in SHARED.split(","))
            differences += [(day, own, row)] if own != row and row[0] not in off else []
    assert differences == []


def test_the_newest_attempt_decides_and_not_a_good_morning(copy_of: Callable[..., Home]) -> None:
    """The archive has nothing from a day on which nothing was reached; only the outcomes tell."""
    home = copy_of(GOOD)
    for source in ("lambda", "modal"):
        Records(home).write_outcome(failed(source, GOOD, "dns_error: no such host"))
    found = states(home, GOOD)
    stay = f"its prices of {GOOD} stay in the rankings until {GOOD + timedelta(days=7)}"
    assert found["lambda"]["why"] == f"dns_error: no such host (since {GOOD}); {stay}"
    assert (found["lambda"]["state"], found["lambda"]["age_days"]) == ("failing", 0)
    assert (found["modal"]["state"], found["modal"]["last_attempt_day"]) == ("never_accepted", GOOD)
    assert found["modal"]["why"] == f"dns_error: no such host (since {GOOD})"
    assert (found["nebius"]["state"], found["nebius"]["why"]) == ("not_asked", "not asked yet")
    Records(home).write_outcome(failed("lambda", BAD, "http_500: an internal error"))
    again = states(home, BAD, {"PRIME_API_KEY": "secret"})
    assert again["lambda"]["why"] == f"http_500: an internal error (since {GOOD}, 2 attempts); {stay}"
    assert again["primeintellect"]["state"] == "not_asked", "its key is set since"


def test_the_state_is_of_the_choices_of_now(copy_of: Callable[..., Home]) -> None:
    """It follows the choices for accepted and failed sources alike, even if no refresh has run since."""
    home = copy_of(MENDED)
    disable(["cudo", "linode"], home, MENDED)
    enable(["crusoe"], home, MENDED, {})
    found = states(home, MENDED)
    for name, day in (("cudo", BAD), ("linode", MENDED)):
        off = f"you disabled it on {MENDED}: gpufare sources enable {name}"
        stay = f"its prices of {day} stay in the rankings until {day + timedelta(days=7)}"
        assert (found[name]["state"], found[name]["why"]) == ("needs_permission", f"{off}; {stay}")
    lost = "incomplete: spot: 0 offers, where 1 are usual"
    assert (found["crusoe"]["state"], found["crusoe"]["why"]) == ("current", lost)


def test_without_an_attempt_the_published_state_follows_the_terms() -> None:
    """A schedule that skips a source leaves no attempt."""
    with in_memory("source_health") as connection:
        connection.execute("SET VARIABLE as_of_day = ?::DATE", [GOOD])
        for table in Lineage(connection).marts(["source_health"]):
            fill(connection, table)
        query = "SELECT source, state, why FROM main.source_health WHERE source IN ('crusoe', 'nebius')"
        rows = ask(connection, f"{query} ORDER BY source").rows
    assert rows == [("crusoe", "needs_permission", "terms_forbid"), ("nebius", "not_asked", None)]


MORNING = datetime(2026, 8, 25, 6, tzinfo=UTC)
"""The usual time of the outcomes below."""


def asked(source: str, at: datetime, *, accepted: bool = True) -> Outcome:
    """The outcome of an attempt at a time, on its day."""
    result = SourceResult.FRESH if accepted else SourceResult.CHANGED
    facts: dict[str, Any] = {"status": "captured", "result": result, "accepted": accepted, "requests": 1}
    facts |= {"reason": None if accepted else "no table", "error": None}
    return Outcome(day=at.date(), source=source, attempt=f"{at:{ID_FORMAT}}", **facts)


def write(home: Home, *outcomes: Outcome) -> None:
    """Record outcomes, and one offer for each accepted one."""
    offers = [read_sample(name).offers[:1] for name in ("lambda", "linode", "verda")]
    first = {each[0].source: each for each in offers}
    for outcome in outcomes:
        Records(home).write_outcome(outcome)
        if outcome.accepted:
            Records(home).write_accepted(outcome.day, outcome.source, first[outcome.source])


def state_at(home: Home, source: str, now: datetime) -> tuple[str, str | None]:
    (row,) = (row for row in source_states(home, now.date(), {}, now=now).dicts() if row["source"] == source)
    return row["state"], row["why"]


def test_a_source_that_is_not_asked_at_its_usual_time_is_not_current(tmp_path: Path) -> None:
    """It is before that time. An attempt more, before or after the usual one, moves nothing."""
    home, day = Home(tmp_path), timedelta(days=1)
    write(home, *(asked("lambda", MORNING - n * day) for n in (3, 2, 1)))
    write(home, asked("lambda", MORNING), asked("lambda", MORNING + timedelta(hours=9)))
    write(home, asked("linode", MORNING - day), asked("linode", MORNING - timedelta(hours=3)))
    write(home, asked("linode", MORNING), asked("linode", MORNING + timedelta(minutes=30), accepted=False))
    late = MORNING + day + timedelta(minutes=THRESHOLDS.late_after_minutes)
    moment = timedelta(microseconds=1)
    failed_why = f"no table (since {MORNING.date()})"
    stay = f"its prices of {MORNING.date()} stay in the rankings until {MORNING.date() + 7 * day}"
    assert state_at(home, "lambda", late - moment) == ("current", None)
    assert state_at(home, "linode", late - moment) == ("failing", f"{failed_why}; {stay}")
    assert state_at(home, "lambda", late) == ("aging", f"not asked since {MORNING.date()}; {stay}")
    why = f"not asked since {MORNING.date()}, when it failed: {failed_why}; {stay}"
    assert state_at(home, "linode", late) == ("failing", why)


def test_once_the_others_are_asked_a_source_is_due(tmp_path: Path) -> None:
    """Even if its own last attempt was late in the day. A refresh of a single source makes no other due."""
    home, day = Home(tmp_path), timedelta(days=1)
    write(home, asked("lambda", MORNING + timedelta(hours=14)))
    write(home, *(asked(name, MORNING) for name in ("linode", "verda")))
    write(home, asked("linode", MORNING + day - timedelta(hours=4)))
    late = MORNING + day + timedelta(minutes=THRESHOLDS.late_after_minutes)
    assert state_at(home, "verda", late - timedelta(minutes=1))[0] == "current"
    write(home, asked("verda", MORNING + day))
    assert state_at(home, "lambda", late - timedelta(hours=3))[0] == "current"
    assert state_at(home, "lambda", late)[0] == "aging"


@pytest.mark.parametrize("died", ["while it was asked", "before it was read"])
def test_a_visit_of_a_run_that_died_is_named(died: str, tmp_path: Path) -> None:
    home, now = Home(tmp_path), datetime.now(UTC)
    write(home, asked("lambda", now - timedelta(days=1, hours=1)))
    writer = Archive(home.archive).start("lambda", now.date())
    if died == "before it was read":
        writer.finish("failed")
    state, why = state_at(home, "lambda", now)
    words = "was interrupted" if died == "while it was asked" else "was not read: the run ended before"
    assert state == "aging"
    assert f"its visit of {now:%Y-%m-%d %H:%M} UTC {words}" in str(why)


FAILING = {
    **{"state": "failing", "why": "http_403: no", "kind": "prices", "last_attempt_day": BAD},
    **{"last_attempt_accepted": False, "last_accepted_day": GOOD, "failing_since": BAD, "failed_attempts": 1},
    **{"stale_after_days": 7, "ranked_until": MENDED, "offers_ranked": 1},
}

EXPLAINED: list[tuple[dict[str, Any], str]] = [
    ({"why": "accepted_prices_missing", "failing_since": None},
     f"the prices accepted on {BAD} are no longer in the record; its prices of {GOOD} stay in the rankings "
     f"until {MENDED}"),
    ({"kind": "exchange_rates"}, f"http_403: no (since {BAD}); its last rates are of {GOOD}"),
    ({"offers_ranked": 0}, f"http_403: no (since {BAD}); none of its prices of {GOOD} is ranked"),
    ({"state": "stale", "offers_ranked": 0},
     f"http_403: no (since {BAD}); its prices of {GOOD} are older than 7 days: rankings after {MENDED} omit "
     "them"),
    ({"last_attempt_accepted": True, "last_accepted_day": BAD, "failing_since": None, "state": "stale"},
     f"not asked since {BAD}; its prices of {BAD} are older than 7 days and still ranked, because nothing "
     "newer is published"),
    ({"state": "current"}, "incomplete: http_403: no"),
]  # fmt: skip


def test_states_are_explained() -> None:
    wrong = [(row, why_text(FAILING | row)) for row, words in EXPLAINED if why_text(FAILING | row) != words]
    assert wrong == []
