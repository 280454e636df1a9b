"""A visit to a source: what is asked, in which order and how often, and what is kept of it."""

import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Client
from pipeline.capture.visit import capture_all, check_day, first_requests, sharing_hosts
from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.capture import Capture
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.listing import Answer, Request
from pipeline.home.paths import Home
from pipeline.refresh.refresh import refresh
from tests.conftest import PAGES

from .conftest import Capturing, bodies, capture_many, module, source, stored_bytes
from .site import Asked, Reply, Site

ACME, OTHER = "prices.acme.example", "other.acme.example"
JSON = {"content-type": "application/json"}
OK = Reply(200, b"{}", JSON)


def at(path: str) -> str:
    return f"https://{ACME}/{path}"


def asking(*paths: str, **facts: Any) -> SourceConfig:
    """A source that asks these paths; an answer to a path with a question mark is optional."""
    requests = [{"url": at(path.rstrip("?")), "optional": path.endswith("?")} for path in paths]
    return source(requests=requests, **facts)


def leading(**paths: str) -> Any:
    """A hook of a module: after ``a``, the paths of the argument ``a``, separated by spaces."""

    def following(answer: Answer, config: SourceConfig) -> list[Request]:
        return [Request(at(path)) for path in paths.get(answer.url.rpartition("/")[2], "").split()]

    return following


def says(site: Site, /, **statuses: int) -> None:
    for path, status in statuses.items():
        site.say(ACME, f"/{path}", Reply(status, b"{}", JSON) if status == 200 else Reply(status, b"no"))


def test_requests_are_made_as_the_yaml_has_them_or_the_module(capture: Capturing, site: Site) -> None:
    body = {"q": [1, "größe"], "key": "${KEY}"}
    keyed = {"X-Key": "${KEY}", "X-Both": "${KEY}${TOKEN}", "X-Team": "a"}
    posted = {"url": at("post"), "method": "POST", "json_body": body, "headers": {"Accept": "text/html"}}
    got = {"url": at("get"), "optional": True, "headers": {"X-A": "b"}, "key_headers": keyed}
    config = source(requests=[posted, got, {"url": at("more"), "only_with_key": True}], key_variables=["KEY"])
    sent = '{"q":[1,"größe"],"key":"${KEY}"}'.encode()
    post = Request(at("post"), "POST", {"content-type": "application/json", "accept": "text/html"}, sent)
    get = Request(at("get"), "GET", {"X-A": "b", "X-Team": "a"}, optional=True)
    assert first_requests(config, module(), {"KEY": " "}) == [post, get]
    with_key = Request(get.url, "GET", {**get.headers, "X-Key": "${KEY}"}, optional=True)
    assert first_requests(config, module(), {"KEY": "1"}) == [post, with_key, Request(at("more"))]
    made = module(requests=lambda config, environment: (get, post))
    assert first_requests(config, made, {}) == [get, post]


def order_of(captured: Capture) -> str:
    """The path of each request, with its outcome if it is none of the host's."""
    own = ("ok", "http_403", "http_404", "http_429", "http_5xx")
    ended = [(entry.url.split("/", 3)[3], entry.outcome) for entry in captured.entries]
    return " ".join(path if outcome in own else f"{path}:{outcome}" for path, outcome in ended)


STATUSES = dict.fromkeys("abcdx", 200) | dict.fromkeys(("e1", "e2", "e3", "e4", "e5"), 500)
STATUSES |= {"no": 403, "no2": 403, "busy": 429}
ORDERS = [
    # the source's paths, its module's functions -> the paths in the order in which they were asked
    ("a b", {"next_requests": leading(a="c d", c="e a", d="e")}, "a c e d b"),
    ("x? a", {"next_requests": leading(x="y")}, "a x y"),
    ("no a", {"retry_requests": leading(no="gone", gone="b", b="c")}, "no gone b a"),
    ("no? a", {"retry_requests": leading(no="gone")}, "a no gone"),
    ("no", {"retry_requests": leading(no="no")}, "no"),
    ("private", {"retry_requests": leading(private="a")}, "private:robots_disallowed a"),
    # Failures in a row end a visit, but refusals do not.
    ("e1 e2 a e3 e4 e5 b c", {}, "e1 e2 a e3 e4 e5 b:given_up"),
    ("e1? e2? e3? b? a", {}, "a e1 e2 e3 b:given_up"),
    ("no gone no2 gone2 a", {}, "no gone no2 gone2 a"),
    # A host that limits requests is not asked again in the run, and one that is busy in no other way.
    ("busy b", {}, "busy b:given_up"),
    ("busy", {"retry_requests": leading(busy="a")}, "busy"),
    ("e1 a", {"retry_requests": leading(e1="b")}, "e1 a"),
]


