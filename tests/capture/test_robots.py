"""robots.txt is asked once, honoured, and kept for a day."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipeline.capture.http.client import Client, Limits, ReplayServer, Rules
from pipeline.capture.http.robots import RobotsRules
from pipeline.capture.http.secrets import Secrets, WatchedEnvironment
from pipeline.contracts.outcome import OutcomeCode

from .conftest import FAST, Capturing, source
from .site import Reply, Site

ACME = "prices.acme.example"


def codes(captured) -> list[str]:
    return [entry.outcome for entry in captured.entries]


def robots(text: str) -> Reply:
    return Reply(200, text.encode(), {"content-type": "text/plain"})


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (robots("User-agent: *\nDisallow: /gpus"), "robots_disallowed"),
        (robots("User-agent: *\nDisallow: /\nAllow: /gpus$"), "ok"),
        (robots("User-agent: gpufare\nDisallow: /\n\nUser-agent: *\nAllow: /"), "robots_disallowed"),
        (robots("User-agent: otherbot\nDisallow: /"), "ok"),
        (robots("User-agent: *\nDisallow: /private"), "ok"),
        (robots(""), "ok"),
        (robots("<html>not a robots file</html>"), "ok"),
        (robots("User-agent: *\nDisallow: /gpus\n" + "# filler\n" * 100_000), "robots_disallowed"),
        (Reply(404), "ok"),
        (Reply(403), "ok"),
        (Reply(410), "ok"),
        (Reply(429), "http_429"),
        (Reply(500), "http_5xx"),
        (Reply(302, b"", {"location": "https://elsewhere.example/robots.txt"}), "ok"),
        (Reply(302, b"", {"location": "http://127.0.0.1:1/robots.txt"}), "ok"),
    ],
)
def test_what_robots_txt_says_is_done(capture: Capturing, site: Site, reply: Reply, expected: str) -> None:
    site.say(ACME, "/robots.txt", reply)
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    captured = capture(source())
    assert codes(captured) == [expected]
    assert len(site.pages_asked()) == (1 if expected == "ok" else 0)


def test_the_reason_names_robots_txt(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/robots.txt", Reply(503))
    error = capture(source()).error or ""
    assert error.startswith("http_5xx: robots.txt could not be read")
    assert "503" in error


def asked_robots(site: Site) -> int:
    return sum(asked.target == "/robots.txt" for asked in site.asked)


def test_a_host_that_asks_for_a_short_wait_is_asked_again(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/robots.txt", Reply(429, b"", {"retry-after": "1"}), robots("User-agent: *\nAllow: /"))
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    assert codes(capture(source())) == ["ok"]
    first, second = [asked.at for asked in site.asked if asked.target == "/robots.txt"]
    assert second - first >= 1


@pytest.mark.parametrize("status", [429, 503])
def test_a_host_that_asks_for_a_long_wait_is_left_alone(capture: Capturing, site: Site, status: int) -> None:
    """Its pages are not asked, and the outcome says why and for how long."""
    site.say(ACME, "/robots.txt", Reply(status, b"", {"retry-after": "31"}))
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    captured = capture(source(time_limit_seconds=60))
    assert site.pages_asked() == []
    assert asked_robots(site) == 1
    assert "robots.txt could not be read, so no request was sent" in (captured.error or "")
    assert f"answered {status} and asks to wait 31 s" in (captured.error or "")


def test_a_host_that_says_not_now_is_asked_again_by_the_next_run(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/robots.txt", Reply(429, b"", {"retry-after": "31"}))
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    assert codes(capture(source())) == ["http_429"]
    site.say(ACME, "/robots.txt", robots(""))
    assert codes(capture(source())) == ["ok"]


def test_a_documented_api_is_asked_without_robots_txt(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/robots.txt", robots("User-agent: *\nDisallow: /"))
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    captured = capture(source(requests=[{"url": f"https://{ACME}/gpus"}], api_hosts=[ACME]))
    assert codes(captured) == ["ok"]
    assert [asked.target for asked in site.asked] == ["/gpus"]


def test_asked_once_for_a_host(capture: Capturing, site: Site) -> None:
    for path in ("/a", "/b"):
        site.say(ACME, path, Reply(200, b"{}"))
    capture(source(requests=[{"url": f"https://{ACME}/a"}, {"url": f"https://{ACME}/b"}]))
    assert [asked.target for asked in site.asked] == ["/robots.txt", "/a", "/b"]


def test_kept_for_a_day(site: Site, tmp_path: Path) -> None:
    site.say(ACME, "/robots.txt", robots("User-agent: *\nDisallow: /secret\nCrawl-delay: 7"))

    def decisions() -> list[OutcomeCode]:
        with Client(limits=Limits(**FAST), replay=ReplayServer(site.base_url)) as client:
            rules = RobotsRules(client, tmp_path)
            return [rules.decide(f"https://{ACME}{path}", RULES).code for path in ("/secret", "/gpus")]

    for _ in range(2):
        assert decisions() == [OutcomeCode.ROBOTS_DISALLOWED, OutcomeCode.OK]
    assert len(site.asked) == 1

    (kept,) = tmp_path.glob("*.json")
    content = json.loads(kept.read_text())
    content["fetched_at"] = (datetime.now(UTC) - timedelta(hours=25)).isoformat()
    kept.write_text(json.dumps(content))
    decisions()
    assert len(site.asked) == 2

    kept.write_text("{damaged")
    decisions()
    assert len(site.asked) == 3


def test_a_crawl_delay_is_reported(site: Site) -> None:
    site.say(ACME, "/robots.txt", robots("User-agent: *\nCrawl-delay: 7"))
    with Client(limits=Limits(**FAST), replay=ReplayServer(site.base_url)) as client:
        decision = RobotsRules(client, None).decide(f"https://{ACME}/gpus", RULES)
    assert decision.crawl_delay_seconds == 7


RULES = Rules(
    source="acme",
    allowed_hosts=frozenset({ACME}),
    secrets=Secrets(WatchedEnvironment({}), frozenset()),
    deadline=float("inf"),
    body_bytes=2**19,
    truncate=True,
)
