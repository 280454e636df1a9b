"""robots.txt is asked once for a host and a run, and honoured."""

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Client, Limits, ReplayServer, Rules
from pipeline.capture.http.response import Response
from pipeline.capture.visit import capture_all
from pipeline.contracts.listing import Request

from .conftest import DAY, FAST, Capturing, codes, module, moved, source
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


PAUSES = [
    # robots.txt, seconds between requests in the source's yaml -> seconds kept
    ("User-agent: *\nCrawl-delay: 7", 3, 7),
    ("User-agent: *\nCrawl-delay: 2", 3, 3),
    ("", 3, 3),
    ("", 0, 0),
]


class Watched(Client):
    """Notes the pause asked for after each request; with a replay server none is made."""

    pauses: dict[str, float]

    def fetch(self, request: Request, rules: Rules) -> Response:
        self.pauses[request.url] = rules.spacing_seconds
        return super().fetch(request, rules)


def test_the_longer_of_the_hosts_and_the_sources_pause_is_kept(site: Site, archive: Archive) -> None:
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    for text, own, kept in PAUSES:
        site.say(ACME, "/robots.txt", robots(text))
        with Watched(limits=Limits(**FAST), replay=ReplayServer(site.base_url)) as client:
            client.pauses = {}
            more = {"environment": {}, "module_of": lambda name: module()}
            capture_all([source(spacing_seconds=own)], day=DAY, archive=archive, client=client, **more)
        assert client.pauses[GPUS] == kept
