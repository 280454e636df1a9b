"""robots.txt is asked once, honoured, and kept for a day."""

import pytest

from pipeline.capture.http.client import Client, Limits, ReplayServer
from pipeline.capture.http.robots import RobotsRules

from .conftest import FAST, Capturing, codes, rules, source
from .site import Reply, Site

ACME = "prices.acme.example"


def robots(text: str) -> Reply:
    return Reply(200, text.encode(), {"content-type": "text/plain"})


REPLIES = [
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
]
"""Answers to a request for robots.txt, with the resulting outcome of a request for /gpus."""


def test_robots_txt_is_obeyed(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    found = []
    for reply, _ in REPLIES:
        site.say(ACME, "/robots.txt", reply)
        site.asked.clear()
        (code,) = codes(capture(source()))
        assert len(site.pages_asked()) == (code == "ok")
        found.append(code)
    assert found == [expected for _, expected in REPLIES]


def test_the_reason_names_robots_txt(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/robots.txt", Reply(503))
    error = capture(source()).error or ""
    assert error.startswith("http_5xx: the host has an internal error: robots.txt could not be read")
    assert "503" in error


def asked_robots(site: Site) -> int:
    return sum(asked.target == "/robots.txt" for asked in site.asked)


def test_a_host_that_asks_for_a_short_wait_is_asked_again(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/robots.txt", Reply(429, b"", {"retry-after": "0"}), robots("User-agent: *\nAllow: /"))
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    assert codes(capture(source())) == ["ok"]
    assert asked_robots(site) == 2


@pytest.mark.parametrize("status", [429, 503])
def test_host_that_asks_for_a_long_wait_is_not_asked_again(
    capture: Capturing, site: Site, status: int
) -> None:
    """Its pages are not asked, and the outcome says why and for how long."""
    site.say(ACME, "/robots.txt", Reply(status, b"", {"retry-after": "31"}))
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    captured = capture(source(time_limit_seconds=60))
    assert site.pages_asked() == []
    assert asked_robots(site) == 1
    assert "robots.txt could not be read, so no request was sent" in (captured.error or "")
    assert f"answered {status} and asks to wait 31 s" in (captured.error or "")


def test_host_that_answers_429_is_asked_again_by_the_next_run(capture: Capturing, site: Site) -> None:
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


def test_a_crawl_delay_is_reported(site: Site) -> None:
    site.say(ACME, "/robots.txt", robots("User-agent: *\nCrawl-delay: 7"))
    with Client(limits=Limits(**FAST), replay=ReplayServer(site.base_url)) as client:
        assert RobotsRules(client).crawl_delay_seconds(f"https://{ACME}/gpus", rules()) == 7
