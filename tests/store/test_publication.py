"""A publication appears whole, by its pointer, which never turns back; what went wrong is named."""

import hashlib
import json
import re
from datetime import timedelta
from pathlib import Path

import pytest

from pipeline.home.paths import Home
from pipeline.store.address import StoreError
from pipeline.store.publication import POINTER, Publication, Writer, bucket_at, newest
from pipeline.warehouse.query import NotPublishedError
from tests.store.conftest import DAY, objects, overwrite, published, sent, two_files

NEXT_DAY = DAY + timedelta(days=1)


def pointed(address: str) -> Publication:
    found = newest(bucket_at(address))
    assert found is not None
    return found


def after(*others: tuple[Home, str, str]) -> Writer:
    """A writer of a part, before whose end others publish: between the look at the pointer and its turn."""

    def write(published: Home, folder: Path) -> Path:
        for home, address, part in others:
            sent(home, address, *filter(None, [part]))
        return two_files(published, folder)

    return write


def test_the_pointer_leads_to_every_part(address: str, home: Home) -> None:
    line = sent(home, address, "page", "csv")
    assert line == f"stored at {address}: database, csv, page as of {DAY}, built {DAY} 06:00 UTC"
    stored = objects(address)
    pointer = json.loads(stored.pop(POINTER))
    content = home.published.read_bytes()
    name, digest = pointer["database"]["name"], hashlib.sha256(content).hexdigest()
    assert pointer["database"] == {"name": name, "sha256": digest, "bytes": len(content)}
    assert stored[name] == content
    assert re.fullmatch(rf"published/database-{DAY}-[0-9a-f]{{16}}/gpufare\.duckdb", name)
    for part in ("page", "csv"):
        name = pointer["others"][part]["name"]
        assert stored[name] == f"<!doctype html> {part}".encode()
        assert name.replace("index.html", "days/1.csv") in stored
    assert len(stored) == 1 + 2 * 2
    assert newest(bucket_at(address)) == Publication.model_validate(pointer)


def test_a_tie_leaves_the_first_publication_in_place() -> None:
    def built(number: int, minute: int) -> Publication:
        name = f"published/database-{DAY}-{number:016}/gpufare.duckdb"
        file = {"name": name, "sha256": "0" * 64, "bytes": 1}
        at = f"{DAY}T06:{minute}:00Z"
        return Publication.model_validate({"as_of_day": DAY, "as_of_time": at, "database": file})

    first, second, later = built(1, 10), built(2, 10), built(3, 11)
    assert first.stays_before(second)
    assert second.stays_before(first)
    assert not first.stays_before(first)
    assert later.stays_before(first)
    assert not first.stays_before(later)


def test_existing_objects_are_not_made_or_sent_again(address: str, home: Home) -> None:
    sent(home, address, "page")
    before = objects(address)

    def never(published: Home, folder: Path) -> Path:
        raise AssertionError("made again")

    line = sent(home, address, page=never)
    assert line.startswith(f"{address} has what is published here: database, page as of")
    sent(home, address)
    assert objects(address) == before
    sent(home, address, "csv")
    assert set(pointed(address).others) == {"page", "csv"}


def test_a_later_publication_leaves_the_objects_of_the_former(
    address: str, home: Home, tmp_path: Path
) -> None:
    sent(home, address, "page")
    before = objects(address)
    sent(published(tmp_path / "first", DAY, hour=7), address)
    after = objects(address)
    assert pointed(address).others == {}  # no page of another database
    assert {name for name in before if after[name] != before[name]} == {POINTER}
    assert len(after) == len(before) + 1


def test_what_expired_is_sent_again(address: str, home: Home) -> None:
    sent(home, address, "page", "csv")
    first = pointed(address)
    for file in (first.database, first.others["page"]):
        overwrite(address, file.name, None)
    sent(home, address)
    assert set(pointed(address).others) == {"csv"}
    assert objects(address)[first.database.name] == home.published.read_bytes()
    sent(home, address, "page")
    assert pointed(address).others == first.others


