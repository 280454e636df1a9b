"""Sources whose terms forbid automated reading, and those that the user switched off, are not asked."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Client, Limits, ReplayServer, Rules
from pipeline.capture.http.response import Response
from pipeline.capture.permissions import Choices, read_choices, why_off
from pipeline.catalog.source_config import SourceConfig, configs, source_config
from pipeline.contracts.capture import Capture
from pipeline.contracts.listing import Request
from pipeline.contracts.outcome import SourceResult
from pipeline.health.digest import Problem, digest_of
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.refresh.permissions import enable, is_asked, off_lines, off_sources
from pipeline.refresh.refresh import refresh
from pipeline.sources import source_module
from tests.capture.conftest import capture_one, module, source
from tests.capture.connect_proxy import ConnectProxy
from tests.capture.site import Reply, Site
from tests.conftest import gpufare
from tests.homes import PAGES
from tests.pages_server import PagesServer

CERTIFICATE = Path(__file__).parents[1] / "capture" / "acme.pem"
HOST = "prices.acme.example"
TODAY = datetime.now(UTC).date()
SINCE = date(2026, 11, 1)
TERMS = "https://acme.example/terms"
FORBIDDEN = {"automated": "forbidden", "url": TERMS, "read_on": "2026-10-05", "note": "made up"}
BY_TERMS = (
    "its terms are reported to forbid automated reading (https://acme.example/terms, read on 2026-10-05): "
    "gpufare sources enable acme"
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    for name in {name for config in configs().values() for name in config.key_variables}:
        monkeypatch.delenv(name, raising=False)
    return Home(tmp_path)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """The source's host, over TLS on loopback; a live visit reaches it through the user's proxy."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    with Site(CERTIFICATE) as site, ConnectProxy({f"{HOST}:443": site.port}) as proxy:
        monkeypatch.setenv("GPUFARE_PROXY", proxy.url)
        site.say(HOST, "/gpus", Reply(200, b'{"h100": 2.99}'))
        yield site


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[ConnectProxy]:
    """A proxy that opens no tunnel, and notes the hosts for which one was requested."""
    with ConnectProxy({}) as proxy:
        monkeypatch.setenv("GPUFARE_PROXY", proxy.url)
        yield proxy


def acme(**facts: Any) -> SourceConfig:
    """A source at prices.acme.example whose terms forbid automated reading."""
    return source(terms=FORBIDDEN, **facts)


def visit(home: Home, config: SourceConfig, **environment: str) -> Capture:
    """A live visit."""
    with Client(limits=Limits(retries=0, connect_seconds=5, read_seconds=5)) as client:
        options: dict[str, Any] = {"archive": Archive(home.archive), "client": client}
        return capture_one(config, module(), environment=environment, day=TODAY, **options)


def choose(home: Home, name: str, *, asked: bool) -> None:
    home.permissions.write_text(json.dumps({name: {"asked": asked, "since": f"{SINCE}"}}))


def test_no_request_reaches_a_source_whose_terms_forbid_it(home: Home, host: Site) -> None:
    """Nor one that the user disabled, whatever key is set."""
    captured = visit(home, acme())
    assert (captured.status, captured.entries, captured.error) == ("needs_permission", (), BY_TERMS)
    choose(home, "acme", asked=False)
    captured = visit(home, acme(key_variables=["ACME_KEY"]), ACME_KEY="abcdefgh")
    assert captured.error == f"you disabled it on {SINCE}: gpufare sources enable acme"
    assert visit(home, source()).status == captured.status == "needs_permission"
    home.permissions.unlink()
    captured = visit(home, acme(key_variables=["ACME_KEY"]), ACME_KEY=" ")
    assert captured.error == f"{BY_TERMS}, or set ACME_KEY"
    assert host.asked == []
    choose(home, "acme", asked=True)
    assert visit(home, acme()).status == "captured"
    assert [asked.target for asked in host.asked] == ["/robots.txt", "/gpus"]


def test_a_source_is_off_by_its_terms_or_by_choice_and_asked_otherwise() -> None:
    needs_key = acme(requests=[{"url": f"https://{HOST}/?key=${{ACME_KEY}}"}], key_variables=["ACME_KEY"])
    with_key = {"ACME_KEY": "abcdefgh"}
    on = [(source(), {}), (acme(key_variables=["ACME_KEY"]), with_key), (needs_key, with_key)]
    off = [(acme(), {}), (needs_key, {}), (source(disabled="it is gone"), {})]
    assert [is_asked(config, Choices(), keys) for config, keys in (*on, *off)] == [True] * 3 + [False] * 3
    assert why_off(needs_key, Choices(), {}) is None, "the missing key is reported elsewhere"
    assert off_sources([source(), acme(name="other")], Home(Path("nowhere")), {}).keys() == {"other"}


