"""Saved pages: read from a folder, filed in the archive; and the tests' replay server."""

import gzip
import hashlib
import json
import re
from datetime import UTC, date, datetime
from pathlib import Path

import httpx
import pytest

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import Client, Limits, ReplayServer
from pipeline.capture.replay import capture_pages
from pipeline.capture.visit import capture_all, first_requests
from pipeline.catalog.source_config import SourceConfig, configs
from pipeline.contracts.capture import Capture
from pipeline.contracts.listing import Answer
from pipeline.sources import source_module
from tests.pages_server import PagesServer

from .conftest import DAY, FAST, module, source

PAGES = Path(__file__).parents[1] / "pages"
GPUS = "https://prices.acme.example/gpus"


def folder(tmp_path: Path, files: dict[str, bytes | str | list | dict]) -> Path:
    """A folder of pages of the source acme."""
    pages = tmp_path / "pages" / "acme"
    pages.mkdir(parents=True)
    for name, content in files.items():
        if not isinstance(content, bytes | str):
            content = json.dumps(content)
        (pages / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return pages.parent


def answers_of(
    pages: Path, archive: Archive, config: SourceConfig | None = None, day: date = DAY
) -> list[Answer]:
    """Return a folder's pages as a reader gets them from the archive."""
    return archive.answers(capture_pages(pages, config or source(), day=day, archive=archive))


def row(**facts) -> dict:
    return {"method": "GET", "url": GPUS, "status": 200, "file": "a.json", **facts}


def test_an_index_says_which_file_answers_what(tmp_path: Path, archive: Archive) -> None:
    index = [
        row(headers={"Content-Type": "application/json"}, observed_at="2026-08-22T08:00:00+02:00"),
        row(url=f"{GPUS}?page=2", file="b.json.gz", method="post", body_sha256="00"),
        row(file="gone.html", status=404),
        {"url": f"{GPUS}/bare", "file": "a.json"},
    ]
    files = {"a.json": "[1]", "b.json.gz": gzip.compress(b"[2]"), "gone.html": "gone", "index.json": index}
    first, second, bare = answers_of(folder(tmp_path, files), archive)
    assert (first.url, first.body) == (GPUS, b"[1]")
    assert first.observed_at == datetime(2026, 8, 22, 6, tzinfo=UTC)
    assert first.headers == {"content-type": "application/json"}
    assert first.sha256 == hashlib.sha256(b"[1]").hexdigest()
    assert (second.url, second.body) == (f"{GPUS}?page=2", b"[2]")
    assert second.observed_at == datetime(2026, 8, 22, tzinfo=UTC)
    assert bare.body == b"[1]"


def test_an_index_may_have_its_list_under_answers(tmp_path: Path, archive: Archive) -> None:
    pages = folder(tmp_path, {"a.json": "[1]", "index.json": {"answers": [row()], "note": "more"}})
    assert [answer.body for answer in answers_of(pages, archive)] == [b"[1]"]


def test_without_an_index_the_files_answer_the_yaml_in_order(tmp_path: Path, archive: Archive) -> None:
    pages = folder(tmp_path, {"2.json": "[2]", "1.json": "[1]", "3.json": "[3]", ".hidden": "x"})
    two = source(requests=[{"url": GPUS}, {"url": f"{GPUS}/spot"}])
    answers = answers_of(pages, archive, two)
    assert [(answer.url, answer.body) for answer in answers] == [
        (GPUS, b"[1]"),
        (f"{GPUS}/spot", b"[2]"),
        (f"{GPUS}/spot", b"[3]"),
    ]
    assert {answer.observed_at for answer in answers} == {datetime(2026, 8, 22, tzinfo=UTC)}


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "is empty"),
        ({"index.json": "{"}, "not an index"),
        ({"index.json": "3"}, "not an index"),
        ({"index.json": {"rows": []}}, "not an index of answers: it is neither a list"),
        ({"index.json": [{"file": "a.json"}]}, "url"),
        ({"index.json": [row(status="so so")]}, "status"),
        ({"index.json": [row()]}, r"a\.json is missing"),
        ({"index.json": [row(file="../../secret")]}, "outside its folder"),
        ({"index.json": [row(file="/etc/hostname")]}, "outside its folder"),
        ({"index.json": [row(sha256="00")], "a.json": "[1]"}, "was changed or damaged"),
        ({"index.json": [row(file="a.gz")], "a.gz": b"not gzip"}, "is damaged"),
    ],
)
def test_a_folder_that_cannot_be_used_says_why(
    tmp_path: Path, archive: Archive, files: dict, says: str
) -> None:
    (tmp_path / "secret").write_text("secret")
    captured = capture_pages(folder(tmp_path, files), source(), day=DAY, archive=archive)
    assert captured.status == "failed"
    assert re.search(says, captured.error or "")


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path, archive: Archive) -> None:
    pages = folder(tmp_path, {"index.json": [row()]})
    (tmp_path / "secret").write_text("secret")
    (pages / "acme" / "a.json").symlink_to(tmp_path / "secret")
    captured = capture_pages(pages, source(), day=DAY, archive=archive)
    assert "outside its folder" in (captured.error or "")
    assert archive.answers(captured) == []


def test_pages_are_filed_in_the_archive(tmp_path: Path, archive: Archive) -> None:
    index = [row(observed_at="2026-08-22T06:00:00Z"), row(url=f"{GPUS}/x", file=None, status=503)]
    pages = folder(tmp_path, {"a.json": "[1]", "index.json": index})
    captured = capture_pages(pages, source(), day=DAY, archive=archive)
    assert captured.status == "partial"
    assert [entry.outcome for entry in captured.entries] == ["ok", "http_5xx"]
    assert captured.day == DAY
    assert [answer.body for answer in archive.answers(captured)] == [b"[1]"]


