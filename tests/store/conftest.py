"""Homes with a tiny published file, and a folder in place of a bucket.

tests/nightly/store runs the tests of publications on a real S3 server, too.
"""

import tempfile
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path

import duckdb
import pytest

from pipeline.home.paths import Home
from pipeline.store.publication import Writer, bucket_at, publish

DAY = date(2026, 8, 21)
SECRET = "wJalrXUtnFEMI/K7MDENG"


@pytest.fixture
def address(tmp_path: Path) -> str:
    """An empty folder."""
    pytest.importorskip("obstore", reason="the store's library is not installed (gpufare[store])")
    return f"file://{tmp_path}/disk/kept"


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


def sent(home: Home, address: str, *parts: str, **writers: Writer) -> str:
    """Publish with these further parts, each of two files if no writer is given."""
    return publish(home, bucket_at(address), dict.fromkeys(parts, two_files) | writers)


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

    store = from_url(address, mkdir=True) if address.startswith("file:") else from_url(address)
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
