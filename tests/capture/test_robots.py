"""robots.txt is asked once for a host and a run, and honoured."""

from pipeline.capture.http.client import Client, Limits, ReplayServer
from pipeline.capture.http.robots import RobotsRules

from .conftest import FAST, Capturing, codes, moved, rules, source
from .site import Reply, Site

ACME = "prices.acme.example"
GPUS = f"https://{ACME}/gpus"


def robots(text: str) -> Reply:
    return Reply(200, text.encode(), {"content-type": "text/plain"})


FOR_ALL = "User-agent: *\nDisallow: /gpus"
REPLIES = [
    # the answer for robots.txt -> the outcome of a request for /gpus
    (robots("User-agent: *\nDisallow: /\nAllow: /gpus$"), "ok"),
    (robots("User-agent: gpufare\nDisallow: /\n\nUser-agent: *\nAllow: /"), "robots_disallowed"),
    (robots("User-agent: otherbot\nDisallow: /"), "ok"),
    (robots(""), "ok"),
    (robots(f"{FOR_ALL}\n" + "# filler\n" * 100_000), "robots_disallowed"),
    (Reply(200, b"\xff\n" + FOR_ALL.encode()), "robots_disallowed"),
    (Reply(410), "ok"),
    (Reply(403), "ok"),
    (Reply(429), "http_429"),
    (Reply(500), "http_5xx"),
    (moved("http://127.0.0.1:1/robots.txt"), "ok"),
    (moved("/robots.txt"), "ok"),
    (moved(f"https://www.{ACME}/robots.txt"), "robots_disallowed"),
]


def test_robots_txt_is_obeyed(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    site.say(f"www.{ACME}", "/robots.txt", robots("User-agent: *\nDisallow: /"))
    found = []
    for reply, _ in REPLIES:
        site.say(ACME, "/robots.txt", reply)
        site.asked.clear()
        (code,) = codes(capture(source()))
        assert len(site.pages_asked()) == (code == "ok")
        found.append(code)
    assert found == [expected for _, expected in REPLIES]


def test_robots_txt_is_asked_once_for_a_host_and_never_for_an_api(capture: Capturing, site: Site) -> None:
    """A port is a host of its own."""
    asked = {(): ["/robots.txt", "/a", "/b"], (ACME,): ["/a", "/b"]}
    asked[(f"{ACME}:8443",)] = asked[()]
    for path in ("/a", "/b"):
        site.say(ACME, path, Reply(200, b"{}"))
    requests = [{"url": f"https://{ACME}/a"}, {"url": f"https://{ACME}/b"}]
    found = {}
    for api_hosts in asked:
        site.asked.clear()
        capture(source(requests=requests, api_hosts=api_hosts))
        found[api_hosts] = [each.target for each in site.asked]
    assert found == asked


def test_a_crawl_delay_is_a_pause(site: Site) -> None:
    with Client(limits=Limits(**FAST), replay=ReplayServer(site.base_url)) as client:
        for text, seconds in (("User-agent: *\nCrawl-delay: 7", 7), ("", 0)):
            site.say(ACME, "/robots.txt", robots(text))
            assert RobotsRules(client).crawl_delay_seconds(GPUS, rules()) == seconds
