"""An HTTP proxy on loopback that opens tunnels (CONNECT) to where a test says that each host is."""

import base64
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Lock, Thread
from types import TracebackType
from typing import Self


class ConnectProxy:
    """``tunnels`` has the port on loopback of each ``host:port``; other hosts are answered with 502.

    ``password`` is the ``name:password`` that it wants. ``answers`` are raw bytes that it sends to every
    request in place of opening a tunnel. ``asked`` are the targets of all requests, ``heads`` their headers,
    and ``carried`` all bytes that went from the client into tunnels.
    """

    def __init__(
        self,
        tunnels: Mapping[str, int] | None = None,
        *,
        password: str | None = None,
        answers: bytes | None = None,
        certificate: Path | None = None,
    ) -> None:
        self.tunnels = dict(tunnels or {})
        self.asked: list[str] = []
        self.heads: list[str] = []
        self.carried = b""
        self._wants = password and f"Basic {base64.b64encode(password.encode()).decode()}"
        self._answers = answers
        self._lock = Lock()
        self._server = ThreadingTCPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[StreamRequestHandler]:
        proxy = self

        class Handler(StreamRequestHandler):
            def handle(self) -> None:
                proxy._serve(self.request)

        return Handler

    def _serve(self, client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head and (received := client.recv(65536)):
            head += received
        lines = head.decode("latin-1").split("\r\n")
        method, target = [*lines[0].split(), "", ""][:2]
        with self._lock:
            self.asked.append(target)
            self.heads.append(head.decode("latin-1"))
        if self._answers is not None:
            client.sendall(self._answers)
        elif (
            self._wants
            and f"proxy-authorization: {self._wants}".lower() not in head.decode("latin-1").lower()
        ):
            client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
        elif method != "CONNECT" or target not in self.tunnels:
            client.sendall(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n")
        else:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            self._tunnel(client, self.tunnels[target])

    def _tunnel(self, client: socket.socket, port: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as host:
            back = Thread(target=_pump, args=(host, client), daemon=True)
            back.start()
            while received := _received(client):
                with self._lock:
                    self.carried += received
                host.sendall(received)
            host.shutdown(socket.SHUT_WR)
            back.join(timeout=5)


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while received := _received(source):
            target.sendall(received)
    except OSError:
        pass  # the client has what it wanted


def _received(source: socket.socket) -> bytes:
    try:
        return source.recv(65536)
    except OSError:
        return b""
