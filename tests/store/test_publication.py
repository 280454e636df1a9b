"""A publication appears whole, by its pointer, which never turns back; what went wrong is named."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote

import pytest
from pytest_httpserver import HTTPServer

from pipeline.home.paths import Home
from pipeline.store.address import StoreError
from pipeline.store.publication import POINTER, Publication, bucket_at, newest, publish
from pipeline.warehouse.query import NotPublishedError
from tests.store.conftest import DAY, S3, objects, overwrite, published, sent, two_files

NEXT_DAY = DAY + timedelta(days=1)


def pointed(address: str) -> Publication:
    found = newest(bucket_at(address))
    assert found is not None
    return found


def test_the_pointer_leads_to_every_part(address: str, home: Home) -> None:
    line = sent(home, address, "page", "csv")
    assert line == f"stored at {address}: database, csv, page as of {DAY}, built {DAY} 06:00 UTC"
    stored = objects(address)
    pointer = json.loads(stored.pop(POINTER))
    database = pointer["database"]
    assert stored[database["name"]] == home.published.read_bytes()
    assert database["sha256"] == hashlib.sha256(home.published.read_bytes()).hexdigest()
    assert database["bytes"] == home.published.stat().st_size
    assert re.fullmatch(rf"published/database-{DAY}-[0-9a-f]{{16}}/gpufare\.duckdb", database["name"])
    for part in ("page", "csv"):
        name = pointer["others"][part]["name"]
        assert stored[name] == f"<!doctype html> {part}".encode()
        assert name.replace("index.html", "days/1.csv") in stored
    assert len(stored) == 1 + 2 * 2
    assert newest(bucket_at(address)) == Publication.model_validate(pointer)


def test_existing_objects_are_not_made_or_sent_again(address: str, home: Home) -> None:
    sent(home, address, "page")
    before = objects(address)

    def never(published: Home, folder: Path) -> Path:
        raise AssertionError("made again")

    line = publish(home, bucket_at(address), {"page": never})
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


@pytest.mark.parametrize("is_first", [True, False])
def test_of_two_that_publish_at_once_the_later_publication_stays(
    is_first: bool, s3: S3, home: Home, tmp_path: Path
) -> None:
    """The second is sent right before the first turns the pointer."""
    address = os.environ["GPUFARE_STORE"]
    if not is_first:
        sent(published(tmp_path / "earlier", DAY - timedelta(days=1)), address)
    later = published(tmp_path / "later", NEXT_DAY)
    s3.once("PUT", POINTER, lambda: sent(later, address))
    assert "has a newer publication" in sent(home, address)
    assert pointed(address).as_of_day == NEXT_DAY


def test_of_two_that_publish_at_once_the_earlier_one_gives_way(s3: S3, home: Home, tmp_path: Path) -> None:
    address = os.environ["GPUFARE_STORE"]
    later = published(tmp_path / "later", NEXT_DAY)
    s3.once("PUT", POINTER, lambda: sent(home, address))
    assert sent(later, address).startswith("stored at")
    assert pointed(address).as_of_day == NEXT_DAY


def test_two_that_send_parts_of_one_publication_at_once_lose_none(s3: S3, home: Home) -> None:
    address = os.environ["GPUFARE_STORE"]
    s3.once("PUT", POINTER, lambda: sent(home, address, "page"))
    sent(home, address, "csv")
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


def test_many_that_publish_into_a_folder_at_once(tmp_path: Path) -> None:
    pytest.importorskip("obstore", reason="the store's library is not installed (gpufare[store])")
    address = f"file://{tmp_path}/disk"
    homes = [published(tmp_path / f"home{hour}", DAY, hour) for hour in range(8)]
    threads = [threading.Thread(target=sent, args=(home, address)) for home in homes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pointed(address).as_of_time.hour == 7


@pytest.mark.parametrize("held", ["database-", "page-", POINTER])
def test_a_killed_publisher_leaves_the_pointer_as_it_was(
    held: str, s3: S3, home: Home, tmp_path: Path
) -> None:
    address = os.environ["GPUFARE_STORE"]
    sent(home, address)
    before = pointed(address)
    published(home.root, NEXT_DAY)
    reached, release = threading.Event(), threading.Event()

    def hold(method: str, path: str) -> None:
        if method == "PUT" and held in path:
            reached.set()
            release.wait(30)

    s3.before = hold
    code = (
        "from tests.store.conftest import Home, sent; from pathlib import Path; import sys;"
        "sent(Home(Path(sys.argv[1])), sys.argv[2], 'page')"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(home.root), address]) as process:
        assert reached.wait(30)
        process.send_signal(signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL
    s3.before = None
    assert pointed(address) == before
    assert before.database.name in objects(address)
    release.set()
    sent(home, address, "page")
    assert pointed(address).as_of_day == NEXT_DAY


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"{}",
        b"x" * 100_000,
        b'{"as_of_day": "2026-08-21", "as_of_time": "2026-08-21T06:00:00Z", "database": '
        b'{"name": "published/../../private", "sha256": "' + b"0" * 64 + b'", "bytes": 1}}',
    ],
)
def test_a_damaged_pointer_is_named_and_not_replaced(damage: bytes, address: str, home: Home) -> None:
    sent(home, address)
    overwrite(address, POINTER, damage)
    for use in (lambda: sent(home, address), lambda: newest(bucket_at(address))):
        with pytest.raises(StoreError, match=re.escape(f"{address}/{POINTER} ")):
            use()
    assert objects(address)[POINTER] == damage
    overwrite(address, POINTER, None)
    assert newest(bucket_at(address)) is None
    sent(home, address)
    assert pointed(address).as_of_day == DAY


def headers(address: str, key: str) -> dict[str, str]:
    import obstore
    from obstore.store import from_url

    return {str(name): value for name, value in obstore.get(from_url(address), key).attributes.items()}


def test_a_browser_shows_the_page_and_asks_again_for_the_pointer(s3: S3, home: Home) -> None:
    address = os.environ["GPUFARE_STORE"]
    sent(home, address, "page")
    for name, kind in ((pointed(address).others["page"].name, "text/html"), (POINTER, "application/json")):
        assert headers(address, name) == {"Content-Type": kind, "Cache-Control": "no-cache"}


def test_a_large_file_is_sent_in_parts(s3: S3, home: Home) -> None:
    address = os.environ["GPUFARE_STORE"]

    def large(published: Home, folder: Path) -> Path:
        two_files(published, folder)
        (folder / "days" / "2.csv").write_bytes(bytes(range(256)) * 50_000)  # 12.8 MB: three parts
        return folder / "index.html"

    publish(home, bucket_at(address), {"page": large})
    (content,) = [content for name, content in objects(address).items() if name.endswith("2.csv")]
    assert content == bytes(range(256)) * 50_000


def test_without_a_published_file_nothing_is_sent(address: str, tmp_path: Path) -> None:
    with pytest.raises(NotPublishedError, match="run `gpufare refresh` first"):
        sent(Home(tmp_path / "empty"), address)


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
    assert bucket.replace(POINTER, b"one", None)
    assert bucket.replace(POINTER, b"two", {"e_tag": '"1"', "version": "5"})
    asked = [request for request, _ in httpserver.log]
    assert [unquote(each.path) for each in asked] == [f"/kept/gpu/fare/{POINTER}"] * 2
    for request, conditions in zip(asked, (created, replaced), strict=True):
        assert {name: request.headers.get(name) for name in conditions} == conditions
