"""The date that a page states of itself, in its text, its JSON and its headers."""

from dataclasses import replace
from datetime import date, timedelta

from pipeline.contracts.listing import Answer
from pipeline.gates.page_dates import page_days, stated_days, why_out_of_date
from pipeline.gates.thresholds import THRESHOLDS
from tests.gates.screening import DAY
from tests.offers.builders import CAPTURED, config

BODIES = {
    "<p>Last verified 18 May 2026</p>": date(2026, 5, 18),
    "<p>Last updated: <b>May 18, 2026</b></p>": date(2026, 5, 18),
    "Prices as of 2026-05-18": date(2026, 5, 18),
    "last reviewed on 18 Sept. 2026": None,
    '{"lastUpdated": "2026-05-18T10:00:00Z", "x": {"updated_at":"2026-06-01"}}': date(2026, 6, 1),
    "Last updated 2026-02-31 and Last updated 2026-02-01": date(2026, 2, 1),
    "Founded on 18 May 2016; since 2026-05-18": None,
    "": None,
}


def days_of(answer: Answer) -> dict[str, date]:
    return page_days([answer], stated_days([answer]))


def test_the_newest_date_that_a_page_states() -> None:
    for body, day in BODIES.items():
        found = days_of(replace(CAPTURED, body=body.encode()))
        assert found == ({CAPTURED.sha256: day} if day else {}), body


def test_the_date_in_the_headers() -> None:
    headers = {
        ("Last-Modified", "Mon, 18 May 2026 10:00:00 GMT"): date(2026, 5, 18),
        ("last-modified", "yesterday"): None,
        ("last-modified", "Thu, 01 Jan 1970 00:00:00 GMT"): None,
        ("last-modified", f"Mon, 1 Jan {'9' * 20} 00:00:00 GMT"): None,
        ("age", "9" * 9_000): DAY - timedelta(days=3660),
        ("Age", "172800"): DAY - timedelta(days=2),
        ("age", "9" * 40): DAY - timedelta(days=3660),
        ("age", "-1"): None,
    }
    for (name, value), day in headers.items():
        found = days_of(replace(CAPTURED, headers={name: value}))
        assert found == ({CAPTURED.sha256: day} if day else {}), value


def test_a_page_that_says_that_it_is_old_is_refused() -> None:
    """Headers say nothing of a page whose prices have not changed for long."""
    most = THRESHOLDS.max_page_age_days

    def why(days: int, **expect: int) -> str | None:
        body = f"Last verified {DAY - timedelta(days=days)}".encode()
        old = {"last-modified": "Mon, 18 May 2020 10:00:00 GMT"}
        answers = [replace(CAPTURED, body=body, headers=old)]
        return why_out_of_date(answers, stated_days(answers), config(**expect), DAY)

    assert why(most) is None
    assert why(most + 1) == (
        f"https://acme.example/prices says that it is of {DAY - timedelta(days=most + 1)}, more than {most} "
        "days ago: an old page was read, or max_page_age_days in catalog/sources/acme.yaml is too low"
    )
    assert why(9, max_page_age_days=9) is None
    assert why(10, max_page_age_days=9) is not None


def test_a_saved_page_is_as_old_as_it_was_when_it_was_saved() -> None:
    """It may be read under a later day."""
    saved, most = CAPTURED.observed_at.date(), THRESHOLDS.max_page_age_days

    def why(days: int) -> str | None:
        answers = [replace(CAPTURED, body=f"Last verified {saved - timedelta(days=days)}".encode())]
        return why_out_of_date(answers, stated_days(answers), config(), saved + timedelta(days=400))

    assert why(most) is None
    assert f"more than {most} days before {saved}: an old page was read" in str(why(most + 1))
