"""``gpufare doctor --live`` on servers that behave and misbehave: what it says, and what it leaves alone."""

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Limits
from pipeline.capture.replay import PagesServer, page_entries
from pipeline.catalog.source_config import source_config
from pipeline.contracts.outcome import SourceResult
from pipeline.health.doctor.live import MEANINGS, Probe, examine_live
from pipeline.health.doctor.saved_pages import SaveError, save_pages
from pipeline.home.paths import Home
from pipeline.refresh.ingest import record_day
from pipeline.refresh.origin import captures_of, day_to_read
from tests.conftest import PAGES, gpufare
from tests.faulty_server import Fault, FaultyServer, Host, redirects_to, refusing, says
from tests.test_faults import Edit, each_dollar_price, edited

NOW = datetime(2026, 8, 22, 12, tzinfo=UTC)
DAY = date(2026, 8, 22)
LIMITS = Limits(read_seconds=2, body_bytes=2**21, backoff_seconds=0.01, backoff_max_seconds=0.02)
KEY = "secret-of-mine-0123456789"


def behaves(host: Host) -> None:
    host.say_as_ever()


FAULTS: dict[str, Fault] = {
    "coreweave": says(403, b"<h1>Forbidden</h1>", content_type="text/html"),
    "linode": says(503),
    "cudo": says(200, b"<html>", content_type="text/html"),
    "hyperstack": redirects_to("http://elsewhere.invalid/"),
    "gcp": says(200, b"", content_type="text/html"),
    "modal": behaves,
    "verda": behaves,
    "vast": behaves,
}
EDITS: dict[tuple[str, str], Edit] = {
    ("civo", "pricing.html"): each_dollar_price("1000"),
    ("baseten", "pricing.html"): lambda page: "<html><p>We moved.</p></html>",
}
EXPECTED: dict[str, tuple[str, SourceResult]] = {
    "coreweave": ("fails", SourceResult.REFUSED_BY_HOST),
    "linode": ("fails", SourceResult.UNREACHABLE),
    "cudo": ("fails", SourceResult.REFUSED_BY_US),
    "hyperstack": ("fails", SourceResult.REFUSED_BY_US),
    "gcp": ("fails", SourceResult.CHANGED),
    "baseten": ("fails", SourceResult.CHANGED),
    "civo": ("fails", SourceResult.DOUBTED),
    "modal": ("works", SourceResult.FRESH),
    "verda": ("answers", SourceResult.FRESH),
    "vast": ("unsure", SourceResult.CHANGED),
    "primeintellect": ("skipped", SourceResult.NEEDS_KEY),
    "ecb": ("works", SourceResult.FRESH),
}


def files_in(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Probe], dict[str, int], Home]:
    """The probes, how often some sources were asked, and the home."""
    folder = tmp_path_factory.mktemp("probed")
    known = {
        (source, path.name): edit
        for (source, _), edit in EDITS.items()
        for path in sorted((PAGES / source).glob("*.html"))
    }
    home = Home(folder / "home")
    with FaultyServer(edited(folder / "pages", known), FAULTS) as server:
        report = examine_live(
            home, names=list(EXPECTED), now=NOW, environment={}, pages=server.base_url, limits=LIMITS
        )
        return {probe.source: probe for probe in report.probes}, dict(server.asked), home


@pytest.mark.parametrize("name", EXPECTED)
def test_each_source_has_a_verdict(name: str, probed: tuple[dict[str, Probe], dict[str, int], Home]) -> None:
    probe = probed[0][name]
    assert (probe.verdict, probe.result) == EXPECTED[name], probe
    assert probe.meaning == MEANINGS[probe.verdict]
    assert bool(probe.remedy) == (probe.verdict not in ("works", "answers"))
    line = probe.line()
    assert line.startswith(f"{probe.verdict:<7} {name} ")
    assert f"{source_config(name).evidence.level} {source_config(name).evidence.date}" in line


