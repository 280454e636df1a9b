"""Saved pages: read from a folder and filed in the archive, or served by the tests' replay server."""

import gzip
import hashlib
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.replay import capture_pages
from pipeline.catalog.source_config import SourceConfig, configs
from pipeline.contracts.capture import Capture
from pipeline.sources import source_module
from tests.conftest import PAGES
from tests.pages_server import PagesServer

from .conftest import DAY, bodies, capture_many, codes, source

GPUS = "https://prices.acme.example/gpus"
ONE = hashlib.sha256(b"[1]").hexdigest()
BEGINNING = datetime(2026, 8, 22, tzinfo=UTC)


def row(**facts: Any) -> dict[str, Any]:
    return {"url": GPUS, "file": "a", **facts}


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    return tmp_path / "pages"


def save(pages: Path, index: object = None, **files: str | bytes) -> Path:
    """Write a folder of pages of the source acme; a double underscore in a name stands for a dot."""
    (pages / "acme").mkdir(parents=True, exist_ok=True)
    contents = files if index is None else {**files, "index__json": json.dumps(index)}
    for name, content in contents.items():
        path = pages / "acme" / name.replace("__", ".")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return pages / "acme"


def imported(pages: Path, archive: Archive, config: SourceConfig | None = None, day: date = DAY) -> Capture:
    return capture_pages(pages, config or source(), day=day, archive=archive)


def test_an_index_says_which_file_answers_what(pages: Path, archive: Archive) -> None:
    rows = [
        row(headers={"Content-Type": "application/json"}, observed_at="2026-08-22T08:00:00+02:00"),
        row(url=f"{GPUS}?page=2", file="b.gz", method="post", body_sha256="00"),
        row(file="gone", status=404, outcome="of an earlier version", headers={"ETag": 1}),
        row(file=None, status=None),
        row(file=None, sent=False, outcome="given_up"),
        row(file="empty"),
        row(file="a", url=f"{GPUS}/stock", method="post"),
    ]
    requests = [{"url": GPUS}, {"url": f"{GPUS}/stock", "method": "POST", "optional": True}]
    files = {"a": "[1]", "b__gz": gzip.compress(b"[2]"), "gone": "gone", "empty": ""}
    for index in (rows, {"answers": rows, "note": "more"}):
        save(pages, index, **files)
        captured = imported(pages, archive, source(requests=requests))
        assert " ".join(codes(captured)) == "ok ok http_404 connection_failed given_up empty_body ok"
        assert (captured.status, captured.day, captured.replayed_from) == ("partial", DAY, str(pages))
        first, second, _ = archive.answers(captured)
        assert (first.url, first.body, first.headers) == (GPUS, b"[1]", {"content-type": "application/json"})
        assert (first.observed_at.hour, first.sha256) == (6, ONE)
        assert (second.url, second.body, second.observed_at) == (f"{GPUS}?page=2", b"[2]", BEGINNING)
        assert [entry.optional for entry in captured.entries] == [False] * 6 + [True]
        assert captured.entries[1].key == f"POST {GPUS}?page=2 00"
        assert captured.entries[2].headers == {"etag": "1"}
        assert [bool(entry.observed_at) for entry in captured.entries] == [True] * 4 + [False, True, True]


def test_without_an_index_the_files_answer_the_yaml_in_order(pages: Path, archive: Archive) -> None:
    save(pages, a="[1]", c="[3]", b="[2]", __hidden="x")
    (pages / "acme" / "folder").mkdir()
    spot = {"url": f"{GPUS}/spot", "method": "POST", "optional": True}
    captured = imported(pages, archive, source(requests=[{"url": GPUS}, spot]), date(2025, 12, 31))
    asked = [(entry.method, entry.url, entry.optional) for entry in captured.entries]
    assert asked == [("GET", GPUS, False), *[("POST", f"{GPUS}/spot", True)] * 2]
    assert bodies(archive, captured) == [b"[1]", b"[2]", b"[3]"]
    assert {entry.observed_at for entry in captured.entries} == {datetime(2025, 12, 31, tzinfo=UTC)}


