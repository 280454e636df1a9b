"""``gpufare doctor --live`` on servers that behave and misbehave: what it says, and what it leaves alone."""

import json
import resource
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Limits
from pipeline.capture.replay import PagesServer, page_entries
from pipeline.catalog.source_config import source_config
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.outcome import SourceResult
from pipeline.health.doctor.live import LiveReport, examine_live
from pipeline.health.doctor.saved_pages import save_pages
from pipeline.home.paths import Home
from pipeline.refresh.ingest import record_day
from pipeline.refresh.inputs import captures_of, day_to_read
from pipeline.refresh.refresh import refresh
from tests.conftest import PAGES, gpufare
from tests.faulty_server import FaultyServer, redirects_to, refusing, says
from tests.test_faults import edited

NOW = datetime(2026, 8, 22, 12, tzinfo=UTC)
DAY = date(2026, 8, 22)
LIMITS = Limits(read_seconds=2, body_bytes=2**21, backoff_seconds=0.01, backoff_max_seconds=0.02)
KEY = "secret-of-mine-0123456789"
NAMES = ("primeintellect", "verda", "scaleway", "ecb", "modal")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[LiveReport, Path]:
    """Sample pages of which one repeats the key that it was asked with, and sets a cookie; and where they
    were saved. The home has a day's prices and rates already."""
    folder = tmp_path_factory.mktemp("saved")
    home = Home(folder / "home")
    (page,) = {entry.file for entry in page_entries(PAGES / "primeintellect", None) if entry.file}
    headers = '"set-cookie": "session=abc", "x-client-ip": "9.9.9.9", "content-type"'
    edits = {
        ("primeintellect", page): lambda text: text.replace('"cloudId"', f'"for": "{KEY}", "cloudId"'),
        ("primeintellect", "index.json"): lambda text: text.replace('"content-type"', headers),
    }
    with PagesServer(edited(folder / "pages", edits)) as server:
        refresh(home, day=DAY, sources=["ecb"], pages=server.base_url, environment={}, now=NOW)
        before = {path: path.read_bytes() for path in home.root.rglob("*") if path.is_file()}
        environment, asked = {"PRIME_API_KEY": KEY}, {"names": NAMES, "pages": server.base_url}
        report = examine_live(home, now=NOW, environment=environment, save=folder / "proof", **asked)  # type: ignore[arg-type]
    assert {path: path.read_bytes() for path in home.root.rglob("*") if path.is_file()} == before
    return report, folder / "proof"


def test_each_source_has_its_outcome_and_what_it_took(saved: tuple[LiveReport, Path]) -> None:
    report, folder = saved
    assert not report.failed
    (modal,) = (row for row in report.table().dicts() if row["source"] == "modal")
    assert (modal["result"], modal["accepted"], modal["requests"]) == (SourceResult.FRESH, True, 1)
    assert (modal["next_step"], modal["saved_to"]) == (None, str(folder / "modal"))
    assert modal["bytes"] == (PAGES / "modal" / "pricing.html").stat().st_size
    (line,) = (line for line in report.lines() if line.startswith("modal"))
    assert f"accepted  {modal['rows']} offers, {modal['rejects']} rejected; 1 request, " in line
    assert line.endswith(f" kB in {modal['duration_seconds']:.1f} s")
    assert report.lines()[-1].startswith(f"saved in {folder}: ecb, primeintellect, verda, ")


def test_what_failed_says_why_and_what_to_do(tmp_path: Path) -> None:
    faults = {
        "coreweave": says(403, b"<h1>Forbidden</h1>", content_type="text/html"),
        "cudo": says(200, b"<html>", content_type="text/html"),
        "hyperstack": redirects_to("http://elsewhere.invalid/"),
        "gcp": says(200, b"", content_type="text/html"),
    }
    names = [*faults, "primeintellect", "modal"]
    with FaultyServer(PAGES, faults) as server:
        asked = {"names": names, "environment": {}, "pages": server.base_url}
        report = examine_live(Home(tmp_path), now=NOW, limits=LIMITS, **asked)  # type: ignore[arg-type]
    assert {outcome.source for outcome in report.failed} == set(faults)
    lines = {line.split()[0]: line for line in report.lines()}
    assert "NOT ACCEPTED  http_403: " in lines["coreweave"]
    assert " -> try from another network" in lines["coreweave"]
    assert "sent an HTML page as text/html, expected application/json" in lines["cudo"]
    assert "elsewhere.invalid" in lines["hyperstack"]
    assert "; 1 request, 0 bytes in " in lines["gcp"]
    assert "not asked  needs a key -> set PRIME_API_KEY" in lines["primeintellect"]


