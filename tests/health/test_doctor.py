"""``gpufare doctor`` on homes with real damage: what it finds and what it leaves alone."""

import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive
from pipeline.contracts.capture import Capture
from pipeline.contracts.incidents import Incident, IncidentKind
from pipeline.contracts.outcome import Outcome, SourceResult
from pipeline.contracts.progress import no_progress
from pipeline.contracts.request import Entry
from pipeline.health.doctor import CHECKS, MAX_LINES_PER_CHECK, data, examine
from pipeline.health.doctor.finding import Examination, Finding
from pipeline.home.paths import Home
from pipeline.record.incidents import report_incident
from pipeline.record.journal import Journal
from pipeline.record.months import Month, file_of
from pipeline.record.records import Records
from tests.conftest import gpufare
from tests.scenario import MENDED, Scenario, noon

TODAY = datetime.now(UTC).date()
YESTERDAY = TODAY - timedelta(days=1)
BODY = b'{"h100": 2.99}' * 50


def archived(home: Home, *bodies: bytes, day: date = TODAY, source: str = "runpod") -> Capture:
    writer = Archive(home.archive).start(source, day)
    for at, body in enumerate(bodies):
        moment = datetime.combine(day, datetime.min.time(), UTC)
        writer.add(Entry(url=f"https://a.example/{at}", outcome="ok", observed_at=moment), body)
    return writer.finish()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A small home with two days of one source, in which nothing is wrong but that nothing is published."""
    home = Home(tmp_path / "home")
    records = Records(home)
    for day in (YESTERDAY, TODAY):
        capture = archived(home, BODY, f"{day}".encode(), day=day)
        records.write_accepted(day, "runpod", [])
        records.write_rejects(day, "runpod", [])
        outcome = Outcome(
            day=day,
            source="runpod",
            attempt=capture.capture_id or "",
            status="captured",
            result=SourceResult.FRESH,
            accepted=True,
            reason=None,
        )
        records.write_outcome(outcome)
    return home


def examination(home: Home, now: datetime) -> Examination:
    return Examination(home, now, every=False, progress=no_progress)


def look(home: Home, *, now: datetime | None = None, **options: bool) -> dict[str, list[Finding]]:
    """The findings by check."""
    found: dict[str, list[Finding]] = {name: [] for name in CHECKS}
    moment = now or datetime.now(UTC)
    for finding in examine(home, now=moment, **options):
        found[finding.check].append(finding)
    return found


def levels(found: dict[str, list[Finding]]) -> dict[str, set[str]]:
    """The levels of each check that is not ok."""
    by_check = {check: {finding.level for finding in findings} for check, findings in found.items()}
    return {check: each for check, each in by_check.items() if each != {"ok"}}


def damage(path: Path, content: bytes = b"\x1f\x8b damaged") -> Path:
    path.chmod(0o644)
    path.write_bytes(content)
    return path


def test_a_sound_home(home: Home) -> None:
    found = look(home)
    assert levels(found) == {"published": {"fail"}}
    assert all(len(findings) == 1 for findings in found.values())
    assert "4 bodies of 2 captures have the hashes of their index" in found["archive"][0].what
    assert "every file can be read" in found["record"][0].what
    assert found["published"][0].remedy == "run `gpufare refresh`"


def test_the_published_file_is_opened_and_its_age_said(scenario: Scenario) -> None:
    opens = f"opens; as of {MENDED}, published {MENDED} 12:00 UTC, 10 sources ranked"
    (fresh,) = data.published(examination(scenario.home(MENDED), noon(MENDED) + timedelta(days=1)))
    assert fresh == Finding("ok", opens)
    (old,) = data.published(examination(scenario.home(MENDED), noon(MENDED) + timedelta(days=2)))
    remedy = "run `gpufare refresh`, and find out why it has not run"
    assert old == Finding("warn", f"{opens}: 2 days old", remedy=remedy)


def test_a_published_file_that_does_not_open(home: Home) -> None:
    home.published.parent.mkdir()
    home.published.write_bytes(b"not a database")
    (finding,) = look(home)["published"]
    assert finding.level == "fail"
    assert str(home.published) in finding.what


def test_no_home(tmp_path: Path) -> None:
    (finding,) = examine(Home(tmp_path / "nowhere"), now=datetime.now(UTC))
    assert (finding.level, finding.where) == ("fail", str(tmp_path / "nowhere"))
    assert "GPUFARE_HOME" in finding.remedy


def test_a_file_in_place_of_a_folder_and_the_other_way_round(home: Home) -> None:
    home.cache.write_text("")
    home.lock.mkdir()
    found = {finding.where: finding.what for finding in look(home)["home"]}
    assert found == {
        str(home.cache): "a file is where a folder belongs",
        str(home.lock): "a folder is where a file belongs",
    }
    home.lock.rmdir()
    home.cache.unlink()
    shutil.rmtree(home.root)
    home.root.write_text("")
    assert {finding.what for finding in look(home)["home"]} >= {"a file is where a folder belongs"}


def test_a_full_disk(small_disk: Path) -> None:
    home = Home(small_disk / "home")
    home.record.mkdir(parents=True)
    (small_disk / "filler").write_bytes(bytes(60_000))
    with pytest.raises(OSError, match="No space"):
        (small_disk / "more").write_bytes(bytes(60_000))
    found = look(home)
    assert {finding.level for finding in found["home"]} == {"fail"}
    assert any("No space left on device; " in finding.what for finding in found["home"])
    assert found["disk"][0].level == "fail"
    assert found["disk"][0].where == str(small_disk)


def test_growth_counts_additions_per_day(home: Home) -> None:
    """A body that has not changed uses no space on its second day, and what is rebuilt does not grow."""
    for at in range(10, 1, -1):
        archived(home, os.urandom(100_000), BODY, day=TODAY - timedelta(days=at), source="lambda")
    home.cache.mkdir()
    (home.cache / "plans").write_bytes(bytes(10_000_000))
    (finding,) = look(home)["disk"]
    assert finding.level == "ok"
    kilobytes = float(finding.what.rpartition("; ")[2].split(" kB")[0])
    # Of eleven days nine have 100 kB each, and folders and indexes besides.
    assert 82 < kilobytes < 120
    assert "a day, the average of 11 days" in finding.what


def test_a_clock_that_is_behind(home: Home) -> None:
    (finding,) = look(home, now=datetime.now(UTC) - timedelta(hours=1))["clock"]
    assert (finding.level, "but a capture of runpod began at" in finding.what) == ("fail", True)
    assert "set the clock" in finding.remedy


# --- the archive -----------------------------------------------------------------------------------------


def test_a_damaged_body_is_left_for_a_person(home: Home) -> None:
    """One with several names is damaged under each of them."""
    capture = Archive(home.archive).captures("runpod", TODAY)[0]
    path = damage(Archive(home.archive).folder(capture) / (capture.entries[0].file or ""))
    found = look(home, every=True)["archive"]
    assert [finding.level for finding in found] == ["fail", "fail"]
    assert str(path.relative_to(home.root)) in {finding.where for finding in found}
    assert {finding.remedy for finding in found} == {"copy it back from a backup"}
    assert path.read_bytes() == b"\x1f\x8b damaged"


def test_a_damaged_index(home: Home) -> None:
    capture = Archive(home.archive).captures("runpod", TODAY)[0]
    for content in (b"", b"{", b'{"answers": [{"method": 1}]}'):
        damage(Archive(home.archive).folder(capture) / "index.json", content)
        (finding,) = look(home)["archive"]
        assert (finding.level, "index.json" in finding.what) == ("fail", True)
        assert finding.remedy == "copy it back from a backup; without it the capture cannot be read again"


def test_an_interrupted_capture_is_not_a_failure(home: Home) -> None:
    Archive(home.archive).start("runpod", TODAY).add(Entry(url="https://a.example/"), b"x")
    assert look(home)["archive"][0].level == "ok"


def test_sample_is_reported_as_one_and_all_finds_everything(home: Home) -> None:
    for at in range(2, 40):
        archived(home, f"page {at}".encode(), day=TODAY - timedelta(days=at))
    damaged = {damage(path) for path in home.archive.glob(f"*/{TODAY - timedelta(days=30)}/*/*.gz")}
    assert len(damaged) == 1
    assert [finding.level for finding in look(home, every=True)["archive"]] == ["fail"]
    samples = [look(home, now=datetime.now(UTC) + timedelta(days=later))["archive"][0] for later in range(40)]
    assert {finding.level for finding in samples} == {"ok", "fail"}  # every day has its turn
    (whole,) = {finding.what.partition(": ")[2] for finding in samples if finding.level == "ok"}
    assert whole == "a sample (40 days in all; --all reads every body)"


# --- the record ------------------------------------------------------------------------------------------


def test_a_damaged_file_of_the_record(home: Home) -> None:
    offers = file_of(home, Month.of("offers", "runpod", TODAY))
    for path in (offers, Journal(home).path):
        damage(path, path.read_bytes()[: path.stat().st_size // 2])
    found = look(home)["record"]
    assert {finding.where for finding in found} == {
        str(path.relative_to(home.root)) for path in (offers, Journal(home).path)
    }
    remedy = "the next `gpufare refresh` sets it aside and reads its days again from the archive"
    assert {(finding.level, finding.remedy) for finding in found} == {("fail", remedy)}


def test_many_damaged_files_are_counted(home: Home) -> None:
    for number in range(1, 30):
        path = home.record / "rankings" / f"{2000 + number}-06.parquet"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
    found = look(home)["record"]
    assert len(found) == MAX_LINES_PER_CHECK + 1
    assert (found[-1].level, found[-1].what) == ("fail", f"{29 - MAX_LINES_PER_CHECK} more like these")


# --- what lies about -------------------------------------------------------------------------------------


def test_litter_is_counted(home: Home) -> None:
    litter = home.record / "offers" / "runpod" / ".2026-08-22.parquet.1.tmp"
    litter.write_bytes(b"")
    os.utime(litter, (0, 0))
    (finding,) = look(home)["litter"]
    assert finding.level == "warn"
    assert finding.what.startswith("1 half-written files")
    assert litter.exists()


def test_stray_files_are_reported_and_not_deleted(home: Home) -> None:
    strays = [
        home.root / "notes.txt",
        home.record / "offers" / "runpod" / "2026-08-22 (copy).parquet",
        home.archive / "runpod" / "backup" / "x",
        home.archive / "runpod" / f"{TODAY}" / "note.txt",
    ]
    for path in strays:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    found = look(home)["stray"]
    assert {finding.level for finding in found} == {"warn"}
    assert {finding.where for finding in found} >= {
        "notes.txt",
        "record/offers/runpod/2026-08-22 (copy).parquet",
        "archive/runpod/backup",
        f"archive/runpod/{TODAY}/note.txt",
    }
    assert all(path.exists() for path in strays)


def test_a_name_cannot_steer_the_terminal(home: Home) -> None:
    (home.root / "x\x1b[31m\nok   all").write_text("")
    (finding,) = look(home)["stray"]
    assert "\x1b" not in finding.line()
    assert "\n" not in finding.line()


def test_incidents_of_the_last_days_and_those_whose_cause_is_still_there(home: Home) -> None:
    def report(kind: IncidentKind, path: str, age_days: int) -> None:
        at = datetime.now(UTC) - timedelta(days=age_days)
        report_incident(home, Incident(at=at, kind=kind, path=path, reason=f"about {path}", remedy="look"))

    report(IncidentKind.DAMAGED_FILE, "recent", 1)
    report(IncidentKind.DAMAGED_FILE, "old", 30)
    report(IncidentKind.STRAY_FILE, "still there", 30)
    report(IncidentKind.STRAY_FILE, "gone", 1)
    (home.root / "still there").write_text("")
    found = look(home)["incidents"]
    assert [finding.where for finding in found] == ["recent", "still there"]
    assert {finding.level for finding in found} == {"warn"}


def test_damaged_files_that_were_set_aside_are_counted(home: Home) -> None:
    (home.damaged / "offers").mkdir(parents=True)
    (home.damaged / "offers" / "a.parquet").write_bytes(b"x")
    (finding,) = look(home)["incidents"]
    assert finding.what.startswith("1 damaged files were set aside")


# --- the command -----------------------------------------------------------------------------------------


def test_the_command_prints_a_line_per_check_and_fails_when_something_does(home: Home) -> None:
    run = gpufare("doctor", home=home)
    assert run.returncode == 1
    lines = run.stdout.splitlines()
    assert [line.split()[1] for line in lines] == list(CHECKS)
    assert [line for line in lines if line.startswith("fail")] == [
        f"fail  published {home.published}: nothing is published yet -> run `gpufare refresh`"
    ]
    assert "1 check failed" in run.stderr


def test_the_command_gives_json(copy_of: Callable[..., Home]) -> None:
    home = copy_of(MENDED)
    run = gpufare("doctor", "--all", "--format", "jsonl", home=home)
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    assert (run.returncode, [row["check"] for row in rows]) == (0, list(CHECKS))
    found = {row["check"]: (row["level"], row["what"]) for row in rows}
    assert found["archive"][1] == "97 bodies of 40 captures have the hashes of their index: every body"
    assert found["record"] == ("ok", "every file can be read")
    assert found["own"] == ("ok", "every row of your own GPUs, models and workloads can be used")
    assert found["incidents"][1].endswith("future_day: the home has data of this future date")
    assert rows[0].keys() == {"level", "check", "where", "what", "remedy"}
