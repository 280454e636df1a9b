"""Sources whose terms forbid automated reading, and those that the user switched off, are not asked."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from click.testing import CliRunner, Result

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Client, Limits, ReplayServer, Rules
from pipeline.capture.http.response import Response
from pipeline.capture.permissions import read_choices, why_off
from pipeline.catalog.source_config import SourceConfig, configs, source_config
from pipeline.cli.main import main
from pipeline.contracts.capture import Capture
from pipeline.contracts.listing import Request
from pipeline.contracts.outcome import Outcome, SourceResult
from pipeline.health.digest import digest_of
from pipeline.health.doctor.live import examine_live
from pipeline.health.source_states import source_states
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.orchestration.keys import offers_key, raw_key
from pipeline.orchestration.resources import PAGES_VARIABLE, GpufareHome
from pipeline.orchestration.source_assets import source_assets
from pipeline.record.records import Records
from pipeline.refresh.inputs import ARCHIVE, captures_of
from pipeline.refresh.permissions import disable, enable, off_lines
from pipeline.refresh.refresh import refresh
from pipeline.sources import source_module
from pipeline.warehouse.database import in_memory
from pipeline.warehouse.lineage import Lineage
from pipeline.warehouse.marts import fill
from pipeline.warehouse.query import ask
from tests.capture.conftest import capture_one, module, source
from tests.capture.connect_proxy import ConnectProxy
from tests.capture.site import Reply, Site
from tests.conftest import with_plans
from tests.pages_server import PagesServer

PAGES = Path(__file__).parents[1] / "pages"
CERTIFICATE = Path(__file__).parents[1] / "capture" / "acme.pem"
HOST = "prices.acme.example"
TODAY = datetime.now(UTC).date()
DAYS = dg.DailyPartitionsDefinition(start_date="2026-08-01", timezone="UTC", end_offset=2)
FORBIDDEN = {
    "automated": "forbidden",
    "url": "https://acme.example/terms",
    "read_on": "2026-10-05",
    "note": "made up for a test",
}


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
    limits = Limits(retries=0, connect_seconds=5, read_seconds=5)
    with Client(limits=limits) as client:
        return capture_one(
            config,
            module(),
            environment=environment,
            day=TODAY,
            archive=Archive(home.archive),
            client=client,
        )


def choose(home: Home, **asked: bool) -> None:
    choices = {name: {"asked": value, "since": "2026-11-01"} for name, value in asked.items()}
    home.permissions.write_text(json.dumps(choices))


def gpufare(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_no_request_reaches_a_source_whose_terms_forbid_it(home: Home, host: Site) -> None:
    captured = visit(home, acme())
    assert host.asked == []
    assert (captured.status, captured.entries) == ("needs_permission", ())
    assert captured.error == (
        "its terms are reported to forbid automated reading (https://acme.example/terms, "
        "read on 2026-10-05): gpufare sources enable acme"
    )


def test_an_enabled_source_is_asked(home: Home, host: Site) -> None:
    choose(home, acme=True)
    assert visit(home, acme()).status == "captured"
    assert [asked.target for asked in host.asked] == ["/robots.txt", "/gpus"]


def test_the_users_own_key_is_a_permission(home: Home, host: Site) -> None:
    config = acme(key_variables=["ACME_KEY"])
    captured = visit(home, config, ACME_KEY=" ")
    assert (captured.status, host.asked) == ("needs_permission", [])
    assert captured.error is not None
    assert captured.error.endswith("gpufare sources enable acme, or set ACME_KEY")
    assert visit(home, config, ACME_KEY="abcdefgh").status == "captured"


def test_disabled_source_is_never_asked(home: Home, host: Site) -> None:
    choose(home, acme=False)
    captured = visit(home, acme(key_variables=["ACME_KEY"]), ACME_KEY="abcdefgh")
    assert captured.error == "you disabled it on 2026-11-01: gpufare sources enable acme"
    assert visit(home, source()).status == captured.status == "needs_permission"
    assert host.asked == []


def test_without_its_key_a_source_that_cannot_be_asked_needs_one(home: Home, host: Site) -> None:
    """That its terms forbid it, too, is settled by the key."""
    request = {"url": f"https://{HOST}/gpus", "headers": {"Authorization": "Bearer ${ACME_KEY}"}}
    config = acme(key_variables=["ACME_KEY"], requests=[request])
    assert visit(home, config).status == "needs_key"
    assert host.asked == []


def test_naming_a_source_is_not_a_permission(home: Home, proxy: ConnectProxy, sample_home: Home) -> None:
    with_plans(home.root, sample_home)
    said: list[str] = []
    asked = {"sources": ["crusoe"], "environment": {"GPUFARE_PROXY": proxy.url}}
    report = refresh(home, **asked, progress=said.append)  # type: ignore[arg-type]
    assert proxy.asked == []
    assert [outcome.status for outcome in report.outcomes] == ["needs_permission"]
    assert report.asked == []
    assert not report.no_answers
    off = "off because of their terms: crusoe; gpufare sources enable NAME"
    assert report.lines() == [off]
    enable(["crusoe"], home, TODAY, {})
    report = refresh(
        home, sources=["crusoe"], environment={"GPUFARE_PROXY": proxy.url}, limits=Limits(retries=0)
    )
    assert set(proxy.asked) == {"www.crusoe.ai:443"}
    assert report.off == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"acme": true}', b'{"acme": {"asked": 1}}', b"\xff\xfe"]
)
def test_while_the_file_is_damaged_nothing_is_asked(home: Home, host: Site, content: bytes) -> None:
    """Nobody knows what was in it: a source that the user disabled is not asked for want of a comma."""
    home.permissions.write_bytes(content)
    for config in (acme(), source()):
        captured = visit(home, config, ACME_KEY="abcdefgh")
        assert captured.status == "needs_permission"
        assert "delete that file" in str(captured.error)
    assert host.asked == []
    (said,) = off_lines([acme(), source()], home, {})
    assert said.startswith(f"{home.permissions}: it is damaged")
    assert "it is damaged" in digest_of(home, datetime.now(UTC)).text()
    assert gpufare("sources", "enable", "vast").output.startswith(f"{home.permissions} was damaged")
    assert read_choices(home).by_source["vast"].asked
    assert (home.damaged / "permissions.json").read_bytes() == content
    assert visit(home, source()).status == "captured"


def test_a_damaged_file_keeps_no_saved_pages_back(home: Home) -> None:
    home.permissions.write_text("{")
    captured = captures_of(
        [source_config("crusoe")], date(2026, 10, 10), str(PAGES), Archive(home.archive), {}, named=True
    )
    assert captured["crusoe"][0].status == "captured"


def test_while_the_file_cannot_be_read_nothing_is_asked(home: Home, proxy: ConnectProxy) -> None:
    home.permissions.mkdir()
    (said,) = off_lines([], home, {})
    assert "it cannot be read (Is a directory)" in said
    report = refresh(home, sources=["linode"], environment={"GPUFARE_PROXY": proxy.url})
    assert [outcome.status for outcome in report.outcomes] == ["needs_permission"]
    live = examine_live(
        home, names=["linode"], now=datetime.now(UTC), environment={"GPUFARE_PROXY": proxy.url}
    )
    assert (live.asked, proxy.asked) == ([], [])


def test_enable_shows_the_terms_and_disable_undoes_it(home: Home) -> None:
    vast = source_config("vast")
    said = gpufare("sources", "enable", "vast")
    assert said.exit_code == 0
    assert f"  terms: {vast.terms.url}\n  they forbid automated reading" in said.output
    assert f"(read on {vast.terms.read_on})" in said.output
    assert "gpufare sources disable vast" in said.output
    assert why_off(vast, read_choices(home), {}) is None

    said = gpufare("sources", "disable", "vast", "linode")
    assert said.exit_code == 0
    for name in ("vast", "linode"):
        assert f"To undo it: gpufare sources enable {name}" in said.output
        assert why_off(source_config(name), read_choices(home), {"VAST_API_KEY": "abcdefgh"}) is not None

    enable(["linode"], home, TODAY, {})
    assert set(read_choices(home).by_source) == {"vast"}, "what needs no permission is given none"


def test_the_choices_belong_in_the_home(home: Home) -> None:
    enable(["vast"], home, TODAY, {})
    assert set(home.root.iterdir()) <= set(home.places()), "gpufare doctor calls others stray"


def test_nothing_is_enabled_when_one_name_is_wrong(home: Home) -> None:
    assert gpufare("sources", "enable", "vast", "wast").exit_code == 1
    assert gpufare("sources", "disable", "vast", "wast").exit_code == 1
    assert not home.permissions.exists()


def test_a_misspelt_name_gets_the_nearest(home: Home) -> None:
    said = gpufare("sources", "enable", "vats").output
    assert "there is no source 'vats'; did you mean vast?" in said
    assert "runpod" not in said
    assert "runpod" in gpufare("sources", "enable", "qqqqqq").output


def test_only_of_a_source_with_prices_do_prices_stay(home: Home) -> None:
    Records(home).write_accepted(TODAY, "linode", [])
    never_asked, with_prices = disable(["vast", "linode"], home, TODAY)
    assert "prices" not in never_asked
    assert "its last prices stay ranked for" in with_prices
    assert "prices" not in disable(["linode"], home, TODAY + timedelta(days=30))[0]


def test_source_that_needs_a_key_reports_it(home: Home) -> None:
    assert "it still needs a key: set PRIME_API_KEY" in gpufare("sources", "enable", "primeintellect").output


def test_the_table_of_sources_still_shows_without_a_subcommand(home: Home) -> None:
    home.permissions.write_text("{")
    shown = gpufare("sources", "--format", "jsonl")
    assert [json.loads(line)["source"] for line in shown.stdout.splitlines()] == list(configs())
    assert f"{home.permissions}: it is damaged" in shown.stderr


def test_refresh_names_sources_that_are_off_and_how_to_enable_them(home: Home) -> None:
    choose(home, linode=False)
    chosen = [source_config(name) for name in ("crusoe", "linode", "nebius", "primeintellect", "vast")]
    keyed = acme(key_variables=["ACME_KEY"])
    assert off_lines([*chosen, keyed], home, {"VAST_API_KEY": ""})[1:] == [
        "off because you disabled them: linode; gpufare sources enable NAME",
        "off without a key: primeintellect; set PRIME_API_KEY (primeintellect)",
    ]
    by_terms = off_lines([*chosen, keyed], home, {})[0]
    enable = "gpufare sources enable NAME, or set "
    assert by_terms.startswith(f"off because of their terms: crusoe, vast, acme; {enable}")
    assert by_terms.endswith("ACME_KEY (acme)")
    assert off_lines([source_config("nebius")], home, {}) == []


def test_the_state_is_of_now(home: Home) -> None:
    """A source that was enabled since the last refresh is not off any more."""
    refresh(home, sources=["crusoe"], environment={})

    def row() -> dict[str, Any]:
        rows = source_states(home, TODAY, {}).dicts()
        return next(row for row in rows if row["source"] == "crusoe")

    off = row()
    assert (off["state"], off["terms"], off["result"]) == (
        "needs_permission",
        "forbidden",
        "needs_permission",
    )
    assert off["why"].endswith("gpufare sources enable crusoe")
    enable(["crusoe"], home, TODAY, {})
    enabled = row()
    assert (enabled["state"], enabled["why"]) == ("not_asked", "not asked yet")


def test_a_source_that_was_disabled_since_it_was_asked_is_off(home: Home) -> None:
    """Whether accepted or failed, and although no refresh has run since."""
    for name, accepted in (("modal", True), ("nebius", False)):
        facts: dict[str, Any] = {"status": "captured" if accepted else "failed", "accepted": accepted}
        facts["result"] = SourceResult.FRESH if accepted else SourceResult.UNREACHABLE
        attempt, reason = f"{TODAY:%Y%m%d}T000000.000000Z", None if accepted else "http_5xx"
        Records(home).write_outcome(Outcome(day=TODAY, source=name, attempt=attempt, reason=reason, **facts))
    gpufare("sources", "disable", "modal", "nebius")
    rows = {row["source"]: row for row in source_states(home, TODAY, {}).dicts()}
    for name in ("modal", "nebius"):
        off = f"you disabled it on {TODAY}: gpufare sources enable {name}"
        assert (rows[name]["state"], rows[name]["why"]) == ("needs_permission", off)
    enable(["nebius"], home, TODAY, {})
    rows = {row["source"]: row for row in source_states(home, TODAY, {}).dicts()}
    assert rows["nebius"]["why"] == f"http_5xx (since {TODAY})"


def test_source_never_asked_names_its_missing_key(home: Home) -> None:
    rows = {row["source"]: row for row in source_states(home, TODAY, {}).dicts()}
    assert rows["vast"]["state"] == "needs_permission"
    assert "gpufare sources enable vast" in rows["vast"]["why"]
    assert rows["primeintellect"]["state"] == "needs_key"
    assert rows["nebius"]["state"] == "not_asked"


def test_without_an_attempt_the_published_state_follows_the_terms() -> None:
    """A schedule that skips a source leaves no attempt."""
    with in_memory("source_health") as connection:
        connection.execute("SET VARIABLE as_of_day = ?::DATE", [TODAY])
        for table in Lineage(connection).marts(["source_health"]):
            fill(connection, table)
        rows = {row["source"]: row for row in ask(connection, "FROM main.source_health").dicts()}
    assert rows["crusoe"]["state"] == "needs_permission"
    assert rows["crusoe"]["why"] == "terms_forbid"
    assert rows["nebius"]["state"] == "not_asked"


def test_sources_that_are_off_are_not_reported_as_broken(home: Home) -> None:
    refresh(home, sources=["crusoe"], environment={})
    lines = digest_of(home, datetime.now(UTC)).lines
    assert "Broke: no source" in lines
    assert not any("crusoe" in line for line in lines)


def test_the_asset_of_a_source_that_is_off_is_not_red(
    home: Home, proxy: ConnectProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PAGES_VARIABLE, raising=False)
    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize(
            [source_assets([source_config("crusoe")], DAYS)],
            partition_key=TODAY.isoformat(),
            resources={"home": GpufareHome(root=str(home.root))},
            instance=instance,
        )
        assert result.success
        assert proxy.asked == []
        for key in (raw_key("crusoe"), offers_key("crusoe")):
            assert instance.get_latest_materialization_event(key) is None
            (seen,) = instance.fetch_observations(key, limit=1).records
            assert seen.asset_observation is not None
            said = seen.asset_observation.metadata["skipped"].value
            assert str(said).startswith("its terms are reported to forbid automated reading")
    (outcome,) = Records(home).outcomes("crusoe", TODAY)
    assert (outcome["status"], outcome["requests"]) == ("needs_permission", 0)


def test_saved_pages_need_no_permission(home: Home) -> None:
    choose(home, crusoe=False)
    crusoe = source_config("crusoe")
    day = date(2026, 10, 10)
    archive = Archive(home.archive)
    captured = captures_of([crusoe], day, str(PAGES), archive, {}, named=True)["crusoe"][0]
    assert captured.status == "captured"
    assert captures_of([crusoe], day, ARCHIVE, archive, {}, named=True)["crusoe"][0].status == "captured"


def test_a_replay_needs_no_permission(home: Home) -> None:
    choose(home, acme=False)
    with Site() as site:
        site.say(HOST, "/gpus", Reply(200, b'{"h100": 2.99}'))
        with Client(replay=ReplayServer(site.base_url)) as client:
            captured = capture_one(
                acme(), module(), environment={}, day=TODAY, archive=Archive(home.archive), client=client
            )
    assert captured.status == "captured"


class Recording(Client):
    """Notes the requests as they are sent."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.sent: list[Request] = []

    def fetch(self, request: Request, rules: Rules) -> Response:
        self.sent.append(request)
        return super().fetch(request, rules)


