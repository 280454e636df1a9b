"""Answers are judged by their first bytes; a content type that does not fit is a warning."""

import time
from pathlib import Path

from pipeline.capture.http.client import Client, Limits, ReplayServer
from pipeline.capture.http.content import format_of, judged
from pipeline.capture.http.secrets import Secrets
from pipeline.capture.index import read_body
from pipeline.capture.replay import page_entries
from pipeline.catalog.source_config import configs
from pipeline.contracts.listing import Request
from pipeline.contracts.outcome import OutcomeCode

from .conftest import FAST, rules
from .site import Reply, Site

ACME = "prices.acme.example"
JSON = ("application/json",)
HTML = ("text/html",)
XML = ("text/xml", "application/xml")
SPOT = next(
    facts.content_types for facts in configs()["aws"].requests if facts.url.endswith(("spot.json", "spot.js"))
)

EXPECTED = [
    (b'{"h100": 2.99}', "application/json", JSON),
    (b'{"h100": 2.99}', "application/x-javascript", SPOT),
    (b'callback({"h100": 2.99});', "application/x-javascript", SPOT),
    (b"<!DOCTYPE html><p>", "text/html", HTML),
    (b"<div>a page without a head</div>", "text/html", HTML),
    (b"<gesmes:Envelope/>", "text/xml", XML),
    (b"# Prices\n", "text/markdown", ("text/markdown", "text/plain")),
    (b"<html>", "text/plain", ()),
]
MISLABELLED = [
    (b'{"h100": 2.99}', "application/x-javascript", JSON),
    (b'{"h100": 2.99}', "text/html", JSON),
    (b'{"h100": 2.99}', "", JSON),
    (b'\xef\xbb\xbf \r\n[{"h100": 2.99}]', "binary/octet-stream", JSON),
    (b"<!doctype html><p>", "text/plain", HTML),
    (b"<!-- made by a site builder -->\n<HTML>", "", HTML),
    (b'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "x">', "application/xhtml+xml", HTML),
    (b'<?xml version="1.0"?><gesmes:Envelope/>', "application/octet-stream", XML),
]
WRONG = [
    (b"<!doctype html><title>Just a moment", "application/json", JSON, "an HTML page"),
    (b"\xef\xbb\xbf\n<html>", "application/json", JSON, "an HTML page"),
    (b"<html>", "text/html", JSON, "an HTML page"),
    (b"<Error><Code>AccessDenied</Code></Error>", "application/json", JSON, "a fragment of markup"),
    (b'<?xml version="1.0"?><Error/>', "application/x-javascript", SPOT, "XML"),
    (b'{"error": "moved"}', "text/html", HTML, "JSON"),
    (b"<html>maintenance", "text/xml", XML, "an HTML page"),
    (b"h100,2.99\n", "text/csv", JSON, "text/csv"),
    (b"h100,2.99\n", "", JSON, "no content type"),
    (b"<p>a fragment</p>", "text/plain", HTML, "text/plain"),
    (b"plain words", "text/plain", HTML, "text/plain"),
]


def test_an_answer_of_the_expected_type_is_read() -> None:
    assert [judged(*case) for case in EXPECTED] == [(None, None)] * len(EXPECTED)


def test_another_type_than_the_expected_is_a_warning(site: Site) -> None:
    for body, stated, expected in MISLABELLED:
        wrong, warning = judged(body, stated, expected)
        assert wrong is None, (body, stated)
        assert (warning or "").startswith(f"sent {' or '.join(expected)} as {stated or 'no content type'}")
    site.say(ACME, "/gpus", Reply(200, b"{}", {"content-type": "Text/HTML; charset=utf-8"}))
    asked = rules(secrets=Secrets({"ACME_KEY": "s3cret-value"}, {"ACME_KEY"}), content_types=JSON)
    with Client(limits=Limits(**FAST), replay=ReplayServer(site.base_url)) as client:
        response = client.fetch(Request(f"https://{ACME}/gpus?key=s3cret-value"), asked)
    assert (response.code, response.body) == (OutcomeCode.OK, b"{}")
    assert (response.warning or "").startswith(
        f"https://{ACME}/gpus?key=${{ACME_KEY}} sent application/json as text/html"
    )


def test_another_format_than_the_expected_is_refused() -> None:
    for body, stated, expected, nature in WRONG:
        problem, warning = judged(body, stated, expected)
        assert warning is None
        assert problem is not None
        assert problem.startswith(f"sent {nature}"), (body, stated)
        assert f"expected {' or '.join(expected)}" in problem


def test_a_long_comment_costs_no_time() -> None:
    began = time.monotonic()
    assert format_of(b"<!--" + b" <!-- -" * 1_000_000) == "markup"
    assert time.monotonic() - began < 0.5


def test_every_sample_page_begins_like_its_type() -> None:
    """Every source's own page passes the rules that its live answers must pass."""
    checked = 0
    for folder in sorted((Path(__file__).parents[1] / "pages").iterdir()):
        config = configs().get(folder.name)
        if config is None or not folder.is_dir():
            continue
        types = {facts.url: facts.content_types for facts in config.requests}
        for entry in page_entries(folder, config):
            if entry.usable and (expected := types.get(entry.url)):
                stated = entry.headers.get("content-type", "").split(";")[0].strip().lower() or expected[0]
                problem, _ = judged(read_body(folder, entry), stated, expected)
                assert problem is None, f"{folder.name}: {entry.url}"
                checked += 1
    assert checked > 20