def test_the_pointer_never_turns_back(address: str, home: Home, tmp_path: Path) -> None:
    sent(published(tmp_path / "other", NEXT_DAY), address)
    before = objects(address)
    assert "has a newer publication, which stays: database as of 2026-08-22" in sent(home, address, "page")
    assert objects(address) == before


def test_of_two_that_publish_at_once_the_later_publication_stays(
    address: str, home: Home, tmp_path: Path
) -> None:
    """Whichever is sent first, and whether there was a pointer before or not."""
    later = published(tmp_path / "later", NEXT_DAY)
    assert "has a newer publication" in sent(home, address, page=after((later, address, "")))
    assert pointed(address).as_of_day == NEXT_DAY
    latest = published(tmp_path / "latest", NEXT_DAY, hour=7)
    middle = published(tmp_path / "middle", NEXT_DAY, hour=6)
    assert "has a newer publication" in sent(middle, address, csv=after((latest, address, "")))
    last = published(tmp_path / "last", NEXT_DAY + timedelta(days=1))
    assert sent(last, address, page=after((latest, address, "csv"))).startswith("stored at")
    assert pointed(address).as_of_day == NEXT_DAY + timedelta(days=1)


def test_two_that_send_parts_of_one_publication_at_once_lose_none(address: str, home: Home) -> None:
    sent(home, address, csv=after((home, address, "page")))
    assert set(pointed(address).others) == {"page", "csv"}


def test_the_pointer_is_replaced_only_as_it_was_seen(address: str) -> None:
    bucket = bucket_at(address)
    assert bucket.replace(POINTER, b"first", None)
    assert not bucket.replace(POINTER, b"another first", None)
    found = bucket.read(POINTER, 5)
    assert found is not None
    assert found[0] == b"first"
    assert bucket.replace(POINTER, b"second", found[1])
    assert not bucket.replace(POINTER, b"third", found[1])
    assert not bucket.replace("deleted.json", b"third", found[1])
    assert objects(address) == {POINTER: b"second"}
    with pytest.raises(StoreError, match="6 bytes, more than 5"):
        bucket.read(POINTER, 5)


def test_a_publisher_that_is_interrupted_leaves_the_pointer_as_it_was(address: str, home: Home) -> None:
    sent(home, address)
    before = pointed(address)
    published(home.root, NEXT_DAY)

    def interrupted(published: Home, folder: Path) -> Path:
        two_files(published, folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sent(home, address, page=interrupted)
    assert pointed(address) == before
    sent(home, address, "page")
    assert pointed(address).as_of_day == NEXT_DAY


OUTSIDE = b"""{"as_of_day": "2026-08-21", "as_of_time": "2026-08-21T06:00:00Z", "database":
    {"name": "published/../../private", "sha256": "%s", "bytes": 1}}""" % (b"0" * 64)


def test_a_damaged_pointer_is_named_and_not_replaced(address: str, home: Home) -> None:
    sent(home, address)
    damages = dict.fromkeys((b"", b"{}", OUTSIDE), "is damaged: delete it, and run `gpufare store")
    for damage, said in (damages | {b"x" * 100_000: "has 100000 bytes"}).items():
        overwrite(address, POINTER, damage)
        for use in (lambda: sent(home, address), lambda: newest(bucket_at(address))):
            with pytest.raises(StoreError, match=re.escape(f"{address}/{POINTER} {said}")):
                use()
        assert objects(address)[POINTER] == damage
    overwrite(address, POINTER, None)
    assert newest(bucket_at(address)) is None
    sent(home, address)
    assert pointed(address).as_of_day == DAY


def test_without_a_published_file_nothing_is_sent(address: str, tmp_path: Path) -> None:
    with pytest.raises(NotPublishedError, match="run `gpufare refresh` first"):
        sent(Home(tmp_path / "empty"), address)
