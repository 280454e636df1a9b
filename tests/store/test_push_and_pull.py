"""A home goes to the store and comes back; what is there is not sent again; what went wrong is named."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import threading
import tracemalloc
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote

import polars as pl
import pytest
from pytest_httpserver import HTTPServer

from pipeline.capture.archive import Archive
from pipeline.contracts.request import Entry
from pipeline.home.paths import Home
from pipeline.record.months import Part, month_bytes, stamp_of
from pipeline.store import ledger
from pipeline.store.address import StoreError
from pipeline.store.bucket import Version
from pipeline.store.home_files import NOT_SENT, RECORD_FILES, RECORD_FOLDERS
from pipeline.store.publication import POINTER, newest
from pipeline.store.pull import PullReport, _unpacked_right, pull
from tests.store.conftest import (
    DAY,
    NOW,
    S3,
    bucket_at,
    capture,
    content_of,
    files_of,
    objects,
    overwrite,
    publish,
    record,
    sent,
    tiny_home,
    write,
)

SOURCE0 = f"source0/{DAY}.parquet"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return tiny_home(tmp_path / "first")


@pytest.fixture
def other(tmp_path: Path) -> Home:
    return Home(tmp_path / "other")


def fetched(home: Home, address: str, **options: bool) -> PullReport:
    return pull(home, bucket_at(address), NOW, **options)


@pytest.mark.parametrize("kind", ["s3", "file"])
def test_a_home_comes_back_as_it_was(kind: str, s3: S3, home: Home, other: Home, tmp_path: Path) -> None:
    address = os.environ["GPUFARE_STORE"] if kind == "s3" else f"file://{tmp_path}/disk/kept"
    first = sent(home, address)
    assert (first.captures, first.files, first.conflicts, first.problems) == (4, 9, [], [])
    assert first.sent_objects == 4 + 2 + 9  # indexes, a body of each source, files of the record
    assert len(objects(address)) == first.sent_objects + 2 + 2  # pushes, the published file and the pointer

    report = fetched(other, address)

    assert (report.captures, report.files, report.conflicts, report.problems) == (4, 9, [], [])
    assert files_of(other) == files_of(home)
    for folder in (home, other):
        archive = Archive(folder.archive)
        one, two = archive.captures("source0")
        bodies = [archive.folder(each) / "0001.json.gz" for each in (one, two)]
        assert bodies[0].samefile(bodies[1])
        assert bodies[0].stat().st_mode & 0o222 == 0
        assert archive.answers(one)[0].body == b'{"price": 0}'


def test_an_unchanged_home_costs_two_requests(s3: S3, address: str, home: Home, other: Home) -> None:
    sent(home, address)
    s3.asked.clear()
    again = sent(home, address)
    assert (again.sent_objects, again.sent_bytes, again.requests) == (0, 0, 2)
    assert len(s3.asked) == 2
    assert s3.count("PUT") == 0
    fetched(other, address)
    s3.asked.clear()
    assert fetched(other, address).captures == 0
    assert len(s3.asked) == 2


def test_what_is_new_is_sent_and_fetched(s3: S3, address: str, home: Home, other: Home) -> None:
    sent(home, address)
    fetched(other, address)
    capture(home, "source0", b"new")
    record(home, "source0", DAY, "2")
    publish(home, DAY, 7)

    report = sent(home, address)

    assert (report.captures, report.files) == (1, 3)  # offers, rejects, and an outcome more
    s3.asked.clear()
    assert fetched(other, address).files == 3
    assert s3.count("GET") == 1 + 2 + 2 + 2 + 3  # listing, pushes, capture, publication, files
    assert files_of(other) == files_of(home)


def test_a_push_killed_in_the_middle_goes_on(s3: S3, address: str, home: Home, other: Home) -> None:
    reached, release = threading.Event(), threading.Event()

    def hold(method: str, path: str) -> None:
        if method == "PUT" and s3.count("PUT") > 5:
            reached.set()
            release.wait(30)

    s3.before = hold
    command = [sys.executable, "-m", "pipeline.cli", "store", "push"]
    environment = os.environ | {"GPUFARE_HOME": str(home.root)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        assert reached.wait(30)
        process.send_signal(signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL
    s3.before = None
    release.set()
    assert not objects(address, "pushes/")
    assert fetched(other, address).number == 0  # nothing is half there
    s3.asked.clear()

    report = sent(home, address)

    assert report.complete
    assert s3.count("PUT") < len(objects(address))
    fetched(other, address)
    assert files_of(other) == files_of(home)


def test_a_lost_index_is_made_again_from_the_store(s3: S3, address: str, home: Home) -> None:
    sent(home, address)
    for file in home.store.glob("*.sqlite*"):
        file.unlink()
    s3.asked.clear()
    report = sent(home, address)
    assert (report.sent_objects, report.captures, report.files) == (0, 0, 0)
    assert s3.count("PUT") == 0
    write(home, "models.csv", "id\n")
    assert sent(home, address).files == 1


def test_a_damaged_index_is_made_again(address: str, s3: S3, home: Home) -> None:
    sent(home, address)
    (index,) = home.store.glob("*.sqlite")
    index.write_bytes(b"no database at all" * 500)
    assert sent(home, address).sent_objects == 0


def test_a_body_is_unpacked_no_further_than_its_index_says() -> None:
    packed = gzip.compress(bytes(50_000_000))
    tracemalloc.start()
    try:
        assert not _unpacked_right(packed, "bodies/x.gz", Entry(url="", file="x.gz", bytes=10, sha256="0"))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


DAMAGES = (b"damaged", gzip.compress(b"another body"), None, b"x" * 100_000)


@pytest.mark.parametrize("part", ["bodies/", "/index.json", "record/offers/source0", "published/gpufare-"])
def test_a_damaged_object_is_named_and_the_rest_is_fetched(
    part: str, s3: S3, address: str, home: Home, tmp_path: Path
) -> None:
    sent(home, address)
    key = min(objects(address, part))
    good = content_of(address, key)
    for number, damage in enumerate(DAMAGES):
        overwrite(address, key, damage)
        other = Home(tmp_path / f"other{number}")
        if part == "published/gpufare-":
            with pytest.raises(StoreError, match=key):
                fetched(other, address)
        else:
            problems = fetched(other, address).problems
            assert problems
            assert all(key in each.path for each in problems)
        missing = files_of(home).keys() - files_of(other).keys()
        assert 1 <= len(missing) <= 4  # a body is in two captures, of two files each
        assert all(files_of(home)[path] == content for path, content in files_of(other).items())
    overwrite(address, key, good)
    assert fetched(other, address).complete
    assert files_of(other) == files_of(home)


def test_a_damaged_missing_or_exchanged_push_is_named(s3: S3, address: str, home: Home, other: Home) -> None:
    sent(home, address)
    first, second = ledger.push_name(1), ledger.push_name(2)
    one, two = content_of(address, first), content_of(address, second)
    for key, content, expected in (
        (first, one.replace(b'"captures"', b'"Captures"'), "damaged"),
        (first, None, "missing"),
        (second, one, "does not follow"),
        (second, _signed({**json.loads(two.split(b"\n")[0]), "format": 2}), "newer gpufare"),
        (second, _signed(_with_path(two, "../../escaped.json")), "does not write"),
        (second, _signed(_with_path(two, "cache/escaped.parquet")), "does not write"),
    ):
        overwrite(address, key, content)
        with pytest.raises(StoreError, match=expected):
            fetched(other, address)
        overwrite(address, key, one if key == first else two)
    assert not (other.root.parent / "escaped.json").exists()
    assert fetched(other, address).complete


def _with_path(push: bytes, path: str) -> dict[str, object]:
    about: dict[str, object] = json.loads(push.split(b"\n")[0])
    about["files"] = [{"path": path, "sha256": "0" * 64, "bytes": 1}]
    return about


def _signed(about: dict[str, object]) -> bytes:
    from pipeline.store.home_files import sha256_of

    line = json.dumps(about).encode()
    return line + b"\n" + sha256_of(line).encode() + b"\n"


def test_an_emptied_store_is_no_new_one(s3: S3, address: str, home: Home) -> None:
    sent(home, address)
    for key in objects(address):
        overwrite(address, key, None)
    with pytest.raises(StoreError, match="emptied, or is another store"):
        sent(home, address)


def test_an_index_that_names_a_file_elsewhere_is_refused(
    s3: S3, address: str, home: Home, other: Home
) -> None:
    folder = capture(home, "source2", b"body")
    index = folder / "index.json"
    about = json.loads(index.read_text())
    about["answers"][0]["file"] = "../../../../escaped.gz"
    index.chmod(0o644)
    index.write_text(json.dumps(about))
    (problem,) = sent(home, address).problems
    assert problem.path == f"archive/{folder.relative_to(home.archive)}/../../../../escaped.gz"
    assert "outside its folder" in problem.reason


def test_damage_here_is_not_sent(s3: S3, address: str, home: Home) -> None:
    folder = capture(home, "source2", b"body")
    (folder / "0001.json.gz").chmod(0o644)
    (folder / "0001.json.gz").write_bytes(gzip.compress(b"other"))
    report = sent(home, address)
    assert "changed or damaged" in report.problems[0].reason
    assert report.captures == 4
    assert not objects(address, "source2/20")


def test_other_content_under_an_archived_name_is_never_overwritten(s3: S3, address: str, home: Home) -> None:
    name = Archive(home.archive).captures("source0")[0].capture_id
    key = f"archive/source0/{DAY}/{name}/index.json"
    overwrite(address, key, b"something else")
    report = sent(home, address)
    assert [each.path for each in report.problems] == [key]
    assert "never overwritten" in report.problems[0].reason
    assert content_of(address, key) == b"something else"
    assert report.captures == 3


def test_links_and_odd_names_are_not_sent(s3: S3, address: str, home: Home, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("private")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "2026-08-20.parquet").write_text("private")
    (home.offers / "source0" / "2026-08-20.parquet").symlink_to(tmp_path / "secret")
    (home.offers / "linked").symlink_to(tmp_path / "folder")
    (home.root / "digests").symlink_to(tmp_path / "folder")
    write(home, "offers/source0/notes of mine.txt", "private")
    report = sent(home, address)
    assert (report.captures, report.files) == (4, 9)
    assert [each.path for each in report.problems] == ["digests"]
    assert all(b"private" not in content_of(address, key) for key in objects(address, "record/"))


def test_a_capture_that_is_not_finished_waits(s3: S3, address: str, home: Home) -> None:
    writer = Archive(home.archive).start("source0", DAY)
    assert sent(home, address).unfinished_captures == 1
    writer.finish()
    assert sent(home, address).captures == 1


def test_without_the_archive_or_only_what_is_published(
    s3: S3, address: str, home: Home, tmp_path: Path
) -> None:
    sent(home, address)
    lean = Home(tmp_path / "lean")
    assert fetched(lean, address, with_archive=False).captures == 0
    assert files_of(lean) == {
        path: content for path, content in files_of(home).items() if not path.startswith("archive")
    }
    reader = Home(tmp_path / "reader")
    fetched(reader, address, with_record=False)
    assert list(files_of(reader)) == ["published/gpufare.duckdb"]
    fetched(lean, address)
    assert files_of(lean) == files_of(home)


def test_days_that_were_merged_leave_the_store_and_other_homes(
    s3: S3, address: str, home: Home, other: Home
) -> None:
    sent(home, address)
    fetched(other, address)
    day_file = home.offers / SOURCE0
    month = month_bytes({Part(DAY): pl.DataFrame({"gpu_id": ["h100"]})}, {Part(DAY): stamp_of(day_file)})
    (home.offers / "source0" / "2026-08.parquet").write_bytes(month)
    (home.offers / "source1" / "2026-08.parquet").write_bytes(month)
    day_file.unlink()
    (home.offers / f"source1/{DAY}.parquet").unlink()  # gone; the month has another state of it
    (attempt,) = (home.outcomes / f"source0/{DAY}").iterdir()
    part = Part(DAY, attempt.stem)
    outcomes = pl.DataFrame({"content": [attempt.read_text()]})
    outcome_month = home.outcomes / "source0" / "2026-08.parquet"
    outcome_month.write_bytes(month_bytes({part: outcomes}, {part: stamp_of(attempt)}))
    attempt.unlink()

    sent(home, address)
    report = fetched(other, address)

    assert (report.files, report.removed) == (3, 2)
    assert not (other.offers / SOURCE0).exists()
    assert list((other.outcomes / "source0").iterdir()) == [other.outcomes / "source0" / "2026-08.parquet"]
    assert (other.offers / f"source1/{DAY}.parquet").exists()
    fetched(home, address)
    assert (home.offers / f"source1/{DAY}.parquet").exists()
    assert not (home.offers / SOURCE0).exists()


def test_a_file_changed_here_is_not_replaced(s3: S3, address: str, home: Home, other: Home) -> None:
    sent(home, address)
    write(other, f"offers/{SOURCE0}", "my own")
    report = fetched(other, address)
    assert [each.path for each in report.conflicts] == [f"offers/{SOURCE0}"]
    assert (other.offers / SOURCE0).read_text() == "my own"


def test_two_machines_that_push_at_once_do_not_mix(
    s3: S3, address: str, home: Home, other: Home, tmp_path: Path
) -> None:
    sent(home, address)
    fetched(other, address)
    record(home, "source0", DAY, "2")
    record(home, "source1", DAY, "2")
    record(other, "source0", DAY, "3")
    write(other, f"offers/source2/{DAY}.parquet", "only here")
    s3.once("PUT", ledger.push_name(3), lambda: sent(home, address))

    report = sent(other, address)

    assert {each.path.split("/")[1] for each in report.conflicts} == {"source0"}
    assert "--replace" in report.conflicts[0].remedy
    assert report.files == 1
    third = Home(tmp_path / "third")
    fetched(third, address)
    for folder in ("offers", "rejects"):
        assert (third.root / folder / SOURCE0).read_text() == f"{folder} 2"
    assert not list(third.outcomes.glob("source0/*/*063.*"))
    assert (third.offers / f"source2/{DAY}.parquet").read_text() == "only here"

    assert sent(other, address, replace=True).complete
    fetched(third, address)
    assert {(third.root / folder / SOURCE0).read_text() for folder in ("offers", "rejects")} == {
        "offers 3",
        "rejects 3",
    }


def test_the_pointer_never_turns_back(s3: S3, address: str, home: Home, other: Home) -> None:
    publish(home, DAY + timedelta(days=1))
    publish(other, DAY)
    sent(home, address)
    report = sent(other, address)
    assert "the store has a newer publication" in report.publication_note
    pointed = newest(bucket_at(address))
    assert pointed is not None
    assert pointed.as_of_day == DAY + timedelta(days=1)
    fetched(home, address)
    assert fetched(other, address).publication == pointed
    publish(other, DAY + timedelta(days=3))
    assert "newer" in fetched(other, address).publication_note


@pytest.mark.parametrize("kind", ["first", "later"])
def test_of_two_that_publish_at_once_the_later_publication_stays(
    kind: str, s3: S3, address: str, home: Home, other: Home
) -> None:
    if kind == "later":
        sent(home, address)
    publish(home, DAY + timedelta(days=2))
    publish(other, DAY + timedelta(days=1))
    s3.once("PUT", POINTER, lambda: sent(home, address))
    report = sent(other, address)
    assert "newer publication" in report.publication_note
    pointed = newest(bucket_at(address))
    assert pointed is not None
    assert pointed.as_of_day == DAY + timedelta(days=2)


def test_a_damaged_pointer_is_named_and_replaced_on_demand(s3: S3, address: str, home: Home) -> None:
    sent(home, address)
    overwrite(address, POINTER, b"{}")
    with pytest.raises(StoreError, match="push --replace"):
        sent(home, address)
    sent(home, address, replace=True)
    assert newest(bucket_at(address)) is not None


@pytest.mark.parametrize("kind", ["s3", "file"])
def test_the_store_honours_conditions(kind: str, s3: S3, address: str, tmp_path: Path) -> None:
    bucket = bucket_at(address if kind == "s3" else f"file://{tmp_path}/disk")
    assert bucket.create("a/b.json", b"one")
    assert not bucket.create("a/b.json", b"two")
    found = bucket.read("a/b.json", 10)
    assert found is not None
    assert found[0] == b"one"
    assert not bucket.replace("a/b.json", b"two", Version('"0123"'))
    assert bucket.replace("a/b.json", b"second", found[1])
    assert not bucket.replace("a/b.json", b"third", found[1])
    assert not bucket.replace("a/c.json", b"new", found[1])
    with pytest.raises(StoreError, match="6 bytes, more than 5"):
        bucket.read("a/b.json", 5)
    for key in ("../escaped", "a//b", ".hidden", "a b"):
        with pytest.raises(StoreError, match="no name"):
            bucket.create(key, b"")


def test_every_place_of_a_home_is_sent_or_left_out_by_intent() -> None:
    home = Home(Path("/home"))
    named = [name for name, kind in vars(Home).items() if isinstance(kind, property)]
    places = {getattr(home, name).relative_to(home.root).parts[0] for name in named}
    assert places <= {"archive", *RECORD_FOLDERS, *RECORD_FILES, *NOT_SENT}


@pytest.mark.parametrize(
    ("address", "created", "replaced"),
    [
        ("az://kept/gpu/fare", {"If-None-Match": "*"}, {"If-Match": '"1"'}),
        (
            "gs://kept/gpu/fare",
            {"X-Goog-If-Generation-Match": "0"},
            {"X-Goog-If-Generation-Match": "5"},
        ),
    ],
)
def test_azure_and_google_are_asked_for_the_same_conditions(
    address: str,
    created: dict[str, str],
    replaced: dict[str, str],
    httpserver: HTTPServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("obstore", reason="the store's library is not installed (gpufare[store])")
    url = httpserver.url_for("").rstrip("/")
    account = {"gcs_base_url": url, "disable_oauth": True}
    account |= dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
    for name, value in (
        ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
        ("AZURE_STORAGE_ACCOUNT_KEY", "a2V5"),
        ("AZURE_ENDPOINT", url),
        ("AZURE_ALLOW_HTTP", "true"),
        ("GOOGLE_SERVICE_ACCOUNT_KEY", json.dumps(account)),
    ):
        monkeypatch.setenv(name, value)
    httpserver.expect_request(re.compile(".*")).respond_with_data(
        status=201, headers={"ETag": '"1"', "x-goog-generation": "5"}
    )
    bucket = bucket_at(address)
    assert bucket.create("a/b.json", b"one")
    assert bucket.replace("a/b.json", b"two", Version('"1"', "5"))
    asked = [request for request, _ in httpserver.log]
    assert [unquote(each.path) for each in asked] == ["/kept/gpu/fare/a/b.json"] * 2
    for request, conditions in zip(asked, (created, replaced), strict=True):
        assert {name: request.headers.get(name) for name in conditions} == conditions
