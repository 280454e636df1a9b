"""A real S3 server on loopback, which can act between two requests, and homes with a tiny published file."""

import logging
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import duckdb
import pytest
from werkzeug.serving import make_server

from pipeline.home.paths import Home
from pipeline.store.address import STORE_VARIABLE
from pipeline.store.publication import publish

DAY = date(2026, 8, 21)
SECRET = "wJalrXUtnFEMI/K7MDENG"


@dataclass
class S3:
    """The server. ``before`` is called with the method and the path of each request."""

    url: str = ""
    before: Callable[[str, str], None] | None = None

    def once(self, method: str, part: str, action: Callable[[], object]) -> None:
        """Do something right before the next request of a method whose path has a part."""

        def act(asked: str, path: str) -> None:
            if asked == method and part in path and self.before is act:
                self.before = None
                action()

        self.before = act

    def make_bucket(self, name: str) -> None:
        """Make an empty bucket."""
        with urlopen(Request(f"{self.url}/{name}", method="PUT")):
            pass


@pytest.fixture(scope="session")
def _server() -> Iterator[S3]:
    pytest.importorskip("obstore", reason="the store's library is not installed (gpufare[store])")
    server = pytest.importorskip("moto.server", reason="no S3 server: moto, flask or flask-cors is missing")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    s3 = S3()
    backend = server.DomainDispatcherApplication(server.create_backend_app)

    def app(environ: dict[str, Any], respond: Any) -> Any:
        if s3.before:
            s3.before(environ["REQUEST_METHOD"], environ["PATH_INFO"])
        return backend(environ, respond)

    made = make_server("127.0.0.1", 0, app, threaded=True)
    s3.url = f"http://127.0.0.1:{made.server_port}"
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield s3
    made.shutdown()
    thread.join()


@pytest.fixture
def s3(_server: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """The server with an empty bucket named like this test's folder, and the environment that reaches it."""
    bucket = "b" + tmp_path.name.replace("_", "-").lower()[-40:].strip("-")
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", _server.url),
        ("AWS_ALLOW_HTTP", "true"),
        (STORE_VARIABLE, f"s3://{bucket}/gpu/fare"),
    ):
        monkeypatch.setenv(name, value)
    _server.make_bucket(bucket)
    _server.before = None
    yield _server
    _server.before = None


@pytest.fixture(params=["s3", "file"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty bucket on the server, or an empty folder."""
    if request.param == "file":
        pytest.importorskip("obstore", reason="the store's library is not installed (gpufare[store])")
        return f"file://{tmp_path}/disk/kept"
    request.getfixturevalue("s3")
    return os.environ[STORE_VARIABLE]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with a published file."""
    return published(tmp_path / "first", DAY)


def published(root: Path, day: date, hour: int = 6) -> Home:
    """A home with a published file as of a day, built at an hour of it."""
    home = Home(root)
    home.published.parent.mkdir(parents=True, exist_ok=True)
    new = home.published.with_name("new.duckdb")
    new.write_bytes(_database(day, hour))
    new.replace(home.published)
    return home


@cache
def _database(day: date, hour: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "published.duckdb"
        with duckdb.connect(str(file)) as connection:
            connection.execute("CREATE TABLE publication (as_of_day DATE, as_of_time TIMESTAMPTZ)")
            time = datetime(day.year, day.month, day.day, hour, tzinfo=UTC)
            connection.execute("INSERT INTO publication VALUES (?, ?)", [day, time])
        return file.read_bytes()


def sent(home: Home, address: str, *parts: str) -> str:
    """Publish with these further parts, each of two files."""
    from pipeline.store.publication import bucket_at

    return publish(home, bucket_at(address), dict.fromkeys(parts, two_files))


def two_files(published: Home, folder: Path) -> Path:
    """A part of a publication: a page, and a file in a folder beside it."""
    (folder / "days").mkdir(parents=True)
    (folder / "days" / "1.csv").write_text(f"bytes\n{published.published.stat().st_size}\n")
    page = folder / "index.html"
    page.write_text(f"<!doctype html> {folder.name}")
    return page


def objects(address: str) -> dict[str, bytes]:
    """The objects of a bucket."""
    import obstore
    from obstore.store import from_url

    store = from_url(address)
    names = [each["path"] for page in obstore.list(store) for each in page]
    return {name: bytes(obstore.get(store, name).bytes()) for name in names if not name.endswith(".lock")}


def overwrite(address: str, key: str, content: bytes | None) -> None:
    """Damage or delete an object, as gpufare never does."""
    import obstore
    from obstore.store import from_url

    store = from_url(address)
    if content is None:
        obstore.delete(store, key)
    else:
        obstore.put(store, key, content)
