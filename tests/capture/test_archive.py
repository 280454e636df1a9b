"""The archive: each answer on disk at once, nothing overwritten, nothing believed unchecked, and a body that
has not changed stored once, though every capture's folder is complete."""

import gzip
import json
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline.capture.archive import Archive, began_at
from pipeline.capture.index import PagesError, sha256_of
from pipeline.contracts.capture import Capture
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.listing import Answer
from pipeline.contracts.request import Entry

from .conftest import DAY, bodies

NEXT = DAY + timedelta(days=1)
MOMENT = datetime(2026, 8, 22, 6, 0, tzinfo=UTC)
JSON = {"content-type": "Application/JSON; charset=utf-8"}
BODY = b'{"h100": 2.99}' * 100


def entry(path: str = "/gpus", **facts: Any) -> Entry:
    usual = {"outcome": "ok", "headers": JSON, "observed_at": MOMENT}
    return Entry(url=f"https://a.example{path}", **{**usual, **facts})


def written(archive: Archive, *texts: bytes, status: Any = "captured", day: date = DAY) -> Capture:
    writer = archive.start("acme", day)
    for number, text in enumerate(texts):
        writer.add(entry(f"/{number}"), text)
    return writer.finish(status)


def stored(archive: Archive, capture: Capture, at: int = 0) -> Path:
    return archive.folder(capture) / str(capture.entries[at].file)


def overwrite(path: Path, content: bytes | None) -> None:
    """Replace or delete a file of the archive, which is not writable."""
    path.unlink()
    if content is not None:
        path.write_bytes(content)


def test_what_was_written_is_read_back(archive: Archive) -> None:
    writer = archive.start("acme", DAY, replayed_from="http://127.0.0.1:1")
    first = writer.add(entry("/0"), b'{"a":1}')
    writer.add(entry("/1", observed_at=None), "größe\0\xff".encode())
    capture = writer.finish()
    folder = archive.folder(capture)
    assert folder == archive.root / "acme" / "2026-08-22" / str(capture.capture_id)
    assert abs(began_at(folder.name) - datetime.now(UTC)) < timedelta(minutes=1)
    assert sorted(path.name for path in folder.iterdir()) == ["0001.json.gz", "0002.json.gz", "index.json"]
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o444}
    content = json.loads((folder / "index.json").read_text())
    assert content.pop("duration_seconds") == capture.duration_seconds >= 0
    assert content.pop("answers") == [each.model_dump(mode="json") for each in capture.entries]
    header = {"source": "acme", "day": "2026-08-22", "status": "captured", "error": None}
    assert content == {**header, "capture_id": folder.name, "replayed_from": "http://127.0.0.1:1"}
    sha256 = "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
    assert first == capture.entries[0] == entry("/0", file="0001.json.gz", sha256=sha256, bytes=7)
    assert (capture.replayed_from, capture.day, capture.damaged) == ("http://127.0.0.1:1", DAY, False)
    body = "größe\0\xff".encode()
    assert archive.answers(capture) == [
        Answer("https://a.example/0", b'{"a":1}', MOMENT, sha256, headers=JSON),
        Answer("https://a.example/1", body, datetime(2026, 8, 22, tzinfo=UTC), sha256_of(body), headers=JSON),
    ]


def test_only_what_a_reader_may_read_is_an_answer(archive: Archive) -> None:
    writer = archive.start("acme", DAY)
    kept = [
        writer.add(entry("/blocked", status=403, outcome="http_403", headers={}), b"<html>"),
        writer.add(entry("/a", outcome="wrong_content_type", headers={"content-type": "text/html"}), b"<p>"),
        writer.add(entry("/refused", status=None, outcome="connection_refused"), None),
        writer.add(entry("/empty", outcome="empty_body"), b""),
        writer.add(entry("/good", headers={"content-type": "text/csv"}), b"{}"),
    ]  # fmt: skip
    assert [each.file for each in kept] == ["0001.bin.gz", "0002.html.gz", None, None, "0005.csv.gz"]
    capture = writer.finish(error="acme.paging: broken")
    assert bodies(archive, capture) == [b"{}"]
    forbids = "http_403: the host forbids the request (403) (and 3 more requests failed)"
    assert (capture.status, capture.error) == ("partial", f"{forbids}; acme.paging: broken")


def unreadable(*_: object) -> list[Capture]:
    raise PermissionError("the folder cannot be listed")


