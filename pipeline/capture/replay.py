"""Saved answers in place of live ones: imported from a folder into the archive, or served over HTTP.

A folder of pages is ``DIR/<source>/index.json`` and the files it names (see index.py). Without an index.json,
the source's files, sorted by name, answer the yaml's requests in order; further files are further pages of
the last request.

    python -m pipeline.capture.replay DIR --port 8000      serves DIR for ``gpufare refresh --pages URL``
"""

import argparse
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Self
from urllib.parse import unquote, urlsplit

import httpx

from pipeline.capture.archive import Archive
from pipeline.capture.http.client import NO_PAGE_HEADER, OBSERVED_AT_HEADER, SOURCE_HEADER
from pipeline.capture.index import INDEX_NAME, PagesError, parse_index, read_body, sha256_of
from pipeline.catalog.source_config import RequestFacts, SourceConfig, configs
from pipeline.contracts.capture import Capture
from pipeline.contracts.outcome import OutcomeCode
from pipeline.contracts.request import Entry

_NOT_PASSED_ON = frozenset(
    {"connection", "content-encoding", "content-length", "date", "server", "transfer-encoding"}
)

_NO_PAGE = 404, {NO_PAGE_HEADER: "1"}, b"no such page\n"


def page_entries(folder: Path, config: SourceConfig | None) -> list[Entry]:
    """Return the entries of a source's folder of pages. Raises PagesError.

    ``config`` gives the addresses of a folder without index.json; without it, such a folder is an error.
    """
    if not folder.is_dir():
        raise PagesError(f"{folder} does not exist; saved pages belong in DIR/<source>/")
    if (folder / INDEX_NAME).exists():
        return parse_index(folder / INDEX_NAME)[1]
    files = sorted(path.name for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    if not files:
        raise PagesError(f"{folder} is empty")
    if config is None:
        raise PagesError(
            f"{folder} has no {INDEX_NAME}, and no source has that name to give the addresses of its files"
        )
    asked = list(config.requests) or [RequestFacts(url=config.homepage)]
    asked += [asked[-1]] * (len(files) - len(asked))
    return [
        Entry(method=facts.method, url=facts.url, file=file, optional=facts.optional)
        for facts, file in zip(asked, files, strict=False)
    ]


def capture_pages(directory: Path, config: SourceConfig, *, day: date, archive: Archive) -> Capture:
    """Archive a folder's saved answers of one source under ``day``, as a capture.

    An answer without a time of observation gets the beginning of the day (UTC). Errors in the folder's
    content are the capture's. Raises OSError when the archive cannot be written.
    """
    folder = directory / config.name
    writer = archive.start(config.name, day, replayed_from=str(directory))
    if config.disabled is not None:
        return writer.finish("disabled", config.disabled)
    try:
        entries = page_entries(folder, config)
        bodies = [read_body(folder, entry) if entry.file else None for entry in entries]
    except PagesError as error:
        return writer.finish("failed", str(error))
    beginning = datetime.combine(day, time.min, tzinfo=UTC)
    optional = {(facts.method, facts.url) for facts in config.requests if facts.optional}
    for entry, body in zip(entries, bodies, strict=True):
        empty = entry.outcome is OutcomeCode.OK and not body
        known = {
            "outcome": OutcomeCode.EMPTY_BODY if empty else entry.outcome,
            "observed_at": entry.observed_at or (beginning if entry.sent else None),
            "file": None,
            "optional": entry.optional or (entry.method, entry.url) in optional,
        }
        writer.add(entry.model_copy(update=known), body)
    return writer.finish(error=None if entries else f"{folder / INDEX_NAME} lists no answers")


@dataclass(frozen=True, slots=True)
class _Page:
    source: str
    folder: Path
    entry: Entry


class PageHandler(BaseHTTPRequestHandler):
    """Answers one connection's requests from the pages of its server."""

    server: "PagesServer"
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def say_page(self) -> None:
        """Answer with the page for this request."""
        length = int(self.headers.get("content-length") or 0)
        sent = self.rfile.read(length) if length else None
        page = _find(self.server.pages, self.command, self.headers, self.path, sent)
        status, headers, body = _NO_PAGE if page is None else _answer_of(page)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = say_page
    do_POST = say_page

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""


class PagesServer(ThreadingHTTPServer):
    """Serves a folder of saved pages over HTTP on loopback. Requests are matched with the index by method,
    Host, path with query, and body; all others, including robots.txt, get a 404.

    A context manager. Raises PagesError for a folder without pages.
    """

    handler: type[PageHandler] = PageHandler

    def __init__(self, directory: Path, *, port: int = 0) -> None:
        self.pages = _all_pages(directory)
        super().__init__(("127.0.0.1", port), self.handler)

    @property
    def base_url(self) -> str:
        """Address of the server, for ReplayServer."""
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Self:
        seconds_until_a_shutdown_is_noticed = 0.02
        Thread(target=self.serve_forever, args=(seconds_until_a_shutdown_is_noticed,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()


def _all_pages(directory: Path) -> list[_Page]:
    if not directory.is_dir():
        raise PagesError(f"{directory} does not exist")
    known = configs()
    folders = sorted(path for path in directory.iterdir() if path.is_dir() and any(path.iterdir()))
    pages = [
        _Page(folder.name, folder, entry)
        for folder in folders
        for entry in page_entries(folder, known.get(folder.name))
        if entry.status is not None
    ]
    if not pages:
        raise PagesError(f"{directory} contains no pages; they belong in DIR/<source>/")
    return pages


def _find(
    pages: Iterable[_Page], method: str, headers: Message, target: str, body: bytes | None
) -> _Page | None:
    """Return the page for a request: the one for exactly this body, else the only one for this address."""
    host, source = headers.get("Host", ""), headers.get(SOURCE_HEADER)
    at_address = [
        page
        for page in pages
        if page.entry.method == method
        and source in (None, page.source)
        and httpx.URL(page.entry.url).netloc.decode() == host
        and _is_target(page.entry.url, target)
    ]
    sent = None if body is None else sha256_of(body)
    exact = [page for page in at_address if page.entry.body_sha256 == sent]
    if exact:
        return exact[0]
    return at_address[0] if len(at_address) == 1 else None


def _is_target(url: str, target: str) -> bool:
    """True if a request's target is ``url``'s path and query, in which ``${NAME}`` matches any key."""
    parts = urlsplit(url)
    wanted = unquote(f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/")
    pattern = "[^&/?]*".join(re.escape(piece) for piece in re.split(r"\$\{\w+\}", wanted))
    return re.fullmatch(pattern, unquote(target)) is not None


def _answer_of(page: _Page) -> tuple[int, dict[str, str], bytes]:
    body = read_body(page.folder, page.entry) if page.entry.file else b""
    headers = {k: v for k, v in page.entry.headers.items() if k.lower() not in _NOT_PASSED_ON}
    if page.entry.observed_at is not None:
        headers[OBSERVED_AT_HEADER] = page.entry.observed_at.isoformat()
    return page.entry.status or 200, headers, body


def main(arguments: list[str] | None = None) -> int:
    """Serve a folder of pages until interrupted. Return 1 if it has none."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.capture.replay", description=main.__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; a free one when not given")
    options = parser.parse_args(arguments)
    try:
        server = PagesServer(options.directory, port=options.port)
    except (PagesError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(server.base_url, flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
