"""A real HTTP server on loopback that misbehaves as a test wants it to."""

import ssl
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread


@dataclass
class Reply:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Asked:
    """A request as it arrived; ``headers`` in lower case, times from time.monotonic."""

    method: str
    host: str
    target: str
    headers: dict[str, str]
    body: bytes
    at: float


Route = Callable[[Asked, BaseHTTPRequestHandler], Reply | None]
"""Gives the reply, or None after it has written to the connection itself."""


class HangUpsAreExpected(BaseHTTPRequestHandler):
    """A handler that a client may leave in the middle: that is what is tested."""

    def handle(self) -> None:
        with suppress(OSError):
            super().handle()

    def finish(self) -> None:
        with suppress(OSError):
            super().finish()


class Site:
    """Routes by (host, path). Hosts that a test gives no robots.txt answer 404 for it, and so does anything
    else without a route."""

    def __init__(self, certificate: Path | None = None) -> None:
        self.asked: list[Asked] = []
        self.most_at_once: dict[str, int] = defaultdict(int)
        self._now: dict[str, int] = defaultdict(int)
        self._routes: dict[tuple[str, str], Route] = {}
        self._lock = Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            self._scheme = "https"
        Thread(target=lambda: self._server.serve_forever(poll_interval=0.01), daemon=True).start()

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    @property
    def base_url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def route(self, host: str, path: str, route: Route) -> None:
        self._routes[host, path] = route

    def say(self, host: str, path: str, *replies: Reply) -> None:
        """Answer with the replies one after another; the last one stays."""
        left = list(replies)
        self.route(host, path, lambda asked, handler: left.pop(0) if len(left) > 1 else left[0])

    def pages_asked(self, host: str | None = None) -> list[Asked]:
        """Requests other than for robots.txt."""
        return [a for a in self.asked if a.target != "/robots.txt" and host in (None, a.host)]

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        body = handler.rfile.read(int(headers.get("content-length", 0)))
        asked = Asked(handler.command, headers["host"], handler.path, headers, body, time.monotonic())
        with self._lock:
            self.asked.append(asked)
            self._now[asked.host] += 1
            self.most_at_once[asked.host] = max(self.most_at_once[asked.host], self._now[asked.host])
        try:
            route = self._routes.get((asked.host, asked.target.partition("?")[0]))
            reply = route(asked, handler) if route else Reply(404, b"no such page")
            if reply is None:
                handler.close_connection = True
                return
            handler.send_response(reply.status)
            for name, value in reply.headers.items():
                handler.send_header(name, value)
            handler.send_header("content-length", str(len(reply.body)))
            handler.end_headers()
            handler.wfile.write(reply.body)
        except OSError:
            handler.close_connection = True
        finally:
            with self._lock:
                self._now[asked.host] -= 1

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(HangUpsAreExpected):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                site._answer(self)

            do_POST = do_GET

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        return Handler
