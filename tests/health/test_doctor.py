"""``gpufare doctor`` on homes with real damage: what it finds and what it leaves alone."""

import json
import os
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from pipeline.capture.archive import Archive
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.contracts.outcome import SourceResult
from pipeline.contracts.request import Entry
from pipeline.health.doctor import CHECKS, examine
from pipeline.health.doctor.finding import Finding
from pipeline.health.doctor.live import examine_live, outcomes_table
from pipeline.home.paths import Home
from pipeline.record.incidents import report_incident
from pipeline.record.journal import Journal
from pipeline.record.months import Month, file_of
from pipeline.record.records import Records
from pipeline.refresh.clock import REMEDY
from tests.conftest import gpufare
from tests.homes import PAGES
from tests.refresh.faulty_server import FaultyServer, says
from tests.scenario import BAD, LIMITS, Scenario, noon

NOW = datetime.now(UTC)
TODAY = NOW.date()
HASHES = "have the hashes of their index"


def archived(home: Home, *bodies: bytes, day: date = TODAY, source: str = "runpod") -> Path:
    """Archive answers of a day; return the folder of the capture."""
    writer = Archive(home.archive).start(source, day)
    for at, body in enumerate(bodies):
        writer.add(Entry(url=f"https://a.example/{at}", outcome="ok", observed_at=NOW), body)
    return Archive(home.archive).folder(writer.finish())


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A small home with two days of one source, in which nothing is wrong but that nothing is published."""
    home = Home(tmp_path / "home")
    for day in (TODAY - timedelta(days=1), TODAY):
        archived(home, b"the same" * 50, f"{day}".encode(), day=day)
        Records(home).write_accepted(day, "runpod", [])
    return home


def look(home: Home, *, now: datetime = NOW, **options: bool) -> dict[str, list[tuple[str, str, str, str]]]:
    """The level, place, text and remedy of the findings by check."""
    found: dict[str, list[Any]] = {name: [] for name in CHECKS}
    for each in examine(home, now=now, **options):
        found[each.check].append((each.level, each.where, each.what, each.remedy))
    return found


def damage(path: Path, content: bytes = b"\x1f\x8b damaged") -> Path:
    path.chmod(0o644)
    path.write_bytes(content)
    return path


def test_a_home_says_whether_it_is_the_demos_and_how_it_grows(home: Home, tmp_path: Path) -> None:
    ((_, _, plain, _),) = look(home)["home"]
    assert plain.startswith("can be written, on the disk of /")
    home.demo.touch()
    ((_, _, said, _),) = look(home)["home"]
    assert said == f"the demo's: sample prices, no refresh from the providers; {plain}"
    (tmp_path / "empty").mkdir()
    ((_, _, disk, _),) = look(Home(tmp_path / "empty"))["disk"]
    assert disk.endswith("; no day is archived yet")


def test_a_sound_home_has_one_line_per_check(home: Home) -> None:
    found = look(home)
    assert [len(lines) for lines in found.values()] == [1] * len(CHECKS)
    sizes, growth = found.pop("disk")[0][2].rsplit("; ", 1)
    assert "are free; the home uses " in sizes
    assert growth.endswith(" kB a day, the average of 2 days")
    bodies = f"4 bodies of 2 captures {HASHES}: a sample (2 days in all; --all reads every body)"
    assert {check: (lines[0][0], lines[0][2]) for check, lines in found.items()} == {
        "home": ("ok", found["home"][0][2]),
        "clock": ("ok", f"{NOW:%Y-%m-%d %H:%M} UTC, and no capture is later"),
        "archive": ("ok", bodies),
        "record": ("ok", "every file can be read"),
        "published": ("fail", "nothing is published yet"),
        "litter": ("ok", "no half-written files of killed processes"),
        "stray": ("ok", "nothing that does not belong here"),
        "own": ("ok", "every row of your own GPUs, models and workloads can be used"),
        "incidents": ("ok", "none in the last 7 days"),
    }
    run = gpufare("doctor", home=home)
    assert (run.returncode, run.stderr) == (1, "Error: 1 check failed\n")
    assert f"published {home.published}: nothing is published yet -> run `gpufare refresh`" in run.stdout


def test_the_published_file_is_opened_and_its_age_said(scenario: Scenario, home: Home) -> None:
    opens = f"opens; as of {BAD}, published {BAD} 12:00 UTC, 10 sources ranked"
    assert look(scenario.home(BAD), now=noon(BAD) + timedelta(days=1))["published"] == [("ok", "", opens, "")]
    remedy = "run `gpufare refresh`, and find out why it has not run"
    old = [("warn", "", f"{opens}: 2 days old", remedy)]
    assert look(scenario.home(BAD), now=noon(BAD) + timedelta(days=2))["published"] == old
    home.published.parent.mkdir()
    home.published.write_bytes(b"not a database")
    ((level, _, what, remedy),) = look(home)["published"]
    assert (level, remedy) == ("fail", "`gpufare refresh` publishes a new file")
    assert str(home.published) in what


def test_everything_that_is_wrong_in_a_home_is_named_and_left_as_it_is(home: Home) -> None:
    strays = [home.root / name for name in ("notes.txt", "archive/nobody/x", "x\x1b[31m\nok   all")]
    strays += [home.record / "offers" / "runpod" / "2026-08 (copy).parquet"]
    strays += [home.archive / "runpod" / "backup", home.archive / "runpod" / f"{TODAY}" / "note.txt"]
    for place in strays:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("")
    litter = home.record / "offers" / "runpod" / ".2026-08.parquet.1.tmp"
    litter.write_bytes(b"")
    os.utime(litter, (0, 0))
    (capture,) = (home.archive / "runpod" / f"{TODAY}").glob("2*")
    body, index = damage(capture / "0001.bin.gz"), archived(home, b"x", source="lambda")
    damage(index / "index.json", b'{"answers": [{"method": 1}]}')
    Archive(home.archive).start("lambda", TODAY).add(Entry(url="https://a.example/"), b"x")  # interrupted
    offers = file_of(home, Month.of("offers", "runpod", TODAY))
    damage(offers, offers.read_bytes()[:50])
    (home.damaged / "offers").mkdir(parents=True)
    (home.damaged / "offers" / "a.parquet").write_bytes(b"x")
    home.cache.write_text("")
    home.lock.mkdir()
    before = {path: path.read_bytes() for path in home.root.rglob("*") if path.is_file()}
    found = look(home, every=True)
    assert {path: path.read_bytes() for path in home.root.rglob("*") if path.is_file()} == before
    short = {each: str(each.relative_to(home.root)) for each in (body, index, offers, litter)}
    backup = "copy it back from a backup"
    ((_, yesterday, *_),) = [line for line in found["archive"] if line[1] not in short.values()]
    assert (home.root / yesterday).samefile(body), "a body with several names is damaged under each of them"
    assert [line[:2] + line[3:] for line in found["archive"]] == [
        ("fail", short[index], f"{backup}; without it the capture cannot be read again"),
        ("fail", yesterday, backup),
        ("fail", short[body], backup),
    ]
    remedy = "the next `gpufare refresh` sets it aside and reads its days again from the archive"
    assert [line[:2] + line[3:] for line in found["record"]] == [("fail", short[offers], remedy)]
    assert [line[0] for line in found["litter"]] == ["warn"]
    stray = "does not belong here and is not read"
    places = [str(each.relative_to(home.root)) for each in sorted([*strays, home.archive / "nobody"])]
    assert found["stray"] == [("warn", place, stray, "move it away") for place in places]
    assert [line[:3] for line in found["home"]] == [
        ("fail", str(home.cache), "a file is where a folder belongs"),
        ("fail", str(home.lock), "a folder is where a file belongs"),
    ]
    ((level, where, what, _),) = found["incidents"]
    assert (level, where, what[:33]) == ("warn", str(home.damaged), "1 damaged files were set aside (1")


def test_a_name_cannot_steer_the_terminal() -> None:
    finding = Finding("warn", "a\x1bb", "x\x1b[31m\nok   all", "do\x07", "stray")
    assert finding.line() == "warn  stray     x\ufffd[31m ok   all: a\ufffdb -> do\ufffd"
    assert Finding("ok", "well", check="own").line() == "ok    own       well"


def test_a_clock_may_be_behind_by_five_minutes(home: Home) -> None:
    (folder,) = (home.archive / "runpod" / f"{TODAY}").glob("2*")
    began = datetime.strptime(folder.name, "%Y%m%dT%H%M%S.%fZ").replace(tzinfo=UTC)
    assert look(home, now=began - timedelta(minutes=5))["clock"][0][0] == "ok"
    ((level, _, what, remedy),) = look(home, now=began - timedelta(minutes=5, seconds=1))["clock"]
    assert (level, remedy) == ("fail", "set the clock of this machine, or find out when it was wrong")
    assert what.endswith(f", but a capture of runpod began at {began:%Y-%m-%d %H:%M}")


def test_a_clock_must_agree_with_the_dates_of_the_answers(home: Home) -> None:
    headers = {"date": format_datetime(NOW - timedelta(hours=3), usegmt=True)}
    for source in ("lambda", "modal"):
        writer = Archive(home.archive).start(source, TODAY)
        writer.add(Entry(url="https://a.example", observed_at=NOW, headers=headers), None)
        writer.finish()
    by = f"on {TODAY}, by the dates in the answers of 2 sources"
    problem = f"the clock of this machine was 3.0 hours ahead {by}"
    assert look(home, now=datetime.now(UTC))["clock"] == [("fail", "", problem, REMEDY)]


def test_a_sample_is_reported_as_one_and_all_finds_everything(home: Home) -> None:
    """Every day of the archive has its turn."""
    for at in range(2, 10):
        archived(home, f"page {at}".encode(), day=TODAY - timedelta(days=at))
    damaged = {damage(path) for path in home.archive.glob(f"*/{TODAY - timedelta(days=6)}/*/*.gz")}
    assert (len(damaged), [line[0] for line in look(home, every=True)["archive"]]) == (1, ["fail"])
    samples = [look(home, now=NOW + timedelta(days=later))["archive"][0] for later in range(12)]
    assert {level for level, *_ in samples} == {"ok", "fail"}
    whole = {what for level, _, what, _ in samples if level == "ok"}
    assert whole == {f"7 bodies of 5 captures {HASHES}: a sample (10 days in all; --all reads every body)"}


def test_incidents_of_the_last_week_and_those_whose_cause_is_still_there(home: Home) -> None:
    kinds = IncidentKind
    for kind, path, days in (
        *((kinds.DAMAGED_FILE, "recent", 6), (kinds.DAMAGED_FILE, "old", 7)),
        *((kinds.STRAY_FILE, "still there", 30), (kinds.STRAY_FILE, "gone", 1)),
        *((kinds.OWN_CATALOGUE, "models.csv", 1), (kinds.UNKNOWN_SOURCE, "record/offers/runpod", 1)),
    ):
        at = NOW - timedelta(days=days)
        report_incident(home, Incident(at=at, kind=kind, path=path, reason="why", remedy="look"))
    (home.root / "still there").write_text("")
    assert look(home)["incidents"] == [
        ("warn", path, f"{NOW - timedelta(days=days):%Y-%m-%d %H:%M} {kind}: why", "look")
        for path, kind, days in (("recent", "damaged_file", 6), ("still there", "stray_file", 30))
    ]
    Journal(home).write("incident", "", TODAY, "deep", "[" * 100_000)
    assert look(home)["incidents"][0][0] == "fail"


# ------------------------------------------------------------------ --live


def test_each_source_has_its_outcome_and_what_it_took_and_the_home_stays_as_it_was(
    scenario: Scenario,
) -> None:
    """Prices are judged as on a first day, but converted with the rates that the home has."""
    home = scenario.home(BAD)
    before = {path: path.read_bytes() for path in home.root.rglob("*") if path.is_file()}
    names = ["coreweave", "hyperstack", "modal", "primeintellect", "scaleway"]
    with FaultyServer(PAGES, {"coreweave": says(403)}) as server:
        options: dict[str, Any] = {"names": names, "environment": {}, "pages": server.base_url}
        report = examine_live(home, now=noon(BAD), limits=LIMITS, **options)
    assert {path: path.read_bytes() for path in home.root.rglob("*") if path.is_file()} == before
    rows = {row["source"]: row for row in outcomes_table(report).dicts()}
    facts = ("result", "accepted", "requests", "failed_requests", "code")
    assert {name: tuple(rows[name][fact] for fact in facts) for name in names} == {
        "coreweave": (SourceResult.REFUSED_BY_HOST, False, 1, 1, "http_403"),
        "hyperstack": (SourceResult.FRESH, True, 1, 0, None),
        "modal": (SourceResult.FRESH, True, 1, 0, None),
        "primeintellect": (SourceResult.NEEDS_KEY, False, 1, 1, "needs_key"),
        "scaleway": (SourceResult.FRESH, True, 18, 0, None),
    }
    assert rows["modal"]["bytes"] == (PAGES / "modal" / "pricing.html").stat().st_size
    step = "try from another network: hosts refuse VPNs and data centres"
    assert (rows["modal"]["next_step"], rows["coreweave"]["next_step"]) == (None, step)
    assert [each.source for each in report.failed] == ["coreweave"]


def test_a_source_that_is_off_is_not_asked(tmp_path: Path) -> None:
    report = examine_live(Home(tmp_path), names=["vast", "tensordock"], now=NOW, environment={})
    assert report.asked == []
    assert [line.split(";")[0] for line in report.off] == [
        "off because of their terms: vast",
        "retired: tensordock",
    ]


def test_the_command_fails_when_a_source_does(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with FaultyServer(PAGES, {"linode": says(404)}) as server:
        options = ("doctor", "--live", "--pages", server.base_url, "--source", "modal")
        answer = gpufare(*options, "--source", "linode", home=home)
        well = gpufare(*options, "--format", "jsonl", home=home)
    assert (answer.returncode, answer.stderr.splitlines()[-1]) == (1, "Error: 1 of 2 sources asked failed")
    (row,) = (json.loads(line) for line in well.stdout.splitlines())
    assert (well.returncode, row["source"], row["result"]) == (0, "modal", "fresh")
    assert not home.exists()
