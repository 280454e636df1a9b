"""Keys: sent to their own host only, and kept out of everything that is stored, shown or logged."""

import hashlib
import html
import json
import logging
from base64 import b64decode, b64encode, urlsafe_b64encode
from typing import Any
from urllib.parse import quote, unquote

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.http.response import RequestFailedError
from pipeline.capture.http.secrets import KeyStaysError, Secrets, placeholders
from pipeline.capture.visit import first_requests
from pipeline.catalog.source_config import configs
from pipeline.contracts.listing import Request
from pipeline.sources import source_module

from .conftest import Capturing, bodies, capture_many, codes, module, moved, source, stored_bytes
from .site import Reply, Site

ACME, CDN = "prices.acme.example", "cdn.acme.example"
KEY = "k3y/0f+the test&"
IN_A_URL = "k3y%2F0f%2Bthe%20test%26"
OF_A_FORM = "k3y%2F0f%2Bthe+test%26"
DECIMAL = "".join(f"&#{ord(each)};" for each in KEY)
SCRIPT = "".join(f"\\u{ord(each):04x}" for each in KEY)
SPELLINGS = (
    KEY,
    IN_A_URL,
    "k3y/0f%2Bthe%20test%26",
    OF_A_FORM,
    IN_A_URL.lower(),
    "".join(f"%{ord(each):02x}" for each in KEY),
    quote(quote(IN_A_URL)),
    "k3y\\/0f+the test&",
    SCRIPT,
    SCRIPT.upper().replace("U", "u"),
    SCRIPT.replace("\\", "\\\\"),
    "".join(f"\\x{ord(each):02X}" for each in KEY),
    "".join(f"\\u{{{ord(each):x}}}" for each in KEY),
    "k3y/0f+the test&amp;",
    "k3y&sol;0f&plus;the test&AMP",
    DECIMAL,
    DECIMAL.replace("#", "#000").replace(";", ""),
    html.escape(html.escape(DECIMAL)),
    "".join(f"&#x{ord(each):x};" for each in KEY),
    "".join(f"&#X00{ord(each):X};" for each in KEY),
    "&#107;3y%2f0f\\u002bthe&#x20;test&amp;amp;",
    KEY.encode().hex(),
    KEY.encode().hex().upper(),
)
ASK = {
    "url": f"https://{ACME}/gpus?key=${{ACME_KEY}}",
    "method": "POST",
    "headers": {"Authorization": "Bearer ${ACME_KEY}"},
    "json_body": {"key": "${ACME_KEY}"},
}
KEYED: dict[str, Any] = {"requests": [ASK], "key_variables": ["ACME_KEY"]}


def test_keys_are_filled_in_and_taken_out() -> None:
    environment = {"ACME_KEY": f" {KEY}\n", "LONGER": KEY + "x", "SHORT": "12345", "BLANK": " ", "HOME": "/"}
    names = ("ACME_KEY", "LONGER", "SHORT", "BLANK")
    secrets = Secrets(environment, names)
    assert placeholders(environment, names) == {name: f"${{{name}}}" for name in names[:3]}
    text = "${ACME_KEY} ${HOME} ${SHORT} ${} $ACME_KEY"
    filled = secrets.fill(Request("https://a/?k=" + text, "POST", {"X": text}, text.encode() + b"\xff"))
    said = "${HOME} 12345 ${} $ACME_KEY"
    assert filled == Request(
        f"https://a/?k={IN_A_URL} {said}", "POST", {"X": f"{KEY} {said}"}, f"{KEY} {said}".encode() + b"\xff"
    )
    assert secrets.fill(Request("https://a/")) == Request("https://a/")
    with pytest.raises(RequestFailedError, match=r"^needs a key: set BLANK$"):
        secrets.fill(Request("https://a/?${BLANK}"))
    for spelling in SPELLINGS:
        assert secrets.redact(f"<{spelling}>") == "<${ACME_KEY}>"
        assert secrets.redact_bytes(f"<{spelling}>".encode()) == b"<${ACME_KEY}>"
        assert secrets.contains_secret("other", f"<{spelling}>".encode())
    assert secrets.redact(f"{KEY}x 12345") == "${LONGER} 12345"  # too short to be told from other text
    assert not secrets.contains_secret("12345", b"")
    assert secrets.names_in(f"{text} ${{B_2}} ${{2}}") == {"ACME_KEY", "HOME", "SHORT", "B_2"}
    sensitive = """Authorization cookie proxy-authenticate proxy-authorization set-cookie set-cookie2
    www-authenticate x-api-key x-auth-token""".split()  # noqa: SIM905
    assert secrets.redact_headers(dict.fromkeys(sensitive, "v") | {"X-Echo": KEY}) == {
        **{name.lower(): "[redacted]" for name in sensitive},
        "x-echo": "${ACME_KEY}",
    }


