"""A visit to a source: what is asked, how, how often, and what of it is kept."""

import gzip
import hashlib
import json
import logging
import re
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Client
from pipeline.capture.http.secrets import Secrets
from pipeline.capture.visit import capture_all
from pipeline.catalog.source_config import configs
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.listing import Request
from pipeline.home.paths import Home
from pipeline.refresh.ingest import record_day

from .conftest import DAY, Capturing, bodies, capture_many, codes, module, source, stored_bytes
from .site import Reply, Site

ACME = "prices.acme.example"
KEY = "k3y/0f+the test&"
IN_A_URL = "k3y%2F0f%2Bthe%20test%26"
SPELLINGS = (
    KEY,
    IN_A_URL,
    "k3y/0f%2Bthe%20test%26",
    "k3y%2F0f%2Bthe+test%26",
    "k3y\\/0f+the test&",
    "k3y/0f+the test&amp;",
)


def urls(*paths: str) -> list[dict[str, str]]:
    return [{"url": f"https://{ACME}{path}"} for path in paths]


def test_how_the_client_introduces_itself(
    capture: Capturing, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    capture(source())
    sent = site.pages_asked()[0].headers
    assert sent["user-agent"].startswith("gpufare/")
    assert sent["user-agent"].endswith(" (+https://github.com/gpufare/gpufare)")
    assert sent["accept-language"].startswith("en-US")
    assert sent["accept-encoding"] == "gzip"
    assert sent["host"] == ACME
    assert sent["x-gpufare-source"] == "acme"

    monkeypatch.setenv("GPUFARE_CONTACT", "ops@example.org")
    capture(source())
    assert site.pages_asked()[1].headers["user-agent"].endswith(" (+ops@example.org)")


def test_the_request_arrives_as_the_yaml_has_it(capture: Capturing, site: Site, archive: Archive) -> None:
    url = f"https://{ACME}/US%20East%20(N.%20Virginia)/index.json?$filter=name%20eq%20'p5'&x=1+2"
    body = {"query": "{ gpuTypes { id } }", "größe": 1}
    config = source(
        requests=[
            {"url": url, "headers": {"Accept": "application/json"}},
            {"url": f"https://{ACME}/graphql", "method": "POST", "json_body": body},
        ]
    )
    site.say(ACME, "/US%20East%20(N.%20Virginia)/index.json", Reply(200, b"{}"))
    site.say(ACME, "/graphql", Reply(200, b"{}"))
    captured = capture(config)
    assert captured.status == "captured"
    get, post = site.pages_asked()
    assert get.target == "/US%20East%20(N.%20Virginia)/index.json?$filter=name%20eq%20'p5'&x=1+2"
    assert get.headers["accept"] == "application/json"
    assert post.method == "POST"
    assert post.headers["content-type"] == "application/json"
    assert post.body == '{"query":"{ gpuTypes { id } }","größe":1}'.encode()
    first, second = captured.entries
    assert first.url == url
    assert first.body_sha256 is None
    assert second.body_sha256 == hashlib.sha256(post.body).hexdigest()


def test_a_packed_answer_is_archived_unpacked(capture: Capturing, site: Site, archive: Archive) -> None:
    headers = {"content-type": "application/json", "content-encoding": "gzip", "set-cookie": "id=1"}
    site.say(ACME, "/gpus", Reply(200, gzip.compress(b'{"a":1}'), headers))
    captured = capture(source())
    assert bodies(archive, captured) == [b'{"a":1}']
    (entry,) = captured.entries
    assert entry.file == "0001.json.gz"
    assert entry.bytes == captured.entries[0].bytes == 7
    assert entry.sha256 == captured.entries[0].sha256 == hashlib.sha256(b'{"a":1}').hexdigest()
    assert entry.headers["set-cookie"] == "[redacted]"


def test_cookies_are_not_carried_along(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/a", Reply(200, b"{}", {"set-cookie": "id=1"}))
    site.say(ACME, "/b", Reply(200, b"{}"))
    capture(source(requests=urls("/a", "/b")))
    assert "cookie" not in site.pages_asked()[1].headers


def test_pages_are_followed_in_order_and_once(capture: Capturing, site: Site, archive: Archive) -> None:
    following = {"/a1": "/a2", "/a2": "/a3", "/a3": "/a1"}  # the last leads back to the first

    def next_requests(answer, config):
        path = answer.url.removeprefix(f"https://{ACME}")
        return [Request(f"https://{ACME}{following[path]}")] if path in following else []

    for path in ("/a1", "/a2", "/a3", "/b"):
        site.say(ACME, path, Reply(200, path.encode()))
    captured = capture(source(requests=urls("/a1", "/b")), module(next_requests=next_requests))
    assert captured.status == "captured"
    assert bodies(archive, captured) == [b"/a1", b"/a2", b"/a3", b"/b"]


def test_paging_has_a_limit(capture: Capturing, site: Site) -> None:
    def next_requests(answer, config):
        number = int(answer.url.partition("=")[2] or 0)
        return [Request(f"https://{ACME}/gpus?page={number + 1}")]

    site.say(ACME, "/gpus", Reply(200, b"{}"))
    captured = capture(source(), module(next_requests=next_requests), requests_per_source=5)
    assert codes(captured) == ["ok"] * 5 + ["request_limit"]
    assert captured.status == "partial"
    assert len(site.pages_asked()) == 5


def test_a_page_that_leads_elsewhere_is_not_asked(capture: Capturing, site: Site, other_site: Site) -> None:
    elsewhere = [
        f"{other_site.base_url}/x",
        "https://evil.example/x",
        f"https://{ACME}@evil.example/x",
        f"https://user:password@{ACME}/x",
        f"https://{ACME}.evil.example/x",
        "http://[::1",
        "https://\x00/",
        "file:///etc/passwd",
        "",
    ]
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    leads = module(next_requests=lambda answer, config: [Request(url) for url in elsewhere])
    assert codes(capture(source(), leads)) == ["ok", *["host_refused"] * len(elsewhere)]
    paging = {"kind": "next_link", "field": "next"}
    for link in ("https://evil.example/x", "/x"):  # also one that the yaml declares
        site.say(ACME, "/gpus", Reply(200, json.dumps({"next": link}).encode()))
        assert codes(capture(source(paging=paging))) == ["ok", "host_refused"]
    assert len(site.pages_asked()) == 3
    assert other_site.asked == []


def test_declared_pages_are_followed(capture: Capturing, site: Site, archive: Archive) -> None:
    site.say(ACME, "/gpus", Reply(200, b'{"next": "a"}'))
    site.say(ACME, "/gpus?after=a", Reply(200, b'{"next": null}'))
    paging = {"kind": "cursor", "field": "next", "parameter": "after"}
    outcome = capture(source(paging=paging))
    assert (outcome.status, codes(outcome)) == ("captured", ["ok", "ok"])


def test_pages_that_cannot_be_counted_make_a_partial_capture(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/gpus", Reply(200, b'{"items": [1]}'))
    outcome = capture(
        source(paging={"kind": "page_number", "items": "items", "size_parameter": "n"}), module()
    )
    assert outcome.status == "partial"
    assert "cannot be counted" in (outcome.error or "")


def test_only_failures_in_a_row_end_a_visit(capture: Capturing, site: Site) -> None:
    paths = [f"/{number}" for number in range(9)]
    for number, path in enumerate(paths):
        site.say(ACME, path, Reply(200, b"{}") if number == 2 else Reply(500))
    captured = capture(source(requests=urls(*paths)), retries=0)
    assert codes(captured) == ["http_5xx"] * 2 + ["ok"] + ["http_5xx"] * 3 + ["given_up"]
    assert (captured.requests, captured.failed_requests) == (9, 8)
    assert len(site.pages_asked()) == 6


def test_one_missing_page_makes_a_partial_capture(capture: Capturing, site: Site, archive: Archive) -> None:
    site.say(ACME, "/a", Reply(200, b"{}"))
    captured = capture(source(requests=urls("/a", "/gone")))
    assert captured.status == "partial"
    assert codes(captured) == ["ok", "http_404"]
    assert bodies(archive, captured) == [b"{}"]
    assert (captured.error or "").startswith("http_404")


def test_sources_of_different_hosts_are_asked_at_once(site: Site, archive: Archive) -> None:
    both = threading.Barrier(2, timeout=10)

    def meets_the_other(asked):
        both.wait()
        return Reply(200, b"{}")

    for name in ("acme", "good"):
        site.route(f"prices.{name}.example", "/gpus", meets_the_other)
    captures = capture_many(site, archive, [source("acme"), source("good")])
    assert [captured.status for captured in captures.values()] == ["captured", "captured"]


def test_a_host_is_asked_one_request_at_a_time(site: Site, archive: Archive) -> None:
    def slowly(asked):
        threading.Event().wait(0.02)
        return Reply(200, b"{}")

    for path in ("/1", "/2", "/3"):
        site.route(ACME, path, slowly)
    shared = [source(f"s{number}", requests=urls(f"/{number}"), hosts=[ACME]) for number in (1, 2, 3)]
    captures = capture_many(site, archive, shared)
    assert [captured.status for captured in captures.values()] == ["captured"] * 3
    assert site.most_at_once[ACME] == 1
    assert len([asked for asked in site.asked if asked.target == "/robots.txt"]) == 1


def test_progress_has_a_line_per_source(site: Site, archive: Archive) -> None:
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    lines: list[str] = []
    capture_many(site, archive, [source("acme"), source("good")], progress=lines.append)
    acme, good = sorted(lines)
    assert re.fullmatch(r"acme: captured, 2 bytes in \d+\.\d s", acme)
    assert good.startswith("good: failed, ")


# --- keys ---------------------------------------------------------------------------------------------


def keyed(**facts) -> dict:
    ask = {
        "url": f"https://{ACME}/gpus?key=${{ACME_KEY}}",
        "method": "POST",
        "headers": {"Authorization": "Bearer ${ACME_KEY}"},
        "json_body": {"key": "${ACME_KEY}"},
    }
    return {"requests": [ask], "key_variables": ["ACME_KEY"], **facts}


def test_without_its_key_a_source_needs_one_and_nothing_is_asked(
    capture: Capturing, site: Site, archive: Archive
) -> None:
    for environment in ({}, {"ACME_KEY": ""}, {"ACME_KEY": "  "}):
        captured = capture(source(**keyed()), environment=environment)
        assert captured.status == "needs_key"
        assert "ACME_KEY" in (captured.error or "")
        assert archive.captures("acme", DAY)[-1] == captured
        assert [(entry.outcome, entry.sent) for entry in captured.entries] == [("needs_key", False)]
    assert site.asked == []


def test_a_module_that_asks_nothing_without_a_key_needs_a_key(capture: Capturing) -> None:
    captured = capture(source(key_variables=["ACME_KEY"]), module(requests=lambda config, environment: []))
    assert (captured.status, captured.entries) == ("needs_key", ())
    captured = capture(source(), module(requests=lambda config, environment: [{}["gpus"]]))
    assert captured.status == "failed"


def test_an_optional_key_does_not_make_a_capture_partial(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/page", Reply(200, b"{}"))
    captured = capture(source(**keyed() | {"requests": [*urls("/page"), *keyed()["requests"]]}))
    assert codes(captured) == ["ok", "needs_key"]
    assert (captured.status, captured.error, captured.code) == ("captured", None, None)


def test_a_key_is_sent_and_stands_nowhere_else(
    capture: Capturing, site: Site, archive: Archive, caplog: pytest.LogCaptureFixture
) -> None:
    sent = ", ".join(f'"{spelling}"' for spelling in SPELLINGS)
    echo = f'{{"you sent": [{sent}], "next": "https://{ACME}/more?key={IN_A_URL}"}}'.encode()
    headers = {"content-type": "application/json", "x-echo": KEY, "set-cookie": KEY}
    site.say(ACME, "/gpus", Reply(200, echo, headers))
    site.say(ACME, "/more", Reply(302, b"", {"location": f"https://evil.example/?key={SPELLINGS[3]}"}))
    config = source(**keyed(hosts=["cdn.acme.example"]))

    def next_requests(answer, config):
        link = answer.json().get("next")
        return [Request(link)] if link else []

    with caplog.at_level(logging.DEBUG):
        captured = capture(config, module(next_requests=next_requests), {"ACME_KEY": f" {KEY}\n"})

    first, second = site.pages_asked()
    assert first.target == f"/gpus?key={IN_A_URL}"
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert json.loads(first.body) == {"key": KEY}
    assert second.target == f"/more?key={IN_A_URL}"  # the page was read without the key and asked with it
    assert codes(captured) == ["ok", "redirect_refused"]
    for spelling in SPELLINGS:
        assert spelling not in repr(captured)
        assert spelling.encode() not in stored_bytes(archive)
        assert spelling not in caplog.text
    kept, _ = captured.entries
    assert kept.url == f"https://{ACME}/gpus?key=${{ACME_KEY}}"
    assert kept.body_sha256 == hashlib.sha256(b'{"key":"${ACME_KEY}"}').hexdigest()


def test_a_key_that_the_module_put_in_itself_is_not_kept_either(
    capture: Capturing, site: Site, archive: Archive
) -> None:
    """A module gets placeholders of its keys, and no other variable."""
    seen = []

    def requests(config, environment):
        seen.append(environment)
        body = json.dumps({"key": environment["ACME_KEY"]}).encode()
        return [Request(f"https://{ACME}/gpus?key={environment['ACME_KEY']}", "POST", {}, body)]

    site.say(ACME, "/gpus", Reply(200, f'{{"echo": "{KEY}"}}'.encode()))
    config = source(key_variables=["ACME_KEY", "ACME_TOKEN"])
    environment = {"ACME_KEY": KEY, "ACME_TOKEN": " ", "HOME": "/root"}
    captured = capture(config, module(requests=requests), environment)
    assert seen == [{"ACME_KEY": "${ACME_KEY}"}]
    (sent,) = site.pages_asked()
    assert (sent.target, json.loads(sent.body)) == (f"/gpus?key={IN_A_URL}", {"key": KEY})
    assert KEY.encode() not in stored_bytes(archive)
    assert bodies(archive, captured) == [b'{"echo": "${ACME_KEY}"}']


def test_an_answer_gets_no_variable_that_the_source_does_not_name(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    site.say(ACME, "/x", Reply(200, b"{}"))

    def next_requests(answer, config):
        return [Request(f"https://{ACME}/x?a=${{HOME_SECRET}}")]

    capture(source(), module(next_requests=next_requests), {"HOME_SECRET": KEY})
    assert not any(spelling in site.pages_asked()[1].target for spelling in SPELLINGS)


def test_headers_with_keys_stay_behind_at_a_redirect_to_another_host(capture: Capturing, site: Site) -> None:
    config = source(
        requests=[
            {
                "url": f"https://{ACME}/gpus",
                "headers": {"Authorization": "Bearer ${ACME_KEY}", "Accept": "text/html", "X-Team": "a"},
            }
        ],
        hosts=["cdn.acme.example"],
        key_variables=["ACME_KEY"],
    )
    site.say(ACME, "/gpus", Reply(302, b"", {"location": "/here"}))
    site.say(ACME, "/here", Reply(302, b"", {"location": "https://cdn.acme.example/there"}))
    site.say("cdn.acme.example", "/there", Reply(200, b"{}"))
    assert capture(config, environment={"ACME_KEY": KEY}).status == "captured"
    first, same_host, other_host = site.pages_asked()
    assert same_host.headers["authorization"] == first.headers["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in other_host.headers
    assert "x-team" not in other_host.headers
    assert other_host.headers["accept"] == "text/html"


def test_a_body_with_a_key_does_not_go_to_another_host(capture: Capturing, site: Site) -> None:
    site.say(ACME, "/gpus", Reply(307, b"", {"location": "https://cdn.acme.example/there"}))
    captured = capture(source(**keyed(hosts=["cdn.acme.example"])), environment={"ACME_KEY": KEY})
    assert codes(captured) == ["redirect_refused"]
    assert site.pages_asked("cdn.acme.example") == []


def test_what_becomes_of_a_query_at_a_redirect(capture: Capturing, site: Site) -> None:
    ask = {"url": f"https://{ACME}/q", "method": "POST", "json_body": {"q": 1}}
    site.say(ACME, "/there", Reply(200, b"{}"))
    for status in (301, 302, 303, 307, 308):
        site.say(ACME, "/q", Reply(status, b"", {"location": "/there"}))
        assert capture(source(requests=[ask])).status == "captured"
        second = site.pages_asked()[-1]
        kept = ("POST", b'{"q":1}', True) if status in (307, 308) else ("GET", b"", False)
        assert (second.method, second.body, "content-type" in second.headers) == kept, status


# --- what must not be stored ----------------------------------------------------------------------------


def test_what_a_source_redacts_never_reaches_the_disk(
    capture: Capturing, site: Site, archive: Archive
) -> None:
    def redact(body: bytes) -> bytes:
        content = json.loads(body)
        del content["ip"]
        return json.dumps(content).encode()

    site.say(ACME, "/gpus", Reply(200, b'{"price": 1, "ip": "203.0.113.7"}'))
    captured = capture(source(), module(redact=redact))
    assert bodies(archive, captured) == [b'{"price": 1}']
    assert captured.entries[0].sha256 == hashlib.sha256(b'{"price": 1}').hexdigest()
    assert b"203.0.113.7" not in stored_bytes(archive)

    site.say(ACME, "/gpus", Reply(200, b'no json, but "ip": "203.0.113.7"'))
    captured = capture(source(), module(redact=redact))
    assert codes(captured) == ["redaction_failed"]
    assert b"203.0.113.7" not in stored_bytes(archive)

    site.say(ACME, "/gpus", Reply(500, b'no json, but "ip": "203.0.113.7"'))
    captured = capture(source(), module(redact=redact), retries=0)
    assert codes(captured) == ["http_5xx"]
    assert b"203.0.113.7" not in stored_bytes(archive)


# --- answers like those before --------------------------------------------------------------------------


def test_every_page_is_asked_for_whole_and_304_is_not_an_answer(
    capture: Capturing, site: Site, archive: Archive
) -> None:
    """A host whose validator is wrong could make an old price look fresh."""
    headers = {"etag": '"v1"', "last-modified": "Fri, 21 Aug 2026 00:00:00 GMT"}
    site.say(ACME, "/gpus", Reply(200, b"h100,2.99", headers), Reply(304))
    assert capture(source()).status == "captured"
    second = capture(source())
    assert not {"if-none-match", "if-modified-since"} & set(site.pages_asked()[1].headers)
    assert (second.status, codes(second)) == ("failed", ["http_other"])
    assert archive.answers(second) == []


# --- days -----------------------------------------------------------------------------------------------


def test_a_live_capture_is_of_today_only(archive: Archive) -> None:
    with Client() as client:
        for offset in (-1, 1, -400):
            day = datetime.now(UTC).date() + timedelta(days=offset)
            with pytest.raises(GpufareError, match=rf"{day} .*--pages"):
                capture_all([source()], environment={}, day=day, archive=archive, client=client)
    assert archive.sources() == []


def test_a_replay_is_filed_under_the_day_and_time_that_it_stands_for(
    capture: Capturing, site: Site, archive: Archive
) -> None:
    site.say(ACME, "/gpus", Reply(200, b"{}", {"x-gpufare-observed-at": "2026-08-22T08:00:00+02:00"}))
    captured = capture(source())
    assert captured.day == DAY
    (answer,) = archive.answers(captured)
    assert answer.observed_at == datetime(2026, 8, 22, 6, tzinfo=UTC)


def test_a_disabled_source_is_not_asked(capture: Capturing, site: Site) -> None:
    captured = capture(source(disabled="its prices are drawn by a browser"))
    assert (captured.status, captured.error) == ("disabled", "its prices are drawn by a browser")
    assert site.asked == []


def test_an_unwritable_archive_fails_the_source_and_says_why(
    capture: Capturing, site: Site, tmp_path: Path
) -> None:
    site.say(ACME, "/gpus", Reply(200, b"{}"))
    in_the_way = tmp_path / "file"
    in_the_way.write_text("a file where a folder should be")
    captures = capture_many(site, Archive(in_the_way), [source()])
    assert captures["acme"].status == "failed"
    assert "file" in (captures["acme"].error or "")


def test_every_variable_of_the_catalogues_requests_is_a_key_variable() -> None:
    for name, config in configs().items():
        named = Secrets.names_in(str([facts.model_dump() for facts in config.requests]))
        assert named <= set(config.key_variables), name


def test_links_without_end_are_counted_and_one_is_listed(
    capture: Capturing, site: Site, tmp_path: Path
) -> None:
    site.say(ACME, "/gpus", Reply(200, b"{}"))

    def next_requests(answer, config):
        return [Request(f"https://{ACME}/{number // 2}", optional=number < 7_000) for number in range(8_000)]

    config = source(requests=urls("/gpus", "/last"))
    captured = capture(config, module(next_requests=next_requests), requests_per_source=3)
    assert [entry.outcome for entry in captured.entries] == ["ok"] + ["http_404"] * 2 + ["request_limit"]
    assert captured.requests == 4_002
    assert captured.failed_requests == 4_001
    last = captured.entries[-1]
    assert not last.optional
    assert last.error == (
        "the source needs more requests than it may make (3); 3998 more requests were not asked either"
    )
    assert captured.status == "partial"
    assert "more requests failed" in (captured.error or "")
    assert record_day(config, DAY, [captured], Home(tmp_path)).requests == 4_002
