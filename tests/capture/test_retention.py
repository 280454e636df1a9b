"""A body that has not changed is stored once; every capture's folder is complete all the same."""

import gzip
import json
import shutil
from datetime import date, timedelta
from pathlib import Path

import pytest

from pipeline.capture.archive import Archive
from pipeline.contracts.capture import Capture
from pipeline.contracts.errors import GpufareError

from .test_archive import DAY, entry, written

ACME = "prices.acme.example"
NEXT = DAY + timedelta(days=1)
BODY = b'{"h100": 2.99}' * 100


def stored(archive: Archive, capture: Capture, at: int = 0) -> Path:
    file = capture.entries[at].file
    assert file is not None
    return archive.folder(capture) / file


def test_an_equal_body_of_the_next_day_is_a_second_name_of_the_same_file(archive: Archive) -> None:
    first, second = written(archive, BODY), written(archive, BODY, day=NEXT)
    assert stored(archive, first).stat().st_ino == stored(archive, second).stat().st_ino
    assert [answer.body for answer in archive.answers(second)] == [BODY]
    assert stored(archive, second).stat().st_mode & 0o222 == 0


def test_a_changed_body_is_a_file_of_its_own(archive: Archive) -> None:
    first, second = written(archive, BODY), written(archive, BODY + b" ", day=NEXT)
    assert stored(archive, first).stat().st_ino != stored(archive, second).stat().st_ino


def test_the_same_body_twice_in_one_capture_is_stored_once(archive: Archive) -> None:
    capture = written(archive, BODY, b"other", BODY)
    assert stored(archive, capture, 0).stat().st_ino == stored(archive, capture, 2).stat().st_ino
    assert len(archive.answers(capture)) == 3


def test_damage_is_not_handed_on(archive: Archive) -> None:
    """The earlier file is read before it gets a second name; the later capture is whole."""
    first = written(archive, BODY)
    damaged = stored(archive, first)
    damaged.chmod(0o644)
    damaged.write_bytes(b"\x1f\x8b damaged")
    second = written(archive, BODY, day=NEXT)
    assert stored(archive, second).stat().st_nlink == 1
    assert [answer.body for answer in archive.answers(second)] == [BODY]


@pytest.mark.parametrize("damage", ["missing", "damaged index", "outside"])
def test_an_earlier_capture_that_is_broken_is_not_used(archive: Archive, tmp_path: Path, damage: str) -> None:
    first = written(archive, BODY)
    index = archive.folder(first) / "index.json"
    index.chmod(0o644)
    if damage == "missing":
        stored(archive, first).unlink()
    elif damage == "damaged index":
        index.write_text("{")
    else:
        (tmp_path / "outside.gz").write_bytes(gzip.compress(BODY))
        content = json.loads(index.read_text())
        content["answers"][0]["file"] = "../../../../outside.gz"
        index.write_text(json.dumps(content))
    second = written(archive, BODY, day=NEXT)
    assert stored(archive, second).stat().st_nlink == 1
    assert [answer.body for answer in archive.answers(second)] == [BODY]


def test_a_name_that_is_taken_is_not_overwritten_by_a_link(archive: Archive) -> None:
    written(archive, BODY)
    writer = archive.start("acme", NEXT)
    (writer.folder / "0001.json.gz").write_bytes(b"in the way")
    with pytest.raises(GpufareError, match="never overwritten"):
        writer.add(entry(), BODY)
    assert (writer.folder / "0001.json.gz").read_bytes() == b"in the way"


def test_a_folder_is_complete_when_it_is_copied_and_the_rest_is_gone(
    archive: Archive, tmp_path: Path
) -> None:
    written(archive, BODY)
    second = written(archive, BODY, day=NEXT)
    elsewhere = Archive(tmp_path / "elsewhere")
    shutil.copytree(archive.folder(second), elsewhere.folder(second))
    shutil.rmtree(archive.root / "acme" / str(DAY))
    for place in (archive, elsewhere):
        (again,) = place.captures("acme")
        assert [answer.body for answer in place.answers(again)] == [BODY]


def test_an_interrupted_capture_is_whole_and_the_one_before_it_is_linked_to(archive: Archive) -> None:
    written(archive, BODY)
    archive.start("acme", DAY).add(entry(), BODY)  # here the process dies
    archive.start("acme", NEXT).add(entry(), BODY)  # and here again
    captures = archive.captures("acme")
    assert [archive.answers(capture)[0].body for capture in captures] == [BODY, BODY, BODY]
    assert stored(archive, captures[-1]).stat().st_nlink == 3


def test_a_source_that_has_long_failed_is_linked_to_its_last_answers(archive: Archive) -> None:
    first = written(archive, BODY, day=date(2026, 1, 1))
    for at in range(40):
        written(archive, status="failed", day=date(2026, 2, 1) + timedelta(days=at))
    written(archive, BODY, day=date(2026, 6, 1))
    assert stored(archive, first).stat().st_nlink == 2


def test_a_day_that_cannot_be_listed_costs_space_and_not_the_capture(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(archive, BODY)

    def unreadable(*_: object) -> list[Path]:
        raise PermissionError(13, "Permission denied")  # as root, no mode of a folder does

    with monkeypatch.context() as patched:
        patched.setattr(Archive, "capture_folders", unreadable)
        writer = archive.start("acme", NEXT)
    writer.add(entry(), BODY)
    assert stored(archive, writer.finish()).stat().st_nlink == 1