def test_many_that_fail_alike_are_one_line(tmp_path: Path) -> None:
    with refusing() as url:
        asked = {"names": ["modal", "ecb", "civo", "primeintellect"], "environment": {}, "pages": url}
        report = examine_live(Home(tmp_path), now=NOW, limits=LIMITS, **asked)  # type: ignore[arg-type]
    shared = report.lines()[0]
    assert shared.startswith(f"all 3 sources asked failed alike: {url} does not answer")
    assert shared.endswith("; --format json has each error")
    assert (len(report.failed), len(report.refresh.asked)) == (3, 3)


def test_a_source_that_is_off_is_not_asked(tmp_path: Path) -> None:
    """Of the providers themselves, and with the user's choices of the home: nothing is sent."""
    said: list[str] = []
    home, now = Home(tmp_path), datetime.now(UTC)
    assert gpufare("sources", "disable", "modal", home=home).returncode == 0
    names = ["vast", "modal", "tensordock", "primeintellect"]
    report = examine_live(home, names=names, now=now, environment={}, progress=said.append)
    assert said[0] == "asking no source"
    assert report.refresh.asked == []
    assert [line.split(";")[0] for line in report.lines()[:2]] == [
        "off by their terms: vast",
        "off because you disabled them: modal",
    ]


# ------------------------------------------------------------------ answers that are kept


def test_no_key_and_no_cookie_is_kept(saved: tuple[LiveReport, Path]) -> None:
    files = [path for path in saved[1].rglob("*") if path.is_file()]
    assert len(files) > len(NAMES)
    for file in files:
        content = file.read_bytes()
        assert KEY.encode() not in content, file
        assert b"cookie" not in content, file
        assert b"9.9.9.9" not in content, file
    assert any(b"${PRIME_API_KEY}" in file.read_bytes() for file in (saved[1] / "primeintellect").iterdir())


def test_nothing_is_saved_where_a_key_is_found(tmp_path: Path) -> None:
    config, archive = source_config("primeintellect"), Archive(tmp_path / "archive")
    capture = captures_of([config], DAY, str(PAGES), archive, {}, named=True)["primeintellect"][0]
    update = {"final_url": f"https://a.example/{KEY}"}
    leaky = replace(capture, entries=tuple(each.model_copy(update=update) for each in capture.entries))
    with pytest.raises(GpufareError, match="would have a key in it"):
        save_pages(tmp_path / "proof", leaky, archive, {"PRIME_API_KEY": KEY})
    assert not (tmp_path / "proof").exists()


@pytest.mark.parametrize("name", NAMES)
def test_the_folder_is_one_of_pages_and_gives_the_same_offers(
    name: str, saved: tuple[LiveReport, Path], tmp_path: Path
) -> None:
    """As a refresh reads it, and as a replay server serves it."""
    report, folder = saved
    (outcome,) = (each for each in report.refresh.outcomes if each.source == name)
    config, home = source_config(name), Home(tmp_path)
    day = day_to_read(None, [config], str(folder), NOW.date())
    assert day == DAY
    captures = captures_of([config], day, str(folder), Archive(home.archive), {}, named=True)
    assert record_day(config, day, captures[name], home).rows == outcome.rows
    with PagesServer(folder) as server:
        asked = {"names": [name], "environment": {"PRIME_API_KEY": "another-key"}, "pages": server.base_url}
        (again,) = examine_live(home, now=NOW, **asked).refresh.outcomes  # type: ignore[arg-type]
    assert (again.result, again.rows) == (SourceResult.FRESH, outcome.rows)
    sample = {entry.url for entry in page_entries(PAGES / name, config) if entry.usable}
    assert {entry.url for entry in page_entries(folder / name, config) if entry.usable} == sample