KEYED = [
    name for name, each in configs().items() if each.terms.automated == "forbidden" and each.key_variables
]


@pytest.mark.parametrize("name", KEYED)
def test_keys_that_count_as_a_permission_are_sent(home: Home, name: str) -> None:
    """Each request has the key: what is asked without it is not asked as a customer."""
    config = source_config(name)
    environment = dict.fromkeys(config.key_variables, f"key-of-{name}")
    with PagesServer(PAGES) as server, Recording(replay=ReplayServer(server.base_url)) as client:
        capture_one(
            config,
            source_module(name),
            environment=environment,
            day=TODAY,
            archive=Archive(home.archive),
            client=client,
        )
    pages = [request for request in client.sent if not request.url.endswith("/robots.txt")]
    assert pages
    without = [request.url for request in pages if f"key-of-{name}" not in str(request)]
    assert without == []


def test_the_published_sources_have_the_terms_and_the_coverage() -> None:
    with in_memory("sources") as connection:
        rows = {row["source"]: row for row in ask(connection, "FROM main.sources").dicts()}
    assert set(rows) == set(configs())
    for name, config in configs().items():
        terms, coverage, row = config.terms, config.coverage, rows[name]
        assert (row["terms_automated"], row["terms_url"], row["terms_read_on"]) == (
            terms.automated,
            terms.url,
            terms.read_on,
        )
        assert row["terms_note"] == (terms.note or None)
        assert (row["coverage_share"], row["coverage_regions"], row["coverage_with_key"]) == (
            coverage.share,
            coverage.regions,
            coverage.with_key,
        )
