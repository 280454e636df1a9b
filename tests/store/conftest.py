"""A real S3 server on loopback, which counts, holds back and interleaves requests, and tiny homes."""

import logging
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import duckdb
import pytest
from werkzeug.serving import make_server

from pipeline.capture.archive import Archive
from pipeline.contracts.outcome import OutcomeCode
from pipeline.contracts.request import Entry
from pipeline.home.paths import Home
from pipeline.store.address import STORE_VARIABLE
from pipeline.store.bucket import Bucket
from pipeline.store.push import PushReport, push

DAY = date(2026, 8, 21)
NOW = datetime(2026, 8, 22, 6, tzinfo=UTC)
SECRET = "wJalrXUtnFEMI/K7MDENG"


@dataclass
class S3:
    """The server. ``asked`` has each request as (method, path); ``before`` is called with them first."""

    url: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)
    before: Callable[[str, str], None] | None = None

    def count(self, method: str, part: str = "") -> int:
        """Requests of a method whose path has a part."""
        return sum(each == method and part in path for each, path in self.asked)

    def once(self, method: str, part: str, action: Callable[[], object]) -> None:
        """Do something right before the next such request."""

        def act(asked: str, path: str) -> None:
            if asked == method and part in path and self.before is act:
                self.before = None
                action()

        self.before = act


@pytest.fixture(scope="session")
def _server() -> Iterator[S3]:
    pytest.importorskip("obstore", reason="the store's library is not installed (gpufare[store])")
    server = pytest.importorskip("moto.server", reason="no S3 server: moto, flask or flask-cors is missing")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    s3 = S3()
    backend = server.DomainDispatcherApplication(server.create_backend_app)

    def app(environ: dict[str, Any], respond: Any) -> Any:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        s3.asked.append((method, path))
        if s3.before:
            s3.before(method, path)
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
    with urlopen(Request(f"{_server.url}/{bucket}", method="PUT")):
        pass
    _server.asked.clear()
    _server.before = None
    yield _server
    _server.before = None


@pytest.fixture
def address(s3: S3) -> str:
    """The store in that bucket."""
    return os.environ[STORE_VARIABLE]


def bucket_at(address: str) -> Bucket:
    """A fresh view of a store, with its own counts."""
    return Bucket(address, os.environ)


def sent(home: Home, address: str, **options: Any) -> PushReport:
    """Push a home."""
    return push(home, bucket_at(address), NOW, **options)


def tiny_home(root: Path, *, sources: int = 2, published: date | None = DAY) -> Home:
    """A home with two captures per source, the second with the same body, a record and a published file."""
    home = Home(root)
    for number in range(sources):
        source = f"source{number}"
        for _ in range(2):
            capture(home, source, f'{{"price": {number}}}'.encode())
        record(home, source, DAY, "1")
    write(home, f"exchange_rates/{DAY}.json", "{}")
    write(home, "incidents/20260821T060000.000001Z-damaged_file-0123456789ab.json", "{}")
    write(home, "measured_runs.csv", "run_id\n1\n")
    write(home, "cache/plans.parquet", "made again")
    if published:
        publish(home, published)
    return home


def capture(home: Home, source: str, body: bytes) -> Path:
    """Archive one finished capture with one body, and return its folder."""
    writer = Archive(home.archive).start(source, DAY)
    headers = {"content-type": "application/json"}
    writer.add(Entry(url=f"https://{source}.example/", headers=headers, outcome=OutcomeCode.OK), body)
    writer.finish()
    return writer.folder


def record(home: Home, source: str, day: date, content: str) -> None:
    """Offers, rejects and an outcome of a source and day."""
    write(home, f"offers/{source}/{day}.parquet", f"offers {content}")
    write(home, f"rejects/{source}/{day}.parquet", f"rejects {content}")
    write(home, f"outcomes/{source}/{day}/20260821T06000{content}.000000Z.json", f"outcome {content}")


def write(home: Home, path: str, content: str) -> None:
    """Replace a file of a home, as the record's own writers do."""
    place = home.root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary = place.with_name(f".{place.name}.tmp")
    temporary.write_text(content)
    temporary.replace(place)


def publish(home: Home, day: date, hour: int = 6) -> None:
    """A published file as of a day, built at an hour of it."""
    home.published.parent.mkdir(parents=True, exist_ok=True)
    new = home.published.with_name("new.duckdb")
    new.write_bytes(_published(day, hour))
    new.replace(home.published)


@cache
def _published(day: date, hour: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "published.duckdb"
        with duckdb.connect(str(file)) as connection:
            connection.execute("CREATE TABLE publication (as_of_day DATE, as_of_time TIMESTAMPTZ)")
            time = datetime(day.year, day.month, day.day, hour, tzinfo=UTC)
            connection.execute("INSERT INTO publication VALUES (?, ?)", [day, time])
        return file.read_bytes()


def files_of(home: Home) -> dict[str, bytes]:
    """What a home has that a store keeps, by path."""
    kept = ("cache", "store", "publish.lock")
    return {
        str(path.relative_to(home.root)): path.read_bytes()
        for path in sorted(home.root.rglob("*"))
        if path.is_file() and path.relative_to(home.root).parts[0] not in kept
    }


def objects(address: str, part: str = "") -> dict[str, int]:
    """The objects of a store, with their sizes."""
    bucket = bucket_at(address)
    found = {}
    for prefix in ("archive", "record", "published", "pushes"):
        found |= {name: size for name, size in bucket.names(prefix) if part in name}
    return found


def overwrite(address: str, key: str, content: bytes | None) -> None:
    """Damage or delete an object, as neither gpufare nor its rules would."""
    import obstore
    from obstore.store import from_url

    store = from_url(address)
    if content is None:
        obstore.delete(store, key)
    else:
        obstore.put(store, key, content)


def content_of(address: str, key: str) -> bytes:
    """The content of an object."""
    found = bucket_at(address).read(key, 10**9)
    assert found is not None
    return found[0]
