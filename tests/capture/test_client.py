"""Parts of the client that are clearest by themselves."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.capture.client import _retry_after_seconds, user_agent


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0),
        ("120", 120),
        (" 7 ", 7),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 0),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("²", None),
    ],
)
def test_retry_after_in_seconds_or_as_a_date(header: str, seconds: float | None) -> None:
    assert _retry_after_seconds({"retry-after": header}) == seconds


def test_retry_after_as_a_date_to_come() -> None:
    header = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    seconds = _retry_after_seconds({"retry-after": header})
    assert seconds is not None
    assert 3500 < seconds <= 3600


def test_no_retry_after() -> None:
    assert _retry_after_seconds({}) is None


@given(st.binary().map(lambda raw: raw.decode("latin-1")))
def test_whatever_stands_in_retry_after(header: str) -> None:
    seconds = _retry_after_seconds({"retry-after": header})
    assert seconds is None or seconds >= 0


def test_the_user_agent_can_stand_in_a_header() -> None:
    assert user_agent().isascii()
    assert user_agent().startswith("gpufare/")
