"""Hosts and ports that a source may ask: ``name:port``, and a site with and without ``www.``."""

import json

import pytest
from pydantic import ValidationError

from pipeline.capture.visit import sharing_hosts
from pipeline.catalog.source_config import configs
from pipeline.contracts.hosts import declared_host, host_of
from pipeline.contracts.listing import Request

from .conftest import Capturing, codes, module, source
from .site import Reply, Site

ACME = "acme.example"
WWW = "www.acme.example"
API = "api.acme.example"
JSON = {"content-type": "application/json"}
GOOD = Reply(200, b'{"h100": 2.99}', JSON)


def moved(to: str, status: int = 301) -> Reply:
    return Reply(status, b"", {"location": to})


HOSTS = {
    "https://acme.example/gpus": "acme.example",
    "https://WWW.Acme.Example:443/gpus": "acme.example",
    "https://acme.example:8443": "acme.example:8443",
    "https://www.acme.example:8443": "acme.example:8443",
    "http://acme.example:80/": "acme.example",
    "http://acme.example:443/": "acme.example:443",
    "https://wwwacme.example/": "wwwacme.example",
    "https://www.example/": "www.example",
    "https://acme.example:http/": "",
    "https://acme.example:99999/": "",
    "https://[::1/": "",
    "gpus": "",
}
DECLARED = {"Acme.example": ACME, WWW: ACME, f"{ACME}:443": ACME, f"{WWW}:8443": f"{ACME}:8443"}
NO_HOSTS = [
    "",
    "https://acme.example",
    "acme.example/gpus",
    "acme.example:",
    "acme.example:0",
    "acme.example:65536",
    "acme.example:https",
    "*.acme.example",
    "acme example",
    ".acme.example",
    "user@acme.example",
    "[::1]",
]


def test_the_host_of_an_address() -> None:
    assert {url: host_of(url) for url in HOSTS} == HOSTS


def test_a_declared_host() -> None:
    assert {text: declared_host(text) for text in DECLARED} == DECLARED
    for text in NO_HOSTS:
        with pytest.raises(ValidationError, match="name:port, without https:// and path"):
            source(hosts=[text])


def test_a_request_to_its_own_port_is_sent(capture: Capturing, site: Site) -> None:
    site.say(f"{API}:8443", "/v2/pricing", GOOD)
    captured = capture(source(requests=[{"url": f"https://{API}:8443/v2/pricing"}]))
    assert captured.status == "captured"
    # robots.txt is that of the port, too
    assert [(asked.host, asked.target) for asked in site.asked] == [
        (f"{API}:8443", "/robots.txt"),
        (f"{API}:8443", "/v2/pricing"),
    ]


def test_an_interface_on_a_port_is_declared_with_it(capture: Capturing, site: Site) -> None:
    site.say(f"{API}:8443", "/v2/pricing", GOOD)
    site.say(f"{API}:8443", "/robots.txt", Reply(200, b"User-agent: *\nDisallow: /"))
    for declared, outcome in ((API, "robots_disallowed"), (f"{API}:8443", "ok")):
        captured = capture(source(requests=[{"url": f"https://{API}:8443/v2/pricing"}], api_hosts=[declared]))
        assert codes(captured) == [outcome]


def test_sources_on_two_ports_of_a_name_are_asked_one_after_the_other() -> None:
    apart, plain, on_a_port = source("apart"), source(hosts=[API]), source("other", hosts=[f"{API}:8443"])
    groups = sharing_hosts([plain, apart, on_a_port])
    assert [[config.name for config in group] for group in groups] == [["apart"], ["acme", "other"]]


ALLOWED = [
    ([f"{API}:8443"], f"https://{API}:8443/more", True),
    ([f"{API}:8443"], f"https://{API}:8444/more", False),
    ([f"{API}:8443"], f"https://{API}/more", False),
    ([API], f"https://{API}:8443/more", False),
    ([API, f"{API}:8443"], f"https://{API}/more", True),
    ([API], f"https://{API}:443/more", True),
    ([API], f"https://www.{API}/more", True),
    ([WWW], f"https://{ACME}/more", True),
    ([ACME], f"https://{WWW}/more", True),
    ([ACME], f"https://www.{WWW}/more", False),
    ([ACME], f"https://evil{ACME}/more", False),
    ([ACME], f"https://evil.{ACME}/more", False),
    ([ACME], f"https://{WWW}:8443/more", False),
]
"""The hosts that a source declares, an address, and whether the source may ask it."""


@pytest.mark.parametrize("way", ["further request", "redirect"])
def test_only_declared_hosts_and_ports_are_asked(capture: Capturing, site: Site, way: str) -> None:
    own, refused = "https://prices.acme.example/gpus", f"{way.split()[-1]}_refused".replace("request", "host")
    wrong = []
    for declared, asked, allowed in ALLOWED:
        site.say("prices.acme.example", "/gpus", moved(asked) if way == "redirect" else GOOD)
        netloc = asked.removeprefix("https://").removesuffix("/more").removesuffix(":443")
        site.say(netloc, "/more", GOOD)
        site.asked.clear()
        first = Request(own if way == "redirect" else asked)
        asks = module(requests=lambda config, environment, first=first: [first])
        ended = codes(capture(source(hosts=declared), asks))
        arrived = netloc in {each.host for each in site.asked}
        if (ended, arrived) != (["ok"] if allowed else [refused], allowed):
            wrong.append((declared, asked, ended))
    assert wrong == []