@pytest.mark.parametrize("before", ["", "u:", "us:", "use:"])
@pytest.mark.parametrize("after", ["", "!", "!!"])
def test_keys_are_taken_out_of_base64(before: str, after: str) -> None:
    """At any place among its groups of three bytes; at each end, less than a byte of the key is left."""
    secrets = Secrets({"ACME_KEY": KEY + "?>"}, ["ACME_KEY"])
    for encode in (b64encode, urlsafe_b64encode):
        sent = encode(f"{before}{KEY}?>{after}".encode()).decode()
        for spelled in (sent, quote(sent, safe=""), sent.replace("/", "\\/")):
            begin, _, end = secrets.redact(spelled).partition("${ACME_KEY}")
            end = unquote(end)
            assert (begin, end) == (sent[: len(begin)], sent[len(sent) - len(end) :])
            assert b64decode(begin[: len(begin) // 4 * 4]) == before.encode()[: len(begin) // 4 * 3]
            assert len(begin) <= -(-len(before) * 4 // 3)
            assert len(end.rstrip("=")) <= -(-len(after) * 4 // 3) + 1
    unrelated = b64encode(b"k3y/0f+the TEST?>").decode()
    assert secrets.redact(unrelated) == unrelated


def test_an_answer_whose_key_cannot_be_taken_out_is_refused() -> None:
    """Such as one in UTF-16, or escaped in ways that no single pattern covers."""
    secrets = Secrets({"ACME_KEY": KEY}, ["ACME_KEY"])
    layers = quote(html.escape(html.escape(SCRIPT)).replace("\\", "&bsol;").replace("u", "&#117;"))
    for body in (*(KEY.encode(each) for each in ("utf-16", "utf-16-be", "utf-32")), layers.encode()):
        with pytest.raises(KeyStaysError):
            secrets.redact_bytes(body)
        assert secrets.contains_secret(body)
    assert secrets.redact(layers) == "[redacted]"
    harmless = "\ud800 &#xD800; &#9999999999; %zz \\u{9999999} \\x &nothing; 50% \\"
    assert secrets.redact(harmless) == harmless
    assert secrets.redact_bytes(b"\xff\0%") == b"\xff\0%"


def test_an_answer_in_another_encoding_is_not_stored(
    capture: Capturing, site: Site, archive: Archive
) -> None:
    site.say(ACME, "/gpus", Reply(200, json.dumps({"you sent": KEY}).encode("utf-16")))
    captured = capture(source(**KEYED), module(), {"ACME_KEY": KEY})
    assert codes(captured) == ["redaction_failed"]
    assert captured.error is not None
    assert "it contains a key, encoded in a way that cannot be taken out" in captured.error
    assert bodies(archive, captured) == []


def test_a_key_is_sent_and_stands_nowhere_else(
    capture: Capturing, site: Site, archive: Archive, caplog: pytest.LogCaptureFixture
) -> None:
    sent = ", ".join(f'"{spelling}"' for spelling in SPELLINGS)
    echo = f'{{"you sent": [{sent}], "next": "https://{ACME}/more?key={IN_A_URL}"}}'.encode()
    site.say(ACME, "/gpus", Reply(200, echo, {"x-echo": KEY, "set-cookie": KEY}))
    site.say(ACME, "/more", moved(f"https://evil.example/?key={OF_A_FORM}"))

    def next_requests(answer, config):
        return [Request(answer.json()["next"])] if "next" in answer.json() else []

    with caplog.at_level(logging.DEBUG):
        captured = capture(source(**KEYED), module(next_requests=next_requests), {"ACME_KEY": f" {KEY}\n"})
    first, second = site.pages_asked()
    assert (first.target, json.loads(first.body)) == (f"/gpus?key={IN_A_URL}", {"key": KEY})
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert second.target == f"/more?key={IN_A_URL}"  # the page was read without the key and asked with it
    assert codes(captured) == ["ok", "redirect_refused"]
    everything = f"{captured!r} {stored_bytes(archive)!r} {caplog.text}"
    assert [spelling for spelling in SPELLINGS if spelling in everything] == []
    kept = captured.entries[0]
    assert kept.url == f"https://{ACME}/gpus?key=${{ACME_KEY}}"
    assert kept.body_sha256 == hashlib.sha256(b'{"key":"${ACME_KEY}"}').hexdigest()


def test_a_module_gets_placeholders_of_its_keys_and_no_other_variable(
    capture: Capturing, site: Site, archive: Archive
) -> None:
    """Nor does a request that names one. An error in the module shows no key that it got otherwise."""
    seen = []

    def requests(config, environment):
        seen.append(environment)
        return [Request(f"https://{ACME}/gpus?key={environment['ACME_KEY']}&a=${{HOME_SECRET}}")]

    def next_requests(answer, config):
        raise ValueError(f"{KEY} {'x' * 2000}")

    site.say(ACME, "/gpus", Reply(200, f'{{"echo": "{KEY}"}}'.encode()))
    environment = {"ACME_KEY": KEY, "ACME_TOKEN": " ", "HOME_SECRET": KEY}
    functions = module(requests=requests, next_requests=next_requests)
    captured = capture(source(key_variables=["ACME_KEY", "ACME_TOKEN"]), functions, environment)
    assert seen == [{"ACME_KEY": "${ACME_KEY}"}]
    assert [sent.target for sent in site.pages_asked()] == [f"/gpus?key={IN_A_URL}&a=${{HOME_SECRET}}"]
    assert bodies(archive, captured) == [b'{"echo": "${ACME_KEY}"}']
    assert captured.error == f"acme.paging: ValueError: ${{ACME_KEY}} {'x' * 2000}"[:1000]
    assert KEY.encode() not in stored_bytes(archive)


def test_a_key_follows_a_link_to_the_same_origin_only(capture: Capturing, site: Site) -> None:
    """By the source's module or by declared paging."""
    pages = dict.fromkeys((f"https://{ACME}/2", f"https://{ACME.upper()}:443/2"), True)
    pages |= dict.fromkeys((f"https://www.{ACME}/2", f"https://{ACME}:8443/2", f"http://{ACME}/2"), False)
    facts = {"api_hosts": [ACME, f"{ACME}:8443", f"{ACME}:80"], "key_variables": ["ACME_KEY"]}
    facts["requests"] = [{"url": f"https://{ACME}/gpus", "headers": ASK["headers"]}]
    paging = {"kind": "next_link", "field": "next"}
    following = lambda answer, config: [Request(answer.json()["next"])] if "gpus" in answer.url else []  # noqa: E731
    for host in (ACME, f"www.{ACME}", f"{ACME}:8443"):
        site.say(host, "/2", Reply(200, b"{}"))
    both = (source(**facts, paging=paging), module()), (source(**facts), module(next_requests=following))
    for config, functions in both:
        sent = {}
        for page in pages:
            site.say(ACME, "/gpus", Reply(200, json.dumps({"next": page}).encode()))
            assert capture(config, functions, {"ACME_KEY": "s3cret-value"}).status == "captured"
            sent[page] = site.pages_asked()[-1].headers.get("authorization") == "Bearer s3cret-value"
        assert sent == pages


def test_another_machine_gets_no_key_over_plain_http(site: Site, archive: Archive) -> None:
    """The address 0.0.0.0 leads to this machine, and is not a loopback address."""
    site.say(ACME, "/gpus", Reply(200, b"{}"))

    def replayed(host: str, key: str = KEY) -> tuple[str | None, list[str], list[str]]:
        said: list[str] = []
        site.asked.clear()
        more = {"environment": {"ACME_KEY": key, "OTHER": "other"}, "progress": said.append}
        captured = capture_many(f"http://{host}:{site.port}", archive, [source(**KEYED)], **more)["acme"]
        sent = [each.headers["authorization"] + each.body.decode() for each in site.pages_asked()]
        return captured.status, sent, [line for line in said if "plain http" in line]

    warning = (
        f"http://0.0.0.0:{site.port} is plain http on another machine: keys are not sent to it, and its "
        "requests have placeholders instead (ACME_KEY); use https or a server on this machine to send them"
    )
    placeholders_only = 'Bearer ${ACME_KEY}{"key":"${ACME_KEY}"}'
    assert replayed("0.0.0.0") == ("captured", [placeholders_only], [warning])
    assert replayed("0.0.0.0", "") == ("needs_key", [], [])
    for host in ("127.0.0.1", "localhost"):
        assert replayed(host) == ("captured", [f'Bearer {KEY}{{"key":"{KEY}"}}'], [])


def test_every_request_of_the_catalogue_may_be_sent_and_its_keys_are_declared() -> None:
    """A key that turns on a source whose terms forbid automated reading goes with each request."""
    wrong, turned_on = [], 0
    for name, config in configs().items():
        named = Secrets.names_in(str([facts.model_dump() for facts in config.requests]))
        hosts = {facts.host for facts in config.requests}
        if not named <= set(config.key_variables) or not hosts <= config.allowed_hosts or "" in hosts:
            wrong.append((name, named, hosts))
        for key in config.key_variables if config.terms.automated == "forbidden" else ():
            for asked in first_requests(config, source_module(name), {key: f"${{{key}}}"}):
                turned_on += 1
                if f"${{{key}}}" not in f"{asked.url}{asked.headers}{asked.body!r}":
                    wrong.append((name, key, asked))
    assert (wrong, turned_on > 0) == ([], True)
