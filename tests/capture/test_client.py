"""Parts of the client that are clearest by themselves."""

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import (
    Client,
    Limits,
    ReplayServer,
    Rules,
    _retry_after_seconds,
    user_agent,
)
from pipeline.capture.http.response import Response
from pipeline.contracts.listing import Request
from pipeline.contracts.outcome import OutcomeCode

from .conftest import DAY, FAST, capture_one, rules, source
from .site import Reply, Site

ACME = "prices.acme.example"


def test_retry_after_in_seconds_or_as_a_date() -> None:
    expected = {"0": 0, "120": 120, " 7 ": 7, "Fri, 31 Dec 1999 23:59:59 GMT": 0}
    expected |= dict.fromkeys(["", "soon", "-5", "1.5", "²"])
    assert {text: _retry_after_seconds({"retry-after": text}) for text in expected} == expected
    assert _retry_after_seconds({}) is None
    assert _retry_after_seconds({"x-ms-ratelimit-retailprices-retry-after": "9"}) == 9  # Azure's own
    in_an_hour = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    assert 3500 < (_retry_after_seconds({"retry-after": in_an_hour}) or 0) <= 3600


@given(st.binary().map(lambda raw: raw.decode("latin-1")))
def test_any_retry_after_header_is_handled(header: str) -> None:
    seconds = _retry_after_seconds({"retry-after": header})
    assert seconds is None or seconds >= 0


def test_the_user_agent_can_stand_in_a_header() -> None:
    assert user_agent().isascii()
    assert user_agent().startswith("gpufare/")


def test_a_host_has_its_rest_between_requests() -> None:
    with Client() as client:
        with client._spaced(ACME, rules(spacing_seconds=0.2)):
            pass
        ended = time.monotonic()
        with client._spaced("another.example", rules()):
            assert time.monotonic() - ended < 0.2
        with client._spaced(ACME, rules()):
            assert time.monotonic() - ended >= 0.2


def test_a_rest_that_outlasts_the_source_ends_it() -> None:
    with Client() as client:
        with client._spaced(ACME, rules(spacing_seconds=3600)):
            pass
        fetched = client.fetch(Request(f"https://{ACME}/gpus"), rules())
    assert fetched.code is OutcomeCode.SOURCE_TIMEOUT


@pytest.mark.parametrize(("own", "wished", "kept"), [(1, 7, 7), (9, 7, 9)])
def test_the_longer_of_two_pauses_is_kept(
    site: Site, archive: Archive, own: float, wished: float, kept: float
) -> None:
    """The source's own spacing, and the crawl delay that robots.txt wishes."""
    spacings = {}

    class Noting(Client):
        def fetch(self, request: Request, rules: Rules) -> Response:
            spacings[request.url] = rules.spacing_seconds
            return super().fetch(request, rules)

    site.say(ACME, "/robots.txt", Reply(200, f"User-agent: *\nCrawl-delay: {wished}".encode()))
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    with Noting(limits=Limits(**FAST), replay=ReplayServer(site.base_url)) as client:
        config = source(spacing_seconds=own)
        capture_one(config, day=DAY, archive=archive, client=client)
    assert spacings[f"https://{ACME}/gpus"] == kept