@pytest.mark.parametrize(("first", "second"), [(ACME, WWW), (WWW, ACME)])
def test_a_site_redirects_between_its_two_names(
    capture: Capturing, site: Site, first: str, second: str
) -> None:
    site.say(first, "/gpus", moved(f"https://{second}/gpus"))
    site.say(second, "/gpus", GOOD)
    captured = capture(source(requests=[{"url": f"https://{first}/gpus"}]))
    assert captured.status == "captured"
    assert captured.entries[0].final_url == f"https://{second}/gpus"


def test_rules_for_robots_are_read_where_the_site_has_moved_them(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/robots.txt", moved(f"https://{WWW}/robots.txt"))
    site.say(WWW, "/robots.txt", Reply(200, b"User-agent: *\nDisallow: /"))
    captured = capture(source(requests=[{"url": f"https://{ACME}/gpus"}]))
    assert codes(captured) == ["robots_disallowed"]


def test_a_key_stays_behind_at_the_redirect_to_www(capture: Capturing, site: Site) -> None:
    site.say(API, "/gpus", moved(f"https://www.{API}/gpus"))
    site.say(f"www.{API}", "/gpus", GOOD)
    ask = {"url": f"https://{API}/gpus", "headers": {"Authorization": "Bearer ${ACME_KEY}"}}
    config = source(requests=[ask], api_hosts=[API], key_variables=["ACME_KEY"])
    assert capture(config, environment={"ACME_KEY": "s3cret-value"}).status == "captured"
    first, second = site.pages_asked()
    assert "authorization" in first.headers
    assert "authorization" not in second.headers


@pytest.mark.parametrize("by", ["module", "yaml"])
def test_a_key_follows_a_link_to_the_same_origin_only(capture: Capturing, site: Site, by: str) -> None:
    pages = {
        f"https://{API}/2": True,
        f"https://{API.upper()}:443/2": True,
        f"https://www.{API}/2": False,
        f"https://{API}:8443/2": False,
        f"http://{API}/2": False,
    }
    config = source(
        requests=[{"url": f"https://{API}/gpus", "headers": {"Authorization": "Bearer ${ACME_KEY}"}}],
        api_hosts=[API, f"{API}:8443", f"{API}:80"],
        key_variables=["ACME_KEY"],
        paging={"kind": "next_link", "field": "next"} if by == "yaml" else None,
    )
    for host in (API, f"www.{API}", f"{API}:8443"):
        site.say(host, "/2", GOOD)

    def next_requests(answer, config):
        return [Request(answer.json()["next"])] if "gpus" in answer.url else []

    functions = module() if by == "yaml" else module(next_requests=next_requests)
    sent = {}
    for page in pages:
        site.say(API, "/gpus", Reply(200, json.dumps({"next": page}).encode(), JSON))
        assert capture(config, functions, {"ACME_KEY": "s3cret-value"}).status == "captured"
        first, second = site.pages_asked()[-2:]
        assert "authorization" in first.headers
        sent[page] = "authorization" in second.headers
    assert sent == pages


def test_the_facts_of_a_request_apply_on_its_port_and_at_www(capture: Capturing, site: Site) -> None:
    """A further page is held to the content types of the yaml's request on the same host and port."""
    for host in (f"{API}:8443", f"{WWW}:8443"):
        site.say(host, "/gpus", Reply(200, b"<html>", JSON))
    requests = [
        {"url": f"https://{API}:8443/gpus", "content_types": ["application/json"]},
        {"url": f"https://{WWW}:8443/gpus", "content_types": ["application/json"]},
    ]
    captured = capture(source(requests=requests))
    assert codes(captured) == ["wrong_content_type"] * 2


def test_currencies_name_their_hosts_in_either_spelling() -> None:
    requests = [{"url": f"https://{WWW}/eur"}, {"url": f"https://{API}:8443/usd"}]
    config = source(requests=requests, currency="EUR", currencies={"EUR": ACME, "USD": f"{API}:8443"})
    assert config.currencies_of(f"https://{WWW}/eur") == {"EUR"}
    assert config.currencies_of(f"https://{ACME}/eur") == {"EUR"}
    assert config.currencies_of(f"https://{API}:8443/usd") == {"USD"}
    assert config.currencies_of(f"https://{API}/usd") == {"EUR", "USD"}
    with pytest.raises(ValidationError, match=r"hosts that are not asked: api\.acme\.example"):
        source(requests=requests, currency="EUR", currencies={"EUR": ACME, "USD": API})


def test_every_request_of_the_catalogue_may_be_sent() -> None:
    for config in configs().values():
        for facts in config.requests:
            assert facts.host, facts.url
            assert facts.host in config.allowed_hosts