def test_a_folder_that_cannot_be_used_says_why(pages: Path, archive: Archive, tmp_path: Path) -> None:
    """An index names no file outside its folder, neither by a path nor by a link."""
    (tmp_path / "secret").write_text("secret")
    missing = imported(pages, archive)
    assert missing.error == f"{pages}/acme does not exist; saved pages belong in DIR/<source>/"
    folder = save(pages)
    assert imported(pages, archive).error == f"{folder} is empty"
    (folder / "link").symlink_to(tmp_path / "secret")
    save(pages, a="[1]", no__gz="not gzip")
    index = folder / "index.json"
    neither = (
        f"{index} is not an index of answers: it is neither a list nor an object with a list of 'answers'"
    )
    cases = [
        ([], f"{index} lists no answers"),
        ({"rows": []}, neither),
        ([{"file": "a"}], f"{index}: url: Field required"),
        ([row(file="gone")], f"{folder}/gone is missing, though {index} names it"),
        ([row(file="no.gz")], f"{folder}/no.gz is damaged: Not a gzipped file (b'no')"),
        ([row(sha256="00")], f"{folder}/a was changed or damaged: its SHA-256 is {ONE}; the index says 00"),
        *(
            ([row(file=file)], f"{index}: file {file!r} is outside its folder")
            for file in ("../../secret", "/etc/hostname", "a/../../secret", "link")
        ),
    ]
    for rows, said in cases:
        save(pages, rows)
        captured = imported(pages, archive)
        found = (captured.status, captured.bytes, (captured.error or "")[: len(said)])
        assert found == ("failed", 0, said)


def test_pages_without_an_optional_answer_are_complete(pages: Path, archive: Archive) -> None:
    """Imported or served: a page that was not saved is not the host's answer; one saved with an error is."""
    config = source(requests=[{"url": GPUS}, {"url": f"{GPUS}/stock", "optional": True}])
    rows = [row(), row(url=f"{GPUS}/stock", file=None, status=404)]
    lacking = source("lacking", requests=[{"url": f"{GPUS}/other"}])
    for index in (rows[:1], rows):
        save(pages, index, a="{}")
        with PagesServer(pages) as server:
            served = capture_many(server.base_url, archive, [config, lacking])
        for captured in (served["acme"], imported(pages, archive, config)):
            assert (captured.status, len(captured.entries)) == ("captured", len(index))
            assert len(captured.warnings) == len(index) - 1
        assert served["lacking"].status == "failed"


def test_the_live_path_over_the_sample_pages(archive: Archive) -> None:
    """Each source's requests, as its yaml and module stand, are answered by its sample page, and what is
    archived is that page. A source that can do without its key is asked without."""
    enabled = [config for config in configs().values() if config.disabled is None]
    chosen = [config.model_copy(update={"spacing_seconds": 0}) for config in enabled]
    with PagesServer(PAGES) as server:
        captures = capture_many(server.base_url, archive, chosen, module_of=source_module)
        keyless = [config for config in chosen if captures[config.name].status == "needs_key"]
        keys = {name: f"key-for-{name}" for config in keyless for name in config.key_variables}
        more = {"environment": keys, "module_of": source_module}
        captures |= capture_many(server.base_url, archive, keyless, **more)
    for name, captured in captures.items():
        assert (captured.status, captured.error) == ("captured", None), name
        saved = imported(PAGES, Archive(archive.root / "saved"), configs()[name])
        # Optional requests come last, and what is asked only after a failure is saved, but not asked.
        asked, kept = (
            {e.sha256: e.observed_at for e in each.entries if e.usable} for each in (captured, saved)
        )
        assert asked.items() <= kept.items(), name
        assert len(asked) == len(kept) or hasattr(source_module(name), "retry_requests"), name
