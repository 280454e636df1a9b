"""Publications on a real S3 server: the rules of tests/store, and what only a server shows."""

import json
import re
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import unquote

import pytest
from pytest_httpserver import HTTPServer

from pipeline.home import paths
from pipeline.home.paths import Home
from pipeline.refresh.demo import sample_days
from pipeline.store.publication import POINTER, bucket_at
from tests.conftest import PAGES, gpufare, shared_folder
from tests.nightly.store.conftest import S3
from tests.nightly.stress.homes import Lab
from tests.nightly.stress.market import Market
from tests.store.conftest import objects, published, sent, two_files
from tests.store.test_publication import (  # noqa: F401 - run here on the server
    NEXT_DAY,
    pointed,
    test_a_damaged_pointer_is_named_and_not_replaced,
    test_a_later_publication_leaves_the_objects_of_the_former,
    test_existing_objects_are_not_made_or_sent_again,
    test_of_two_that_publish_at_once_the_later_publication_stays,
    test_the_pointer_is_replaced_only_as_it_was_seen,
    test_the_pointer_leads_to_every_part,
    test_the_pointer_never_turns_back,
    test_two_that_send_parts_of_one_publication_at_once_lose_none,
    test_what_expired_is_sent_again,
    test_without_a_published_file_nothing_is_sent,
)


def test_a_publication_of_dagster_is_sent(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    import dagster as dg

    from pipeline.orchestration.resources import GpufareHome
    from pipeline.orchestration.tables import published_tables

    lab = Lab(tmp_path, shared_folder(tmp_path_factory), Market("a store"))
    monkeypatch.setattr(paths, "CATALOG_DIR", lab.catalogue)
    home = lab.home("one", days=1)
    assert dg.materialize([published_tables], resources={"home": GpufareHome(root=str(home.root))}).success
    assert pointed(address).as_of_day > sample_days(PAGES)[0]
    assert objects(address)[pointed(address).database.name] == home.published.read_bytes()


def test_the_command_sends_page_and_export_and_says_where_they_are(address: str, sample_home: Home) -> None:
    told = gpufare("store", "publish", "--page", "--export", "parquet", home=sample_home)
    assert told.stdout.startswith(f"stored at {address}: database, page, parquet as of "), told.stderr
    rows = json.loads(gpufare("store", "newest", "--format", "json").stdout)
    stored = objects(address)
    found = {row["part"]: stored[row["url"].removeprefix(f"{address}/")] for row in rows}
    assert found["database"] == sample_home.published.read_bytes()
    assert found["page"].startswith(b"<!doctype html>")
    folder = next(row["url"] for row in rows if row["part"] == "parquet").removesuffix("/datapackage.json")
    for resource in json.loads(found["parquet"])["resources"]:
        content = stored[f"{folder}/{resource['path']}".removeprefix(f"{address}/")]
        assert len(content) == resource["bytes"]
    assert "has what is published here" in gpufare("store", "publish", "--page", home=sample_home).stdout


@pytest.mark.parametrize("held", ["database-", "page-", POINTER])
def test_a_killed_publisher_leaves_the_pointer_as_it_was(held: str, s3: S3, address: str, home: Home) -> None:
    sent(home, address)
    before = pointed(address)
    published(home.root, NEXT_DAY)
    reached, release = threading.Event(), threading.Event()

    def hold(method: str, path: str) -> None:
        if method == "PUT" and held in path:
            reached.set()
            release.wait(30)

    s3.before = hold
    code = "from tests.nightly.store.test_on_s3 import *; sent(Home(Path(sys.argv[1])), sys.argv[2], 'page')"
    with subprocess.Popen([sys.executable, "-c", code, str(home.root), address]) as process:
        assert reached.wait(30)
        process.kill()
    s3.before = None
    assert pointed(address) == before
    assert before.database.name in objects(address)
    release.set()
    sent(home, address, "page")
    assert pointed(address).as_of_day == NEXT_DAY


def test_a_browser_shows_the_page_and_asks_again_for_the_pointer(address: str, home: Home) -> None:
    import obstore
    from obstore.store import from_url

    sent(home, address, "page")
    for name, kind in ((pointed(address).others["page"].name, "text/html"), (POINTER, "application/json")):
        headers = obstore.get(from_url(address), name).attributes
        assert dict(headers) == {"Content-Type": kind, "Cache-Control": "no-cache"}


def test_a_large_file_is_sent_in_parts(address: str, home: Home) -> None:
    def large(published: Home, folder: Path) -> Path:
        page = two_files(published, folder)
        (folder / "days" / "2.csv").write_bytes(bytes(range(256)) * 50_000)  # 12.8 MB: three parts
        return page

    sent(home, address, page=large)
    (content,) = [content for name, content in objects(address).items() if name.endswith("2.csv")]
    assert content == bytes(range(256)) * 50_000


AZURE = {
    "AZURE_STORAGE_ACCOUNT_NAME": "account",
    "AZURE_STORAGE_ACCOUNT_KEY": "a2V5",
    "AZURE_ALLOW_HTTP": "true",
}
GENERATION = "X-Goog-If-Generation-Match"


@pytest.mark.parametrize(
    ("address", "created", "replaced"),
    [
        ("az://kept/gpu/fare", {"If-None-Match": "*"}, {"If-Match": '"1"'}),
        ("gs://kept/gpu/fare", {GENERATION: "0"}, {GENERATION: "5"}),
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
    account = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
    google = json.dumps(account | {"gcs_base_url": url, "disable_oauth": True})
    for name, value in (AZURE | {"AZURE_ENDPOINT": url, "GOOGLE_SERVICE_ACCOUNT_KEY": google}).items():
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
