"""The archive: each answer on disk at once, nothing overwritten, nothing believed unchecked."""

import gzip
import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive, CaptureWriter
from pipeline.capture.index import PagesError, sha256_of
from pipeline.contracts.capture import Capture
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.request import Entry

DAY = date(2026, 8, 22)
MOMENT = datetime(2026, 8, 22, 6, 0, tzinfo=UTC)
JSON = {"content-type": "application/json; charset=utf-8"}


def entry(path: str = "/gpus", **facts) -> Entry:
    defaults = {"outcome": "ok", "headers": JSON, "observed_at": MOMENT}
    return Entry(url=f"https://a.example{path}", **{**defaults, **facts})


def written(archive: Archive, *texts: bytes, status: str = "captured", day: date = DAY) -> Capture:
    writer = archive.start("acme", day)
    for number, text in enumerate(texts):
        writer.add(entry(f"/{number}"), text)
    return writer.finish(status)


def test_where_an_answer_lies(archive: Archive) -> None:
    capture = written(archive, b'{"a":1}')
    assert archive.folder(capture).parent == archive.root / "acme" / "2026-08-22"
    assert sorted(path.name for path in archive.folder(capture).iterdir()) == ["0001.json.gz", "index.json"]
    assert gzip.decompress((archive.folder(capture) / "0001.json.gz").read_bytes()) == b'{"a":1}'
    content = json.loads((archive.folder(capture) / "index.json").read_text())
    assert (content["source"], content["day"], content["status"]) == ("acme", "2026-08-22", "captured")
    (kept,) = content["answers"]
    assert kept["method"] == "GET"
    assert kept["url"] == "https://a.example/0"
    assert kept["file"] == "0001.json.gz"
    assert kept["sha256"] == "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
    assert kept["bytes"] == 7
    assert kept["observed_at"] == "2026-08-22T06:00:00Z"
    assert kept["headers"] == {"content-type": "application/json; charset=utf-8"}


def test_what_was_written_is_read_back(archive: Archive) -> None:
    capture = written(archive, b'{"a":1}', "größe\0\xff".encode())
    first, second = archive.answers(capture)
    assert (first.url, first.body, first.observed_at, first.status) == (
        "https://a.example/0",
        b'{"a":1}',
        MOMENT,
        200,
    )
    assert first.headers == JSON
    assert first.sha256 == sha256_of(b'{"a":1}')
    assert second.body == "größe\0\xff".encode()


def test_only_what_a_reader_may_read_is_an_answer(archive: Archive) -> None:
    writer = archive.start("acme", DAY)
    writer.add(entry("/blocked", status=403, outcome="http_403"), b"<html>challenge</html>")
    writer.add(entry("/html", outcome="wrong_content_type"), b"<html>")
    writer.add(entry("/refused", status=None, outcome="connection_refused"), None)
    writer.add(entry("/empty", outcome="empty_body"), b"")
    writer.add(entry("/good"), b"{}")
    capture = writer.finish("partial")
    assert [answer.body for answer in archive.answers(capture)] == [b"{}"]
    assert len(capture.entries) == 5
    assert capture.entries[0].bytes == 22


def test_an_answer_is_on_disk_before_the_next_is_asked(archive: Archive) -> None:
    writer = archive.start("acme", DAY)
    writer.add(entry("/1"), b"one")
    writer.add(entry("/2"), b"two")
    # Here the process dies: nothing more is called.
    (interrupted,) = Archive(archive.root).captures("acme")
    assert interrupted.status is None
    assert [answer.body for answer in archive.answers(interrupted)] == [b"one", b"two"]


def test_truncated_line_is_skipped(archive: Archive) -> None:
    writer = archive.start("acme", DAY)
    writer.add(entry("/1"), b"one")
    with (writer.folder / "journal.jsonl").open("a") as journal:
        journal.write('{"method": "GET", "url": "https://a.exa')
    (interrupted,) = archive.captures("acme")
    assert [answer.body for answer in archive.answers(interrupted)] == [b"one"]


def test_a_file_half_written_is_not_taken_for_a_whole_one(archive: Archive) -> None:
    writer = archive.start("acme", DAY)
    (writer.folder / ".0001.json.gz.writing").write_bytes(b"\x1f\x8b half")
    writer.add(entry(), b"whole")
    assert [answer.body for answer in archive.answers(writer.finish("captured"))] == [b"whole"]


def test_nothing_is_overwritten(archive: Archive) -> None:
    first, second = written(archive, b"one"), written(archive, b"two")
    assert first.capture_id != second.capture_id
    writer: CaptureWriter = archive.start("acme", DAY)
    (writer.folder / "0001.json.gz").write_bytes(b"in the way")
    with pytest.raises(GpufareError, match="never overwritten"):
        writer.add(entry(), b"three")
    assert (writer.folder / "0001.json.gz").read_bytes() == b"in the way"
    assert (archive.folder(first) / "0001.json.gz").stat().st_mode & 0o222 == 0


def test_captures_are_listed_by_source_and_day(archive: Archive) -> None:
    written(archive, b"old", day=date(2026, 8, 20))
    written(archive, b"morning")
    written(archive, b"noon", status="partial")
    written(archive, status="failed")
    archive.start("acme", DAY)  # interrupted
    assert archive.days("acme") == [date(2026, 8, 20), DAY]
    assert archive.sources() == ["acme"]
    assert len(archive.captures("acme")) == 5
    assert len(archive.captures("acme", DAY)) == 4


def test_a_changed_body_is_noticed(archive: Archive) -> None:
    capture = written(archive, b"h100,2.99")
    path = archive.folder(capture) / "0001.json.gz"
    path.chmod(0o644)
    path.write_bytes(gzip.compress(b"h100,0.29"))
    with pytest.raises(PagesError, match=r"0001\.json\.gz was changed or damaged"):
        archive.answers(capture)


@pytest.mark.parametrize("damage", [b"", b"not gzip", gzip.compress(b"h100,2.99", mtime=0)[:-4]])
def test_a_damaged_body_is_noticed(archive: Archive, damage: bytes) -> None:
    capture = written(archive, b"h100,2.99")
    path = archive.folder(capture) / "0001.json.gz"
    path.chmod(0o644)
    path.write_bytes(damage)
    with pytest.raises(PagesError, match=r"0001\.json\.gz"):
        archive.answers(capture)


def test_a_missing_body_is_noticed(archive: Archive) -> None:
    capture = written(archive, b"h100,2.99")
    (archive.folder(capture) / "0001.json.gz").unlink()
    with pytest.raises(PagesError, match="is missing"):
        archive.answers(capture)


def test_a_damaged_index_spoils_its_own_capture_only(archive: Archive) -> None:
    bad = written(archive, b"bad")
    index = archive.folder(bad) / "index.json"
    index.chmod(0o644)
    index.write_text("{")
    damaged = archive.captures("acme")[-1]
    assert (damaged.status, damaged.entries) == ("failed", ())
    assert "index.json is not an index of answers" in (damaged.error or "")


def test_folders_that_are_no_days_are_passed_over(archive: Archive, tmp_path: Path) -> None:
    written(archive, b"one")
    (archive.root / "acme" / "notes").mkdir()
    (archive.root / "acme" / "2026-08-23").write_text("a file")
    assert archive.days("acme") == [DAY]
