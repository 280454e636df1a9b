"""A site on pytest-httpserver: a reply per host and path, and a list of the requests as they arrive.

What goes wrong below HTTP (cut connections, slow drips, false lengths) is done by tests/faulty_server.py.
"""

import logging
import ssl
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from urllib.parse import unquote

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

logging.getLogger("werkzeug").setLevel(logging.ERROR)  # only what gpufare logs is under test


class Reply(Response):
    """A response with exactly the given headers, besides its length and date."""

    default_mimetype = None

    def __init__(
        self, status: int = 200, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(body, status, dict(headers or {}))


@dataclass
class Asked:
    """A request as it arrived, with its headers' names in lower case."""

    method: str
    host: str
    target: str
    headers: dict[str, str]
    body: bytes


Route = Callable[[Asked], Reply]


class Site(HTTPServer):
    """Replies by host and path. Anything else is a 404, also robots.txt where a test gives none."""

    def __init__(self, certificate: Path | None = None) -> None:
        context = None
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
        super().__init__("127.0.0.1", 0, context, threaded=True)
        self.no_handler_status_code = 404
        self.asked: list[Asked] = []
        self.most_at_once: dict[str, int] = defaultdict(int)
        self._now: dict[str, int] = defaultdict(int)
        self._lock = Lock()

    @property
    def base_url(self) -> str:
        return self.url_for("").rstrip("/")

    def route(self, host: str, path: str, route: Route) -> None:
        """Answer with what the function returns, in place of an earlier reply."""
        handler = self.expect_request(unquote(path), headers={"Host": host})
        handler.respond_with_handler(lambda request: route(_asked(request)))
        self.handlers.insert(0, self.handlers.pop())

    def say(self, host: str, path: str, *replies: Reply) -> None:
        """Answer with the replies one after another; the last one is repeated."""
        left = list(replies)
        self.route(host, path, lambda asked: left.pop(0) if len(left) > 1 else left[0])

    def pages_asked(self, host: str | None = None) -> list[Asked]:
        """Requests other than for robots.txt."""
        return [a for a in self.asked if a.target != "/robots.txt" and host in (None, a.host)]

    def dispatch(self, request: Request) -> Response:
        asked = _asked(request)
        with self._lock:
            self.asked.append(asked)
            self._now[asked.host] += 1
            self.most_at_once[asked.host] = max(self.most_at_once[asked.host], self._now[asked.host])
        try:
            return super().dispatch(request)
        finally:
            with self._lock:
                self._now[asked.host] -= 1

    def thread_target(self) -> None:
        assert self.server is not None
        self.server.serve_forever(poll_interval=0.01)  # seconds until a shutdown is noticed


def _asked(request: Request) -> Asked:
    headers = {name.lower(): value for name, value in request.headers.items()}
    return Asked(request.method, request.host, request.environ["RAW_URI"], headers, request.get_data())