def test_what_is_said_of_a_source_that_works(
    probed: tuple[dict[str, Probe], dict[str, int], Home],
) -> None:
    probe, config = probed[0]["modal"], source_config("modal")
    assert (probe.status, probe.host, probe.content_type) == (200, "modal.com", "text/html")
    assert (probe.robots, probe.requests, probe.requests_in_all) == ("robots.txt allows it", 1, 1)
    assert probe.largest_bytes == (PAGES / "modal" / "pricing.html").stat().st_size
    assert probe.max_body_bytes == config.max_body_bytes
    assert probe.rows is not None
    assert config.expect.rows_min <= probe.rows <= (config.expect.rows_max or 0)
    assert probe.missing_gpus == ""
    assert probe.evidence_age_days == (DAY - config.evidence.date).days


def test_what_is_said_of_a_refusal(probed: tuple[dict[str, Probe], dict[str, int], Home]) -> None:
    probe = probed[0]["coreweave"]
    assert (probe.status, probe.content_type, probe.rows) == (403, "text/html", None)
    assert "http_403" in (probe.reason or "")


def test_one_request_is_made_and_bounds_are_not_compared_where_there_are_more(
    probed: tuple[dict[str, Probe], dict[str, int], Home],
) -> None:
    probes, asked, _ = probed
    assert (asked["modal"], asked["verda"], asked["vast"]) == (1, 1, 1)
    verda = probes["verda"]
    assert verda.requests == 1
    assert (verda.requests_in_all or 0) > 1
    assert "of all requests" in verda.line()


def test_nothing_is_kept(probed: tuple[dict[str, Probe], dict[str, int], Home]) -> None:
    assert not probed[2].root.exists()


def test_a_source_that_is_off_by_its_terms_is_not_asked(tmp_path: Path) -> None:
    """Of the providers themselves, and with the user's choices of the home: nothing is sent."""
    home = Home(tmp_path)
    (probe,) = examine_live(home, names=["vast"], now=datetime.now(UTC), environment={}).probes
    assert (probe.verdict, probe.requests) == ("skipped", 0)
    assert "reported to forbid automated reading" in probe.line()
    assert gpufare("sources", "disable", "modal", home=home).returncode == 0
    (probe,) = examine_live(home, names=["modal"], now=datetime.now(UTC), environment={}).probes
    assert (probe.verdict, probe.result) == ("skipped", SourceResult.NEEDS_PERMISSION)


def test_many_that_fail_alike_are_one_line(tmp_path: Path) -> None:
    with refusing() as url:
        asked = {"names": ["modal", "ecb", "civo", "primeintellect"], "environment": {}, "pages": url}
        report = examine_live(Home(tmp_path), now=NOW, limits=LIMITS, **asked)  # type: ignore[arg-type]
    shared, skipped, meaning = report.lines()
    assert shared.startswith(f"all 3 sources asked failed alike: {url} does not answer")
    assert (skipped.split()[:2], meaning.split()[0]) == (["skipped", "primeintellect"], "skipped:")
    assert (report.failed, report.asked) == (3, 3)


# ------------------------------------------------------------------ answers that are kept


@contextmanager
def pages_with_secrets(folder: Path) -> Iterator[str]:
    """Sample pages of which one repeats the key that it was asked with, and sets a cookie."""

    def with_key(page: str) -> str:
        return page.replace('"cloudId"', f'"for": "{KEY}", "cloudId"')

    def with_cookie(index: str) -> str:
        return index.replace(
            '"content-type"', '"set-cookie": "session=abc", "x-client-ip": "9.9.9.9", "content-type"'
        )

    (page,) = {entry.file for entry in page_entries(PAGES / "primeintellect", None) if entry.file}
    edits = {("primeintellect", page): with_key, ("primeintellect", "index.json"): with_cookie}
    with PagesServer(edited(folder, edits)) as server:
        yield server.base_url


NAMES = ("primeintellect", "verda", "scaleway", "ecb", "modal")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Probe], Path]:
    folder = tmp_path_factory.mktemp("saved")
    home = Home(folder / "home")
    with pages_with_secrets(folder / "pages") as url:
        environment = {"PRIME_API_KEY": KEY}
        report = examine_live(
            home, names=NAMES, now=NOW, environment=environment, pages=url, save=folder / "proof"
        )
    assert not home.root.exists()
    return list(report.probes), folder / "proof"


