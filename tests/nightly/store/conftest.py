"""A real S3 server on loopback, which can act between two requests, as the bucket of tests."""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from pipeline.store.address import STORE_VARIABLE
from tests.store.conftest import SECRET, home  # noqa: F401 - the same homes


@dataclass
class S3:
    """The server. ``before`` is called with the method and the path of each request."""

    url: str = ""
    before: Callable[[str, str], None] | None = None

    def make_bucket(self, name: str) -> None:
        """Make an empty bucket."""
        with urlopen(Request(f"{self.url}/{name}", method="PUT")):
            pass


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3]:
    pytest.importorskip("obstore", reason="the store's library is not installed (gpufare[store])")
    server = pytest.importorskip("moto.server", reason="no S3 server: moto, flask or flask-cors is missing")
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    s3 = S3()
    backend = server.DomainDispatcherApplication(server.create_backend_app)

    def app(environ: dict[str, Any], respond: Any) -> Any:
        if s3.before:
            s3.before(environ["REQUEST_METHOD"], environ["PATH_INFO"])
        return backend(environ, respond)

    made = make_server("127.0.0.1", 0, app, threaded=True)
    s3.url = f"http://127.0.0.1:{made.server_port}"
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield s3
    made.shutdown()
    thread.join()


@pytest.fixture
def s3(s3_server: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """The server with an empty bucket named like this test's folder, and the environment that reaches it."""
    bucket = "b" + tmp_path.name.replace("_", "-").lower()[-40:].strip("-")
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", s3_server.url),
        ("AWS_ALLOW_HTTP", "true"),
        (STORE_VARIABLE, f"s3://{bucket}/gpu/fare"),
    ):
        monkeypatch.setenv(name, value)
    s3_server.make_bucket(bucket)
    yield s3_server
    s3_server.before = None


@pytest.fixture
def address(s3: S3) -> str:
    """An empty bucket on the server."""
    return os.environ[STORE_VARIABLE]
