"""A body that has not changed is stored once; every capture's folder is complete all the same."""

import gzip
import json
import shutil
from datetime import date, timedelta
from pathlib import Path

import pytest

from pipeline.capture.archive import CAPTURES_COMPARED, CAPTURES_SEARCHED, Archive, ArchiveError
from pipeline.contracts.capture import Capture

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
    with pytest.raises(ArchiveError, match="never overwritten"):
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


def test_an_interrupted_capture_can_be_linked_to_and_from(archive: Archive) -> None:
    writer = archive.start("acme", DAY)
    writer.add(entry(), BODY)  # here the process dies
    second = archive.start("acme", NEXT)
    second.add(entry(), BODY)  # and here again
    first, last = archive.captures("acme")
    assert [archive.answers(capture)[0].body for capture in (first, last)] == [BODY, BODY]
    assert stored(archive, last).stat().st_nlink == 2


def test_a_body_that_alternates_is_found_among_the_last_captures(archive: Archive) -> None:
    bodies = [b"a" * 50, b"b" * 50, b"c" * 50]
    days = [DAY + timedelta(days=at) for at in range(2 * len(bodies))]
    captures = [written(archive, bodies[at % 3], day=day) for at, day in enumerate(days)]
    assert len(bodies) == CAPTURES_COMPARED
    assert {stored(archive, capture).stat().st_nlink for capture in captures} == {2}


def test_a_source_that_has_long_failed_is_not_searched_from_its_beginning(archive: Archive) -> None:
    first = written(archive, BODY, day=date(2026, 1, 1))
    for at in range(CAPTURES_SEARCHED - 1):
        written(archive, status="failed", day=date(2026, 2, 1) + timedelta(days=at))
    found = written(archive, BODY, day=date(2026, 6, 1))
    assert stored(archive, found).stat().st_nlink == 2
    for at in range(CAPTURES_SEARCHED):
        written(archive, status="failed", day=date(2026, 7, 1) + timedelta(days=at))
    later = written(archive, BODY, day=date(2026, 9, 1))
    assert stored(archive, later).stat().st_nlink == 1
    assert stored(archive, first).stat().st_nlink == 2
