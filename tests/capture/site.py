"""A site on pytest-httpserver: a reply per host and path, and a list of the requests as they arrive.

Cut connections, slow drips and false lengths are done by faulty_server.py in tests/refresh.
"""

import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

UNTRUSTED = Path(__file__).with_name("untrusted.pem")
"""A certificate of a server that no client trusts."""

logging.getLogger("werkzeug").setLevel(logging.ERROR)  # only what gpufare logs is under test


def tls_with(certificate: Path | None) -> ssl.SSLContext | None:
    """Return the context with which a server speaks TLS; None without a certificate."""
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


class Reply(Response):
    """A response with exactly the given headers, besides its length and date."""

    default_mimetype = None

    def __init__(self, status: int = 200, body: bytes = b"", headers: Any = ()) -> None:
        super().__init__(body, status, dict(headers))


@dataclass
class Asked:
    """A request as it arrived, with its headers' names in lower case."""

    method: str
    host: str
    target: str
    headers: dict[str, str]
    body: bytes


class Site(HTTPServer):
    """Replies by host and path. Anything else is a 404, also robots.txt where a test gives none."""

    def __init__(self, certificate: Path | None = None) -> None:
        super().__init__("127.0.0.1", 0, tls_with(certificate), threaded=True)
        self.no_handler_status_code = 404
        self.asked: list[Asked] = []

    @property
    def base_url(self) -> str:
        return self.url_for("").rstrip("/")

    def route(self, host: str, path: str, route: Callable[[Asked], Reply]) -> None:
        """Answer with what the function returns, in place of an earlier reply."""
        handler = self.expect_request(unquote(path), headers={"Host": host})
        handler.respond_with_handler(lambda request: route(_asked(request)))
        self.handlers.insert(0, self.handlers.pop())

    def say(self, host: str, path: str, *replies: Reply) -> None:
        """Answer with the replies one after another; the last one is repeated."""
        left = list(replies)
        self.route(host, path, lambda asked: left.pop(0) if len(left) > 1 else left[0])

    def pages_asked(self) -> list[Asked]:
        """Requests other than for robots.txt."""
        return [asked for asked in self.asked if asked.target != "/robots.txt"]

    def dispatch(self, request: Request) -> Response:
        self.asked.append(_asked(request))
        return super().dispatch(request)

    def thread_target(self) -> None:
        assert self.server is not None
        self.server.serve_forever(poll_interval=0.01)  # seconds until a shutdown is noticed


def _asked(request: Request) -> Asked:
    headers = {name.lower(): value for name, value in request.headers.items()}
    return Asked(request.method, request.host, request.environ["RAW_URI"], headers, request.get_data())
