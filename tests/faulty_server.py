"""The sample pages over real HTTP, from hosts that misbehave as a test wants them to."""

import gzip
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from pipeline.capture.http.client import SOURCE_HEADER
from pipeline.capture.replay import PagesServer
from tests.capture.site import HangUpsAreExpected

MIB = 2**20
UNTRUSTED = Path(__file__).parent / "capture" / "untrusted.pem"
TLS_HANDSHAKE = b"\x16"


class Host(BaseHTTPRequestHandler):
    """What a fault has to do with: a connection on which one source has just asked something."""

    asked: int
    base_url: str

    def say(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Answer."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def say_as_ever(self) -> None:
        """Answer with the sample page."""


Fault = Callable[[Host], None]


class FaultyServer(PagesServer):
    """A PagesServer on which some sources meet their fault instead of their page; robots.txt is spared.

    One port speaks HTTP and, to who begins with a TLS handshake, HTTPS with a certificate nobody trusts.
    """

    def __init__(self, directory: Path, faults: Mapping[str, Fault]) -> None:
        self._faults = faults
        self._asked: dict[str, int] = {}
        super().__init__(directory)
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign,assignment]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server, plain = self, super()._handler()

        class Handler(HangUpsAreExpected, plain):  # type: ignore[valid-type,misc]
            def setup(self) -> None:
                if self.request.recv(1, socket.MSG_PEEK) == TLS_HANDSHAKE:
                    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                    context.load_cert_chain(UNTRUSTED)
                    self.request = context.wrap_socket(self.request, server_side=True)
                super().setup()

            def do_GET(self) -> None:
                source = self.headers.get(SOURCE_HEADER, "")
                fault = server._faults.get(source)
                if fault is None or self.path == "/robots.txt":
                    self.say_as_ever()
                    return
                self.asked = server._asked[source] = server._asked.get(source, 0) + 1
                self.base_url = server.base_url
                fault(self)  # type: ignore[arg-type]

            do_POST = do_GET
            say = Host.say
            say_as_ever = plain._answer

        return Handler


def says(status: int, body: bytes = b"", **headers: str) -> Fault:
    """The same answer every time."""
    return lambda host: host.say(status, body, **headers)


def first(count: int, fault: Fault) -> Fault:
    """The fault so many times, then the page."""
    return lambda host: fault(host) if host.asked <= count else host.say_as_ever()


def redirects_to(location: str) -> Fault:
    return lambda host: host.say(302, location=location)


def redirects_to_untrusted_tls(host: Host) -> None:
    """To the same port, as https: allowed, and then the certificate is one that nobody trusts."""
    host.say(302, location=host.base_url.replace("http:", "https:") + "/prices")


def drips(host: Host) -> None:
    host.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 100000\r\n\r\n")
    while True:
        host.wfile.write(b"x")
        host.wfile.flush()
        time.sleep(0.02)


def sends_200_mb(host: Host) -> None:
    host.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n")
    for _ in range(200):
        host.wfile.write(b"x" * MIB)


def sends_gzip_bomb(host: Host) -> None:
    """300 kB on the wire, 300 MiB unpacked."""
    host.say(200, gzip.compress(bytes(MIB)) * 300, content_type="text/html", content_encoding="gzip")


def hangs_up(host: Host) -> None:
    host.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{")
    host.wfile.flush()
    host.close_connection = True
    host.connection.shutdown(socket.SHUT_RDWR)


def listening() -> tuple[Any, str]:
    """A port of this machine on which nobody answers, and its address: to be refused, not asked."""
    taken = socket.create_server(("127.0.0.1", 0))
    return taken, f"http://127.0.0.1:{taken.getsockname()[1]}"