def test_the_answers_beside_a_body_are_those_of_its_best_capture(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = written(archive, BODY, b"one")
    written(archive, BODY, b"two")
    written(archive, b"three")
    sha256 = sha256_of(BODY)
    assert [each.body for each in archive.answers_beside("acme", DAY, sha256)] == [BODY, b"two"]
    assert archive.answers_beside("acme", NEXT, sha256) == []
    assert archive.answers_beside("acme", DAY, sha256_of(b"four")) == []
    archive.start("acme", DAY).add(entry(), BODY)  # here the process dies
    assert [each.body for each in archive.answers_beside("acme", DAY, sha256)] == [BODY, b"two"]
    overwrite(stored(archive, first, 1), None)
    assert archive.answers_beside("acme", DAY, sha256_of(b"one")) == []
    monkeypatch.setattr(Archive, "captures", unreadable)
    assert archive.answers_beside("acme", DAY, sha256) == []


def test_an_interrupted_capture_keeps_its_answers(archive: Archive) -> None:
    writer = archive.start("acme", DAY)
    assert archive.captures("acme")[0].entries == ()
    (writer.folder / ".0001.json.gz.writing").write_bytes(b"\x1f\x8b half")
    writer.add(entry("/0"), b"one")
    writer.add(entry("/1"), b"two")
    with (writer.folder / "journal.jsonl").open("a") as journal:
        journal.write('{"method": "GET", "url": "https://a.exa')  # truncated
    (interrupted,) = archive.captures("acme")
    assert (interrupted.status, interrupted.error) == (None, "the capture was interrupted")
    assert bodies(archive, interrupted) == [b"one", b"two"]
    assert not (archive.folder(writer.finish()) / "journal.jsonl").exists()


def test_nothing_is_overwritten(archive: Archive) -> None:
    """By a new file or by a link to an earlier one."""
    assert written(archive, BODY).capture_id != written(archive, BODY).capture_id
    for body in (b"another", BODY):
        writer = archive.start("acme", NEXT)
        in_the_way = writer.folder / "0001.json.gz"
        in_the_way.write_bytes(b"in the way")
        with pytest.raises(GpufareError, match=f"^{in_the_way} already exists; the archive is never over"):
            writer.add(entry(), body)
        assert in_the_way.read_bytes() == b"in the way"


def test_captures_are_listed_by_source_and_day(archive: Archive) -> None:
    old = written(archive, b"old", day=date(2026, 8, 20))
    today = [written(archive, b"noon", status="partial"), written(archive, status="failed")]
    archive.start("acme", DAY)  # interrupted
    written(archive, day=NEXT)
    for folder in ("acme/notes", "acme/2026-08-22/notes"):
        (archive.root / folder).mkdir()
    (archive.root / "acme/2026-08-24").write_text("a file")
    assert archive.sources() == ["acme"]
    assert archive.days("acme") == [date(2026, 8, 20), DAY, NEXT]
    assert [capture.day for capture in archive.captures("acme")] == [old.day, DAY, DAY, DAY, NEXT]
    assert archive.captures("acme", DAY)[:2] == today
    assert archive.captures("acme", DAY, without={str(today[0].capture_id)})[0] == today[1]
    assert archive.days("other") == archive.captures("other", DAY) == []


def test_damage_is_noticed_and_spoils_its_own_capture_only(archive: Archive) -> None:
    capture, good = written(archive, b"h100,2.99"), written(archive, b"good")
    path = stored(archive, capture)
    index = path.with_name("index.json")
    is_now, was = sha256_of(b"h100,0.29"), sha256_of(b"h100,2.99")
    damages = {
        gzip.compress(b"h100,0.29"): f"was changed or damaged: its SHA-256 is {is_now}; the index says {was}",
        b"not gzip": "is damaged: Not a gzipped file (b'no')",
        gzip.compress(b"h100,2.99")[:-4]: "is damaged: Compressed file ended before the end-of-stream",
        None: f"is missing, though {index} names it",
    }
    for damage, said in damages.items():
        overwrite(path, damage)
        with pytest.raises(PagesError) as noticed:
            archive.answers(capture)
        assert str(noticed.value).startswith(f"{path} {said}")
    for content, said in (
        (b"{", " is not an index of answers: "),
        (b'{"answers": [], "status": "?"}', ": '?' is not the status of a capture"),
    ):
        overwrite(index, content)
        damaged, whole = archive.captures("acme")
        assert (damaged.status, damaged.entries, damaged.damaged, whole) == ("failed", (), True, good)
        assert (damaged.error or "").startswith(f"{index}{said}")


# --- bodies that have not changed -----------------------------------------------------------------------


def names_of_the_file(archive: Archive, capture: Capture, at: int = 0) -> int:
    return stored(archive, capture, at).stat().st_nlink


def test_an_equal_body_is_another_name_of_the_same_file(archive: Archive) -> None:
    """As of the newest day with answers, be it long ago, or interrupted twice since."""
    first = written(archive, BODY, b"other", BODY, day=date(2026, 1, 1))
    written(archive, status="failed", day=date(2026, 2, 1))
    archive.start("acme", DAY).add(entry(), BODY)  # here the process dies
    archive.start("acme", DAY).add(entry(), BODY)  # and here again
    last = written(archive, BODY, BODY + b" ", day=NEXT)
    assert [names_of_the_file(archive, last, at) for at in (0, 1)] == [5, 1]
    assert stored(archive, first).samefile(stored(archive, last))
    shutil.rmtree(archive.folder(first))
    assert bodies(archive, last) == [BODY, BODY + b" "]


def test_an_earlier_capture_that_is_broken_is_not_used(archive: Archive, tmp_path: Path) -> None:
    """The earlier file is read before it gets a second name, so that damage is not handed on."""
    (tmp_path / "outside.gz").write_bytes(gzip.compress(BODY))
    damages: list[tuple[str, Callable[[bytes], bytes | None]]] = [
        ("0001.json.gz", lambda content: None),
        ("0001.json.gz", lambda content: gzip.compress(b"damaged")),
        ("index.json", lambda content: b"{"),
        ("index.json", lambda content: content.replace(b'"0001.json.gz"', b'"../../../../outside.gz"')),
    ]
    for file, damage in damages:
        path = archive.folder(written(archive, BODY)) / file
        overwrite(path, damage(path.read_bytes()))
        second = written(archive, BODY, day=NEXT)
        assert (names_of_the_file(archive, second), bodies(archive, second)) == (1, [BODY])
        shutil.rmtree(archive.root)


def test_a_day_that_cannot_be_listed_costs_space_and_not_the_capture(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(archive, BODY)
    with monkeypatch.context() as patched:  # for root, no mode of a folder does
        patched.setattr(Archive, "capture_folders", lambda *_: Path("/dev/null/a folder").stat())
        writer = archive.start("acme", NEXT)
    writer.add(entry(), BODY)
    assert names_of_the_file(archive, writer.finish()) == 1