def test_pages_that_cannot_be_used_are_a_failed_capture(tmp_path: Path, archive: Archive) -> None:
    captured = capture_pages(tmp_path, source(), day=DAY, archive=archive)
    assert captured.status == "failed"
    assert "does not exist" in (captured.error or "")
    empty = capture_pages(folder(tmp_path, {"index.json": []}), source(), day=DAY, archive=archive)
    assert empty.status == "failed"
    assert "lists no answer" in (empty.error or "")


def test_an_archived_capture_is_a_folder_of_pages(tmp_path: Path, archive: Archive) -> None:
    pages = folder(tmp_path, {"a.json": "[1]", "index.json": [row(observed_at="2026-08-22T06:00:00Z")]})
    captured = capture_pages(pages, source(), day=DAY, archive=archive)
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "acme").symlink_to(archive.folder(captured))
    assert answers_of(moved, Archive(tmp_path / "other")) == archive.answers(captured)


# --- over HTTP ------------------------------------------------------------------------------------------


def test_the_server_tells_requests_apart(tmp_path: Path) -> None:
    def sha(body: bytes) -> str:
        return hashlib.sha256(body).hexdigest()

    query = "https://prices.acme.example/q"
    index = [
        row(file="a"),
        row(file="b", url=f"{GPUS}?page=2"),
        row(file="c", url=query, method="POST", body_sha256=sha(b"1")),
        row(file="d", url=query, method="POST", body_sha256=sha(b"2")),
        row(file="e", url="https://other.example/gpus"),
        row(file="f", url=f"{GPUS}?key=${{ACME_KEY}}"),
        row(file="g", url=f"{GPUS}/East%20(N)"),
        row(file="i", url="https://prices.acme.example:443/usual?$skip=1"),
        row(file="h", url=f"{GPUS}/moved", status=302, headers={"location": "/gpus"}),
    ]
    files = {letter: letter for letter in "abcdefghi"}
    pages = folder(tmp_path, {**files, "index.json": index})
    with PagesServer(pages) as server, httpx.Client(base_url=server.base_url) as http:

        def said(path: str, host: str = "prices.acme.example", body: bytes | None = None) -> str | int:
            method = "GET" if body is None else "POST"
            answer = http.request(method, path, headers={"host": host}, content=body)
            return answer.text if answer.status_code == 200 else answer.status_code

        assert said("/gpus") == "a"
        assert said("/gpus?page=2") == "b"
        assert said("/q", body=b"1") == "c"
        assert said("/q", body=b"2") == "d"
        assert said("/q", body=b"3") == 404
        assert said("/gpus", host="other.example") == "e"
        assert said("/gpus?key=anything") == "f"
        assert said("/gpus?key=a&more=1") == 404
        assert said("/gpus/East%20(N)") == "g"
        assert said("/gpus/moved") == 302
        assert said("/usual?$skip=1") == "i"
        assert said("/robots.txt") == 404
        assert said("/gpus", host="nobody.example") == 404
        assert said("/gpus", body=b"") == 404


def test_the_live_path_over_the_sample_pages(archive: Archive) -> None:
    """Each source's requests, as its yaml and module stand, are answered by its sample page, and what is
    archived is that page. A source that can do without its key is asked without."""
    chosen = [config.model_copy(update={"spacing_seconds": 0}) for config in configs().values()]
    with (
        PagesServer(PAGES) as server,
        Client(limits=Limits(**FAST), replay=ReplayServer(server.base_url)) as client,
    ):

        def captured_with(environment: dict[str, str], configs: list[SourceConfig]) -> dict[str, Capture]:
            return capture_all(configs, environment=environment, day=DAY, archive=archive, client=client)

        captures = captured_with({}, [config for config in chosen if config.disabled is None])
        keyless = [
            config for config in chosen if getattr(captures.get(config.name), "status", "") == "needs_key"
        ]
        keys = {name: f"key-for-{name}" for config in keyless for name in config.key_variables}
        captures |= captured_with(keys, keyless)
    saved_archive = Archive(archive.root.parent / "saved")
    for name, captured in captures.items():
        assert (captured.status, captured.error) == ("captured", None), name
        saved = answers_of(PAGES, saved_archive, configs()[name])
        # Optional requests come last, and what is asked only after a failure is saved, but not asked.
        asked = {answer.sha256: answer.observed_at for answer in archive.answers(captured)}
        kept = {answer.sha256: answer.observed_at for answer in saved}
        assert asked.items() <= kept.items(), name
        assert len(asked) == len(kept) or hasattr(source_module(name), "retry_requests"), name


def test_first_requests_come_from_the_yaml_unless_the_module_makes_them() -> None:
    ask = {"url": GPUS, "method": "POST", "headers": {"X-A": "${KEY}"}, "json_body": {"a": [1, "é"]}}
    (request,) = first_requests(source(requests=[ask]), module(), {})
    assert request.body == '{"a":[1,"é"]}'.encode()
    assert request.headers == {"content-type": "application/json", "x-a": "${KEY}"}
    made = first_requests(source(), module(requests=lambda config, environment: [request] * 2), {})
    assert made == [request, request]


def test_a_source_of_the_past_is_read_with_its_own_day(tmp_path: Path, archive: Archive) -> None:
    pages = folder(tmp_path, {"1.json": "[1]"})
    (answer,) = answers_of(pages, archive, day=date(2025, 12, 31))
    assert answer.observed_at == datetime(2025, 12, 31, tzinfo=UTC)
