"""An HTTP proxy on loopback that opens tunnels (CONNECT) to where a test says that each host is."""

import base64
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Self

from .site import tls_with


class ConnectProxy(ThreadingTCPServer):
    """``tunnels`` has the port on loopback of each ``host:port``; other hosts are answered with 502.

    ``password`` is the ``name:password`` that it wants. ``answers`` are raw bytes that it sends to every
    request in place of opening a tunnel. ``asked`` are the targets of all requests, ``heads`` their headers,
    and ``carried`` all bytes that went from the client into tunnels.
    """

    daemon_threads = True

    def __init__(
        self,
        tunnels: Mapping[str, int],
        password: str = "",
        answers: bytes | None = None,
        certificate: Path | None = None,
    ) -> None:
        super().__init__(("127.0.0.1", 0), BaseRequestHandler)
        self.tunnels, self._answers = dict(tunnels), answers
        self.asked: list[str] = []
        self.heads: list[str] = []
        self.carried = b""
        self.port: int = self.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._wants = base64.b64encode(password.encode()).decode()
        if context := tls_with(certificate):
            self.socket = context.wrap_socket(self.socket, server_side=True)

    def __enter__(self) -> Self:
        Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def finish_request(self, client: socket.socket, address: object) -> None:
        head = b""
        while b"\r\n\r\n" not in head and (received := client.recv(65536)):
            head += received
        text = head.decode("latin-1")
        target = [*text.split(" ", 2), "", ""][1]
        self.heads.append(text)
        self.asked.append(target)
        if self._answers is not None:
            client.sendall(self._answers)
        elif self._wants not in text:
            client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
        elif not text.startswith("CONNECT ") or target not in self.tunnels:
            client.sendall(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n")
        else:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            with socket.create_connection(("127.0.0.1", self.tunnels[target])) as host:
                Thread(target=self._pump, args=(host, client), daemon=True).start()
                self._pump(client, host, noted=True)

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, *where: object) -> None:
        """Log nothing: a client may hang up."""

    def _pump(self, source: socket.socket, target: socket.socket, noted: bool = False) -> None:
        with suppress(OSError):  # either side has what it wanted
            while received := source.recv(65536):
                self.carried += received if noted else b""
                target.sendall(received)
            target.shutdown(socket.SHUT_WR)