def test_what_is_asked_in_which_order(capture: Capturing, site: Site) -> None:
    says(site, **STATUSES)
    site.say(ACME, "/robots.txt", Reply(200, b"User-agent: *\nDisallow: /private"))
    captures = [capture(asking(*paths.split()), module(**hooks), retries=0) for paths, hooks, _ in ORDERS]
    assert [order_of(captured) for captured in captures] == [order for *_, order in ORDERS]
    optional = [[entry.optional for entry in captures[at].entries] for at in (1, 3)]
    assert optional == [[False, True, True]] * 2


def test_the_date_and_the_age_of_each_answer_are_kept(capture: Capturing, site: Site) -> None:
    """Also if the request failed: they tell whether the clock of this machine is right."""
    site.say(ACME, "/a", Reply(200, b"{}", JSON | {"age": "60"}))  # the server itself adds the date
    site.say(ACME, "/b", Reply(404, b"no", {"age": "60"}))
    for entry in capture(asking("a", "b"), module()).entries:
        assert entry.headers["age"] == "60"
        assert entry.headers["date"].endswith(" GMT")


def test_host_that_limits_requests_is_not_asked_again_in_the_run(capture: Capturing, site: Site) -> None:
    """Other hosts are, also in place of it."""
    elsewhere = Request(f"https://{OTHER}/c")
    site.say(OTHER, "/c", OK)
    retry = module(retry_requests=lambda answer, config: [Request(at("d")), elsewhere])
    for status in (503, 429):
        says(site, a=status)
        captured = capture(asking("a", hosts=[OTHER]), retry, retries=0)
        assert (captured.status, order_of(captured)) == ("captured", "a c")
        assert captured.entries[0].instead == (f"GET {elsewhere.url}",)