def test_nothing_is_overwritten(saved: tuple[LiveReport, Path], tmp_path: Path) -> None:
    before = set(saved[1].rglob("*"))
    with pytest.raises(GpufareError, match="already has modal"):
        examine_live(Home(tmp_path), names=["modal"], now=NOW, environment={}, save=saved[1])
    assert set(saved[1].rglob("*")) == before


def test_answers_that_cannot_be_saved_are_named_and_the_others_kept(tmp_path: Path) -> None:
    """A file gets in the way of one while it is asked."""
    proof = tmp_path / "proof"
    proof.mkdir()
    with PagesServer(PAGES) as server:
        asked = {"names": ["modal", "ecb"], "environment": {}, "pages": server.base_url, "save": proof}
        report = examine_live(
            Home(tmp_path / "home"),
            now=NOW,
            progress=lambda text: (proof / "modal").touch(),
            **asked,  # type: ignore[arg-type]
        )
    assert report.failed == []
    assert report.not_saved["modal"].startswith("the answers cannot be saved: ")
    assert any(line.startswith("modal: not saved: ") for line in report.lines())
    assert report.saved == {"ecb": proof / "ecb"}
    assert sorted(path.name for path in proof.iterdir()) == ["ecb", "modal"]


def test_no_half_of_a_folder_is_left(tmp_path: Path) -> None:
    config, archive = source_config("modal"), Archive(tmp_path / "archive")
    capture = captures_of([config], DAY, str(PAGES), archive, {}, named=True)["modal"][0]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))  # as if the disk had no more room
    try:
        with pytest.raises(GpufareError, match="cannot be saved"):
            save_pages(tmp_path / "proof" / "modal", capture, archive, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list((tmp_path / "proof").iterdir()) == []


def test_failures_and_odd_answers_are_saved_as_they_were(tmp_path: Path) -> None:
    odd = says(200, (PAGES / "verda" / "instance_types.json").read_bytes(), content_type="text/plain")
    with FaultyServer(PAGES, {"verda": odd, "linode": says(404)}) as server:
        asked = {"names": ["verda", "linode"], "environment": {}, "pages": server.base_url}
        examine_live(Home(tmp_path / "home"), now=NOW, limits=LIMITS, save=tmp_path, **asked)  # type: ignore[arg-type]
    chosen = [source_config("verda"), source_config("linode")]
    captures = captures_of(chosen, DAY, str(tmp_path), Archive(tmp_path / "archive"), {}, named=True)
    assert any("text/plain" in warning for warning in captures["verda"][0].warnings)
    assert captures["linode"][0].code == "http_404"


# ------------------------------------------------------------------ the command


def test_the_command_fails_when_a_source_does(tmp_path: Path) -> None:
    with FaultyServer(PAGES, {"linode": says(404)}) as server:
        ask = ("doctor", "--live", "--pages", server.base_url, "--source", "modal")
        home, two = tmp_path / "home", ("--source", "linode", "--save", str(tmp_path / "proof"))
        answer = gpufare(*ask, *two, home=home)
        well = gpufare(*ask, "--format", "jsonl", home=home)
    assert answer.returncode == 1
    assert answer.stderr.splitlines()[-1] == "Error: 1 of 2 sources asked failed"
    assert "look through them before you hand them on" in answer.stdout.splitlines()[-1]
    assert well.returncode == 0
    (row,) = (json.loads(line) for line in well.stdout.splitlines())
    assert (row["source"], row["result"], row["saved_to"]) == ("modal", "fresh", None)
    assert not home.exists()


@pytest.mark.parametrize(
    "arguments",
    [("--source", "modal"), ("--live", "--fix"), ("--save", "x"), ("--live", "--pages", "folder")],
)
def test_options_that_do_not_go_together(arguments: tuple[str, ...], tmp_path: Path) -> None:
    answer = gpufare("doctor", *arguments, home=tmp_path)
    assert answer.returncode != 0
    assert "--live" in answer.stderr
