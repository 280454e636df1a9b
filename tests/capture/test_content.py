"""Answers are judged by their first bytes; a content type that does not fit is a warning."""

import time
from pathlib import Path

import pytest

from pipeline.capture.http.client import Client, Limits, ReplayServer
from pipeline.capture.http.content import format_of
from pipeline.capture.http.response import Response
from pipeline.capture.http.secrets import Secrets
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


def fetched(site: Site, body: bytes, content_type: str | None, expected: tuple[str, ...]) -> Response:
    site.say(ACME, "/gpus", Reply(200, body, {"content-type": content_type} if content_type else {}))
    secrets = Secrets({"ACME_KEY": "s3cret-value"}, {"ACME_KEY"})
    with Client(limits=Limits(**FAST), replay=ReplayServer(site.base_url)) as client:
        return client.fetch(
            Request(f"https://{ACME}/gpus?key=s3cret-value"), rules(secrets=secrets, content_types=expected)
        )


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b'{"h100": 2.99}', "application/json", JSON),
        (b'{"h100": 2.99}', "Application/JSON; charset=utf-8", JSON),
        (b'{"h100": 2.99}', "application/x-javascript", SPOT),
        (b'callback({"h100": 2.99});', "application/x-javascript", SPOT),
        (b"<!DOCTYPE html><p>", "text/html; charset=utf-8", HTML),
        (b"<div>a page without a head</div>", "text/html", HTML),
        (b"<gesmes:Envelope/>", "text/xml", XML),
        (b"# Prices\n", "text/markdown", ("text/markdown", "text/plain")),
        (b"<html>", "text/plain", ()),
    ],
)
def test_an_answer_of_the_expected_type_is_read(
    site: Site, body: bytes, content_type: str, expected: tuple[str, ...]
) -> None:
    response = fetched(site, body, content_type, expected)
    assert (response.code, response.warning, response.body) == (OutcomeCode.OK, None, body)


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b'{"h100": 2.99}', "application/x-javascript", JSON),
        (b'{"h100": 2.99}', "text/html", JSON),
        (b'{"h100": 2.99}', None, JSON),
        (b'\xef\xbb\xbf \r\n[{"h100": 2.99}]', "binary/octet-stream", JSON),
        (b"<!doctype html><p>", "text/plain", HTML),
        (b"<!-- made by a site builder -->\n<HTML>", None, HTML),
        (b'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "x">', "application/xhtml+xml", HTML),
        (b'<?xml version="1.0"?><gesmes:Envelope/>', "application/octet-stream", XML),
    ],
)
def test_another_type_than_the_expected_is_a_warning(
    site: Site, body: bytes, content_type: str | None, expected: tuple[str, ...]
) -> None:
    response = fetched(site, body, content_type, expected)
    assert (response.code, response.body) == (OutcomeCode.OK, body)
    assert response.warning is not None
    assert f"as {content_type or 'no content type'}" in response.warning
    assert expected[0] in response.warning
    assert "s3cret" not in response.warning


@pytest.mark.parametrize(
    ("body", "content_type", "expected", "nature"),
    [
        (b"<!doctype html><title>Just a moment", "application/json", JSON, "an HTML page"),
        (b"\xef\xbb\xbf\n<html>", "application/json", JSON, "an HTML page"),
        (b"<html>", "text/html", JSON, "an HTML page"),
        (b"<Error><Code>AccessDenied</Code></Error>", "application/json", JSON, "a fragment of markup"),
        (b'<?xml version="1.0"?><Error/>', "application/x-javascript", SPOT, "XML"),
        (b'{"error": "moved"}', "text/html", HTML, "JSON"),
        (b"<html>maintenance", "text/xml", XML, "an HTML page"),
        (b"h100,2.99\n", "text/csv", JSON, "text/csv"),
        (b"h100,2.99\n", None, JSON, "no content type"),
        (b"<p>a fragment</p>", "text/plain", HTML, "text/plain"),
        (b"plain words", "text/plain", HTML, "text/plain"),
    ],
)
def test_another_format_than_the_expected_is_refused(
    site: Site, body: bytes, content_type: str | None, expected: tuple[str, ...], nature: str
) -> None:
    response = fetched(site, body, content_type, expected)
    assert response.code is OutcomeCode.WRONG_CONTENT_TYPE
    assert f"sent {nature}" in (response.error or "")
    assert f"expected {' or '.join(expected)}" in (response.error or "")


def test_a_long_comment_costs_no_time() -> None:
    began = time.monotonic()
    assert format_of(b"<!--" + b" <!-- -" * 1_000_000) == "markup"
    assert time.monotonic() - began < 0.5


def test_every_sample_page_begins_like_its_type() -> None:
    """Every source's own page passes the rules that its live answers must pass."""
    from pipeline.capture.http.content import wrong_content
    from pipeline.capture.index import read_body
    from pipeline.capture.replay import page_entries

    checked = 0
    for folder in sorted((Path(__file__).parents[1] / "pages").iterdir()):
        config = configs().get(folder.name)
        if config is None or not folder.is_dir():
            continue
        types = {facts.url: facts.content_types for facts in config.requests}
        for entry in page_entries(folder, config):
            if entry.usable and types.get(entry.url):
                stated = entry.headers.get("content-type", "").split(";")[0].strip().lower()
                problem = wrong_content(
                    read_body(folder, entry), stated or types[entry.url][0], types[entry.url]
                )
                assert problem is None, f"{folder.name}: {entry.url}"
                checked += 1
    assert checked > 20