def test_no_key_and_no_cookie_is_kept(saved: tuple[list[Probe], Path]) -> None:
    files = [path for path in saved[1].rglob("*") if path.is_file()]
    assert len(files) > len(NAMES)
    for file in files:
        content = file.read_bytes()
        assert KEY.encode() not in content, file
        assert b"cookie" not in content, file
        assert b"9.9.9.9" not in content, file
    prime = (saved[1] / "primeintellect" / "index.json").parent
    assert any(b"${PRIME_API_KEY}" in file.read_bytes() for file in prime.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_the_folder_is_one_of_pages_and_gives_the_same_offers(
    name: str, saved: tuple[list[Probe], Path], tmp_path: Path
) -> None:
    """As a refresh reads it, and as a replay server serves it."""
    probes, folder = saved
    (probe,) = (probe for probe in probes if probe.source == name)
    assert (probe.verdict, probe.saved_to) == ("works", str(folder / name))
    config, home = source_config(name), Home(tmp_path)
    assert page_entries(folder / name, None)
    day = day_to_read(None, [config], str(folder), NOW.date())
    assert day == DAY
    captures = captures_of([config], day, str(folder), Archive(home.archive), {}, named=True)
    assert record_day(config, day, captures[name], home).rows == probe.rows
    with PagesServer(folder) as server:
        environment = {"PRIME_API_KEY": "another-key-of-mine"}
        asked = {"names": [name], "environment": environment, "pages": server.base_url}
        (again,) = examine_live(home, now=NOW, **asked).probes  # type: ignore[arg-type]
    assert again.verdict in ("works", "answers")
    sample = [entry for entry in page_entries(PAGES / name, config) if entry.usable]
    kept = [entry for entry in page_entries(folder / name, config) if entry.usable]
    assert {entry.url for entry in kept} == {entry.url for entry in sample}


def test_the_whole_visit_is_made_for_it(saved: tuple[list[Probe], Path]) -> None:
    made = {probe.source: probe.requests for probe in saved[0]}
    assert made["verda"] > 1
    rows = json.loads((saved[1] / "verda" / "index.json").read_text())
    assert len(rows) == made["verda"]


def test_nothing_is_overwritten(saved: tuple[list[Probe], Path], tmp_path: Path) -> None:
    before = files_in(saved[1])
    with pytest.raises(SaveError, match="already has modal"):
        examine_live(Home(tmp_path), names=["modal"], now=NOW, environment={}, save=saved[1])
    assert files_in(saved[1]) == before


def test_answers_that_cannot_be_saved_are_the_reason_of_their_source_alone(tmp_path: Path) -> None:
    """A file gets in the way of one while it is asked; the others are kept."""
    proof = tmp_path / "proof"
    proof.mkdir()
    with PagesServer(PAGES) as server:
        report = examine_live(
            Home(tmp_path / "home"),
            names=["modal", "ecb"],
            now=NOW,
            environment={},
            pages=server.base_url,
            save=proof,
            progress=lambda text: (proof / "modal").touch(),
        )
    modal, ecb = report.probes
    assert (modal.verdict, modal.saved_to) == ("works", None)
    assert "the answers cannot be saved: " in modal.line()
    assert ecb.saved_to == str(proof / "ecb")
    assert (ecb.reason, sorted(path.name for path in proof.iterdir())) == (None, ["ecb", "modal"])


def test_no_half_of_a_folder_is_left(tmp_path: Path) -> None:
    config, archive = source_config("modal"), Archive(tmp_path / "archive")
    capture = captures_of([config], DAY, str(PAGES), archive, {}, named=True)["modal"][0]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))  # as if the disk had no more room
    try:
        with pytest.raises(SaveError, match="cannot be saved"):
            save_pages(tmp_path / "proof" / "modal", capture, archive, config, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not (tmp_path / "proof" / "modal").exists()


def test_what_was_odd_about_an_answer_is_saved_with_it(tmp_path: Path) -> None:
    """As a warning of the saved folder, too, when it is read."""
    odd = says(200, (PAGES / "verda" / "instance_types.json").read_bytes(), content_type="text/plain")
    with FaultyServer(PAGES, {"verda": odd}) as server:
        asked = {"names": ["verda"], "environment": {}, "pages": server.base_url, "save": tmp_path}
        examine_live(Home(tmp_path / "home"), now=NOW, limits=LIMITS, **asked)  # type: ignore[arg-type]
    rows = json.loads((tmp_path / "verda" / "index.json").read_text())
    assert "text/plain" in rows[0]["warning"]
    config = source_config("verda")
    captured = captures_of([config], DAY, str(tmp_path), Archive(tmp_path / "archive"), {}, named=True)
    assert any("text/plain" in warning for warning in captured["verda"][0].warnings)


def test_no_other_query_is_made_in_place_of_a_failed_one(tmp_path: Path) -> None:
    """Vast's list of names is refused: the searches for the names of its yaml are left to a whole visit."""
    with FaultyServer(PAGES, {"vast": says(401, b'{"error": "unauthorized"}')}) as server:
        asked = {"names": ["vast"], "environment": {}, "pages": server.base_url}
        (probe,) = examine_live(Home(tmp_path), now=NOW, limits=LIMITS, **asked).probes  # type: ignore[arg-type]
        assert (server.asked["vast"], probe.requests) == (1, 1)
    assert (probe.verdict, probe.result) == ("fails", SourceResult.REFUSED_BY_HOST)


def test_only_sources_that_are_asked_are_counted(tmp_path: Path) -> None:
    """Not one that is retired, lacks its key, or is off."""
    said: list[str] = []
    home, names = Home(tmp_path), ["tensordock", "primeintellect", "crusoe"]
    report = examine_live(home, names=names, now=datetime.now(UTC), environment={}, progress=said.append)
    assert said[0] == "asking 0 sources, one request each"
    assert {probe.verdict for probe in report.probes} == {"skipped"}


def test_the_command_says_what_to_look_for_in_saved_answers(tmp_path: Path) -> None:
    with PagesServer(PAGES) as server:
        ask = ("doctor", "--live", "--pages", server.base_url, "--source", "modal")
        answer = gpufare(*ask, "--save", str(tmp_path / "proof"), home=tmp_path / "home")
    assert answer.returncode == 0
    assert f"saved in {tmp_path / 'proof' / 'modal'}" in answer.stdout
    assert "look through them before you hand them on" in answer.stdout.splitlines()[-1]


# ------------------------------------------------------------------ the command


def test_the_command_fails_when_a_source_does(tmp_path: Path) -> None:
    with FaultyServer(PAGES, {"linode": says(404)}) as server:
        ask = ("doctor", "--live", "--pages", server.base_url, "--source", "linode", "--source", "modal")
        answer = gpufare(*ask, home=tmp_path / "home")
        well = gpufare(*ask[:4], "--source", "modal", "--format", "jsonl", home=tmp_path / "home")
    assert answer.returncode == 1
    *verdicts, works, fails = (line.split()[:2] for line in answer.stdout.splitlines())
    assert verdicts == [["fails", "linode"], ["works", "modal"]]
    assert [works[0], fails[0]] == ["works:", "fails:"]
    assert answer.stderr.splitlines()[-1] == "Error: 1 of 2 sources asked failed"
    assert "asking 2 sources, one request each" in answer.stderr
    assert well.returncode == 0
    (row,) = (json.loads(line) for line in well.stdout.splitlines())
    assert (row["source"], row["verdict"], row["status"]) == ("modal", "works", 200)
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    "arguments",
    [("--source", "modal"), ("--live", "--fix"), ("--save", "x"), ("--live", "--pages", "folder")],
)
def test_options_that_do_not_go_together(arguments: tuple[str, ...], tmp_path: Path) -> None:
    answer = gpufare("doctor", *arguments, home=tmp_path)
    assert answer.returncode != 0
    assert "--live" in answer.stderr