def test_why_a_visit_ends_is_told_with_the_number_of_the_rest(capture: Capturing, site: Site) -> None:
    says(site, gpus=200, e1=500, e2=500, e3=500)
    many = [Request(at(str(number // 2)), optional=number < 7_000) for number in range(8_000)]
    limited = capture(asking("gpus", "last"), module(next_requests=lambda a, c: many), requests_per_source=3)
    assert order_of(limited) == "gpus 0 1 3500:request_limit"
    assert (limited.status, limited.requests, limited.failed_requests) == ("partial", 4_002, 4_001)
    assert (limited.entries[-1].optional, limited.entries[-1].sent) == (False, False)
    given_up = capture(asking("e1", "e2", "e3", "a?", "b"), retries=0).entries[-1]
    assert (given_up.url, given_up.more_unsent) == (at("b"), 1)
    assert [entry.error for entry in (limited.entries[-1], given_up)] == [
        "the source needs more requests than it may make (3); 3998 more requests were not asked either",
        "not asked, because 3 requests before it failed; 1 more requests were not asked either",
    ]


def test_paging_has_a_limit(capture: Capturing, site: Site) -> None:
    """Declared pages are followed in the same way as a module's."""
    says(site, gpus=200)
    site.say(ACME, "/gpus", Reply(200, b'{"next": "a"}', JSON))
    paging = {"kind": "cursor", "field": "next", "parameter": "after"}
    captured = capture(source(paging=paging), requests_per_source=1)
    assert order_of(captured) == "gpus gpus?after=a:request_limit"


def test_a_source_whose_own_code_breaks_spares_the_others(site: Site, archive: Archive) -> None:
    """The outcome still names what the host answered."""

    def breaks(*_: object) -> Any:
        raise RuntimeError("broken on purpose")

    says(site, a=200, no=403)
    site.say("prices.good.example", "/gpus", OK)
    broken = "RuntimeError: broken on purpose"
    forbids = f"http_403: the host forbids the request (403): {at('no')} answered 403"
    expected = {
        "requests": ("failed", f"acme.requests: {broken}"),
        "next_requests": ("partial", f"{forbids}; acme.paging: {broken}"),
        "retry_requests": ("partial", f"{forbids}; acme.retry_requests: {broken}"),
        "redact": ("failed", f"redaction_failed: acme.redact: {broken} (and 1 more requests failed)"),
    }
    for hook, found in expected.items():
        modules = {"acme": module(**{hook: breaks}), "good": module()}
        more = {"module_of": modules.__getitem__}
        captures = capture_many(site, archive, [asking("a", "no"), source("good")], **more)
        assert captures["good"].status == "captured"
        assert (captures["acme"].status, captures["acme"].error) == found


def test_what_a_source_redacts_never_reaches_the_disk(
    capture: Capturing, site: Site, archive: Archive
) -> None:
    def redact(body: bytes) -> bytes:
        return json.dumps({"price": json.loads(body)["price"]}).encode() if b"price" in body else b""

    empty = f"the answer is empty: redact leaves nothing of {at('gpus')}"
    cases = [
        (200, b'{"price": 1, "ip": "203.0.113.7"}', "ok", "", [b'{"price": 1}']),
        (200, b'price, "ip": "203.0.113.7"', "redaction_failed", "acme.redact: JSONDecodeError: Exp", []),
        (200, b'"ip": "203.0.113.7"', "empty_body", empty, []),
        (403, b'"ip": "203.0.113.7"', "http_403", "the host forbids", []),
    ]
    for status, body, code, error, kept in cases:
        site.say(ACME, "/gpus", Reply(status, body))
        captured = capture(source(), module(redact=redact), retries=0)
        (entry,) = captured.entries
        assert (entry.outcome, bodies(archive, captured)) == (code, kept)
        assert (entry.error or "").startswith(error)
        assert b"203.0.113.7" not in stored_bytes(archive)
        assert entry.bytes == len(b"".join(kept))


def test_sources_of_different_hosts_are_asked_at_once_and_a_host_once_at_a_time(
    site: Site, archive: Archive
) -> None:
    both, one, alone = threading.Barrier(2, timeout=10), threading.Lock(), []

    def meets_the_other(asked: Asked) -> Reply:
        both.wait()
        return OK

    def slowly(asked: Asked) -> Reply:
        alone.append(one.acquire(blocking=False))
        threading.Event().wait(0.02)
        one.release()
        return OK

    for host in (ACME, "prices.good.example"):
        site.route(host, "/gpus", meets_the_other)
    for number in "123":
        site.route(OTHER, f"/{number}", slowly)
    shared = [source(f"s{n}", requests=[{"url": f"https://{OTHER}/{n}"}]) for n in (1, 2, 3)]
    configs = [shared[0], source("acme"), shared[1], source("good"), shared[2]]
    captures = capture_many(site, archive, configs)
    assert (list(captures), alone) == ([config.name for config in configs], [True] * 3)
    assert len([asked for asked in site.asked if asked.target == "/robots.txt"]) == 3


def test_sources_that_share_a_host_on_any_port_are_one_group() -> None:
    hosts = [("a", "x"), ("b", "y"), ("c", "z:1"), ("d", "x:8443"), ("e", "z", "y")]
    groups = sharing_hosts([source(name, hosts=declared) for name, *declared in hosts])
    assert [[config.name for config in group] for group in groups] == [["a", "d"], ["b", "c", "e"]]


def test_a_live_capture_is_of_today_only(archive: Archive) -> None:
    today = datetime.now(UTC).date()
    with Client() as client:
        check_day(today, client)
        for offset, when in ((-1, "past"), (1, "in the future")):
            day = today + timedelta(days=offset)
            with pytest.raises(GpufareError) as refused:
                capture_all([source()], environment={}, day=day, archive=archive, client=client)
            assert str(refused.value) == (
                f"{day} is {when}: a live price page shows today's prices ({today} UTC) and is never filed "
                "under another day; read the archive of that day, or replay saved pages with --pages"
            )
    assert archive.sources() == []


def test_an_archive_that_cannot_be_written_is_not_a_source_that_did_not_answer(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.archive.write_text("a file where a folder should be")
    report = refresh(home, pages=str(PAGES), sources=["azure"], environment={})
    assert report.failure() == "nothing was published: no answer could be kept (1 asked)"