def test_naming_a_source_is_not_a_permission(home: Home, proxy: ConnectProxy) -> None:
    """The digest does not call it broken either."""
    options: dict[str, Any] = {"sources": ["crusoe"], "environment": {"GPUFARE_PROXY": proxy.url}}
    report = refresh(home, **options)
    assert ([each.result for each in report.outcomes], report.asked) == ([SourceResult.NEEDS_PERMISSION], [])
    off = "off because of their terms: crusoe; gpufare sources enable NAME"
    assert (report.lines(), report.no_answers) == ([off], False)
    assert not any(problem.subject == "crusoe" for problem in digest_of(home, datetime.now(UTC)).problems)
    assert proxy.asked == []
    enable(["crusoe"], home, TODAY, {})
    report = refresh(home, **options, limits=Limits(retries=0))
    assert (set(proxy.asked), report.off) == ({"www.crusoe.ai:443"}, [])


def test_while_the_file_is_damaged_nothing_is_asked(home: Home, host: Site) -> None:
    """Nobody knows what was in it: a source that the user disabled is not asked for want of a comma."""
    for content in (b"", b"{", b"[]", b'{"acme": true}', b'{"acme": {"asked": 1}}', b"\xff\xfe"):
        home.permissions.write_bytes(content)
        captures = [visit(home, config, ACME_KEY="abcdefgh") for config in (acme(), source())]
        assert {captured.status for captured in captures} == {"needs_permission"}, content
    assert host.asked == []
    assert captures[0].error == (
        "permissions.json in the data home cannot be read, and you may have disabled this source: delete "
        "that file, or choose again with gpufare sources enable or disable"
    )
    problem = (
        f"{home.permissions}: it is damaged. gpufare does not know which sources you disabled, so it asks "
        "none: delete the file, or choose again with gpufare sources enable NAME or disable NAME"
    )
    assert off_lines([acme(), source()], home, {}) == [problem]
    assert Problem("permissions", problem) in digest_of(home, datetime.now(UTC)).problems
    assert gpufare("sources", "--format", "jsonl").stderr.splitlines()[-1] == problem
    moved = f"{home.permissions} was damaged: it is now {home.damaged / 'permissions.json'}; "
    assert enable(["vast"], home, TODAY, {})[0] == f"{moved}earlier choices are lost"
    assert (home.damaged / "permissions.json").read_bytes() == content
    assert visit(home, source()).status == "captured"


def test_enable_shows_the_terms_and_disable_undoes_it(home: Home) -> None:
    vast, terms = source_config("vast"), source_config("vast").terms
    assert enable(["vast"], home, TODAY, {}) == [
        "vast: asked from now on. To undo it: gpufare sources disable vast",
        f"  terms: {terms.url}",
        "  they forbid automated reading: whether you may is between you and the provider "
        f"(read on {terms.read_on})",
        f"  {terms.note}",
    ]
    assert why_off(vast, read_choices(home), {}) is None
    assert gpufare("sources", "disable", "vast", "linode", "vast").returncode == 0
    off = why_off(vast, read_choices(home), {"VAST_API_KEY": "abcdefgh"})
    assert off == f"you disabled it on {TODAY}: gpufare sources enable vast"
    enable(["linode"], home, TODAY, {})
    assert set(read_choices(home).by_source) == {"vast"}, "what needs no permission is given none"


def test_a_refresh_names_the_sources_that_are_off_and_how_to_turn_them_on(home: Home) -> None:
    choose(home, "linode", asked=False)
    names = ("crusoe", "linode", "nebius", "primeintellect", "tensordock")
    chosen = [source_config(name) for name in names]
    keyed = acme(key_variables=["ACME_ID", "ACME_KEY"])
    assert off_lines([*chosen, keyed], home, {"ACME_KEY": ""}) == [
        "off because of their terms: crusoe, acme; gpufare sources enable NAME, or set ACME_ID and ACME_KEY "
        "(acme)",
        "off because you disabled them: linode; gpufare sources enable NAME",
        "off without a key: primeintellect; set PRIME_API_KEY (primeintellect)",
        "retired: tensordock",
    ]
    assert off_lines([source_config("nebius")], home, {}) == []


def test_keys_that_count_as_a_permission_are_sent(home: Home) -> None:
    """Each request has the key: what is asked without it is not asked as a customer."""
    sent: list[Request] = []

    class Recording(Client):
        def fetch(self, request: Request, rules: Rules) -> Response:
            sent.append(request)
            return super().fetch(request, rules)

    forbidden = [config for config in configs().values() if config.terms.automated == "forbidden"]
    keyed = [config for config in forbidden if config.key_variables]
    with PagesServer(PAGES) as server, Recording(replay=ReplayServer(server.base_url)) as client:
        for config in keyed:
            keys = dict.fromkeys(config.key_variables, f"key-of-{config.name}")
            options: dict[str, Any] = {"archive": Archive(home.archive), "client": client}
            sent.clear()
            capture_one(config, source_module(config.name), environment=keys, day=TODAY, **options)
            pages = [request for request in sent if not request.url.endswith("/robots.txt")]
            assert pages, config.name
            assert [request.url for request in pages if f"key-of-{config.name}" not in str(request)] == []
    assert {"runpod", "vast"} <= {config.name for config in keyed}
