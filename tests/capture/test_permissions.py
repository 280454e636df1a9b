"""Permission to ask a source: the user's choice decides, then its terms, then the user's own key."""

from datetime import date
from pathlib import Path

from pipeline.capture.permissions import Choice, Choices, read_choices, why_off
from pipeline.home.paths import Home

from .conftest import source

FORBIDDEN = {"automated": "forbidden", "url": "https://a.example/terms", "read_on": "2026-10-05", "note": "x"}
ENABLE = "gpufare sources enable acme"
TERMS = "its terms are reported to forbid automated reading (https://a.example/terms, read on 2026-10-05)"
SINCE = date(2026, 8, 22)
WANTED, UNWANTED = (Choices({"acme": Choice(asked=asked, since=SINCE)}) for asked in (True, False))
OPEN, CLOSED = source(key_variables=["A", "B"]), source(terms=FORBIDDEN, key_variables=["A", "B"])
KEYED = [{"url": "https://a.example/", "headers": {"X": "${A}"}}]
REASONS = [
    (OPEN, Choices(), {}, None),
    (OPEN, UNWANTED, {}, f"you disabled it on 2026-08-22: {ENABLE}"),
    (CLOSED, Choices(), {}, f"{TERMS}: {ENABLE}, or set A and B"),
    (CLOSED, Choices(), {"A": "1", "B": " "}, f"{TERMS}: {ENABLE}, or set A and B"),
    (CLOSED, Choices(), {"A": "1", "B": "2"}, None),
    (CLOSED, WANTED, {}, None),
    (CLOSED, UNWANTED, {"A": "1", "B": "2"}, f"you disabled it on 2026-08-22: {ENABLE}"),
    (source(terms=FORBIDDEN), Choices(), {}, f"{TERMS}: {ENABLE}"),
    (source(terms=FORBIDDEN, key_variables=["A"], requests=KEYED), Choices(), {}, None),
]


def test_why_a_source_is_not_asked() -> None:
    assert [(*case, why_off(*case)) for *case, _ in REASONS] == REASONS


def test_choices_that_cannot_be_read_leave_every_source_off(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert read_choices(home) == Choices()
    home.permissions.write_text('{"acme": {"asked": true, "since": "2026-08-22", "other": 1}}')
    assert read_choices(home) == WANTED
    home.permissions.write_text("{")
    choices = read_choices(home)
    assert (choices.problem or "").startswith(
        f"{home.permissions}: it is damaged. gpufare does not know which"
    )
    assert (why_off(OPEN, choices, {}) or "").startswith("permissions.json in the data home cannot be read")
