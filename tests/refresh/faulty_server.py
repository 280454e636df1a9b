"""Saved pages over real HTTP, from hosts that misbehave below what an HTTP server library lets them."""

import gzip
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from pipeline.capture.http.client import SOURCE_HEADER
from tests.pages_server import PageHandler, PagesServer

MIB = 2**20


class FaultyHandler(PageHandler):
    """The connection of a request, on which its source's fault acts, where it has one."""

    server: "FaultyServer"
    wbufsize = 0
    asked: int

    def handle(self) -> None:
        with suppress(OSError):  # a client may hang up in the middle: that is what is tested
            super().handle()

    def finish(self) -> None:
        with suppress(OSError):
            super().finish()

    def do_GET(self) -> None:
        source = self.headers.get(SOURCE_HEADER, "")
        fault = self.server.faults.get(source)
        if fault is None or self.path == "/robots.txt":
            self.say_page()
            return
        self.asked = self.server.asked[source] = self.server.asked.get(source, 0) + 1
        self.close_connection = True
        fault(self)

    do_POST = do_GET

    def say(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Send an answer."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


Fault = Callable[[FaultyHandler], None]


class FaultyServer(PagesServer):
    """A PagesServer that answers some sources with a fault instead of their page; robots.txt always works.

    ``asked`` counts the requests of each faulty source.
    """

    handler = FaultyHandler

    def __init__(self, directory: Path, faults: Mapping[str, Fault]) -> None:
        self.faults = faults
        self.asked: dict[str, int] = {}
        super().__init__(directory)

    def handle_error(self, request: object, client_address: object) -> None:
        """Log nothing."""


def says(status: int, body: bytes = b"", **headers: str) -> Fault:
    """Give the same answer every time."""
    return lambda host: host.say(status, body, **headers)


def first(count: int, fault: Fault) -> Fault:
    """Act the fault for a number of times, then give the page."""
    return lambda host: fault(host) if host.asked <= count else host.say_page()


def redirects_to(location: str, status: int = 302) -> Fault:
    return lambda host: host.say(status, location=location)


def sends(head: bytes, body: bytes = b"") -> Fault:
    """Send exactly these bytes after the status line, then close the connection."""

    def fault(host: FaultyHandler) -> None:
        host.wfile.write(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + body)

    return fault


def drips(host: FaultyHandler) -> None:
    """Send an endless body, a byte at a time."""
    host.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 100000\r\n\r\n")
    _drip(host)


def drips_headers(host: FaultyHandler) -> None:
    host.wfile.write(b"HTTP/1.1 200 OK\r\nx-slow: ")
    _drip(host)


def _drip(host: FaultyHandler) -> None:
    while True:
        host.wfile.write(b"x")
        time.sleep(0.02)


def falls_silent(host: FaultyHandler) -> None:
    sends(b"content-length: 10", b"12345")(host)
    time.sleep(2)


def sends_200_mb(host: FaultyHandler) -> None:
    sends(b"content-type: text/html\r\nconnection: close")(host)
    for _ in range(200):
        host.wfile.write(b"x" * MIB)


def pads_without_end(host: FaultyHandler) -> None:
    """Send a whole gzip body, then zeros."""
    sends(b"connection: close\r\ncontent-encoding: gzip", gzip.compress(b"{}"))(host)
    for _ in range(200):
        host.wfile.write(bytes(MIB))


def sends_gzip_bomb(host: FaultyHandler) -> None:
    """Send 300 gzip members of 1 MiB of zeros each: 300 kB on the wire, 300 MiB unpacked."""
    host.say(200, gzip.compress(bytes(MIB)) * 300, content_type="text/html", content_encoding="gzip")


def breaks_off(host: FaultyHandler) -> None:
    """Send less than the announced length, then close the connection."""
    sends(b"content-type: application/json\r\ncontent-length: 1000", b"{")(host)
    host.connection.shutdown(socket.SHUT_RDWR)


def hangs_up(host: FaultyHandler) -> None:
    """Give no answer."""
    host.connection.shutdown(socket.SHUT_RDWR)


def talks_nonsense(host: FaultyHandler) -> None:
    host.wfile.write(b"220 smtp.example ESMTP\r\n")


@contextmanager
def refusing() -> Iterator[str]:
    """Yield the address of a port that refuses connections: bound, but not listening."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
