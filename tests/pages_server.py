"""A replay server of saved pages, as ``gpufare refresh --pages URL`` asks one."""

import re
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Self
from urllib.parse import unquote

import httpx

from pipeline.capture.http.client import NO_PAGE_HEADER, OBSERVED_AT_HEADER, SOURCE_HEADER
from pipeline.capture.index import read_body, sha256_of
from pipeline.capture.replay import page_entries
from pipeline.catalog.source_config import configs
from pipeline.contracts.request import Entry

_NOT_PASSED_ON = ("connection", "content-encoding", "content-length", "date", "server", "transfer-encoding")
_NO_PAGE = 404, {NO_PAGE_HEADER: "1"}, b"no such page\n"


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
        page = self.server.page_for(self.command, self.headers, self.path, sent)
        status, headers, body = _answer_of(*page) if page else _NO_PAGE
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = say_page

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""


class PagesServer(ThreadingHTTPServer):
    """Serves a folder of saved pages over HTTP on loopback. Requests are matched with the index by method,
    Host, path with query, and body; all others, including robots.txt, get a 404.
    """

    handler: type[PageHandler] = PageHandler

    def __init__(self, directory: Path) -> None:
        known = configs()
        any_source = known["ecb"]  # for a made-up source, whose folder has an index
        self.pages = [
            (folder, entry)
            for folder in sorted(directory.iterdir())
            if folder.is_dir() and any(folder.iterdir())
            for entry in page_entries(folder, known.get(folder.name, any_source))
            if entry.status is not None
        ]
        super().__init__(("127.0.0.1", 0), self.handler)
        self.base_url = f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()

    def page_for(
        self, method: str, headers: Message, target: str, body: bytes | None
    ) -> tuple[Path, Entry] | None:
        """Return the page for exactly this body, else the only one for this address."""
        at_address = [
            (folder, entry)
            for folder, entry in self.pages
            if entry.method == method
            and headers.get(SOURCE_HEADER) in (None, folder.name)
            and httpx.URL(entry.url).netloc.decode() == headers.get("Host")
            and _is_target(entry.url, target)
        ]
        sent = None if body is None else sha256_of(body)
        exact = [(folder, entry) for folder, entry in at_address if entry.body_sha256 == sent]
        found = exact[:1] or at_address
        return found[0] if len(found) == 1 else None


def _is_target(url: str, target: str) -> bool:
    """True if a request's target is ``url``'s path and query, in which ``${NAME}`` matches any key."""
    pieces = re.split(r"\$\{\w+\}", unquote(httpx.URL(url).raw_path.decode()))
    return re.fullmatch("[^&/?]*".join(map(re.escape, pieces)), unquote(target)) is not None


def _answer_of(folder: Path, entry: Entry) -> tuple[int, dict[str, str], bytes]:
    headers = {name: v for name, v in entry.headers.items() if name.lower() not in _NOT_PASSED_ON}
    if entry.observed_at is not None:
        headers[OBSERVED_AT_HEADER] = entry.observed_at.isoformat()
    return entry.status or 200, headers, read_body(folder, entry) if entry.file else b""
