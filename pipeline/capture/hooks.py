"""A source module's functions. What breaks in them is the source's own error, and ends no visit."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from pipeline.capture.http.response import LONGEST_ERROR
from pipeline.capture.http.secrets import Secrets
from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.hosts import host_of
from pipeline.contracts.listing import Answer, Request
from pipeline.contracts.outcome import OutcomeCode
from pipeline.parsing.paging import next_page


class SourceHooks:
    """The functions of one source's module (see contracts/listing.py) that say what to ask and what to store.
    ``error`` is the first error in one."""

    def __init__(self, config: SourceConfig, module: ModuleType, secrets: Secrets) -> None:
        self._config = config
        self._module = module
        self._secrets = secrets
        self.error: str | None = None

    def next_requests(self, request: Request, answer: Answer) -> list[Request]:
        """Return the requests that an answer leads to, by the yaml's paging or by the module."""
        with self.noting_errors_in("paging"):
            if self._config.paging is not None:
                following = next_page(request, answer, self._config.paging)
                return [following] if following else []
            if hasattr(self._module, "next_requests"):
                return list(self._module.next_requests(answer, self._config))
        return []

    def retry_requests(self, failed: Answer, code: OutcomeCode) -> list[Request]:
        """Return what the source asks because a request failed. A host that is busy or was not reached is not
        asked in another way."""
        instead: list[Request] = []
        if hasattr(self._module, "retry_requests"):
            with self.noting_errors_in("retry_requests"):
                instead = list(self._module.retry_requests(failed, self._config))
        if code.retryable or code is OutcomeCode.GIVEN_UP:
            return [request for request in instead if host_of(request.url) != host_of(failed.url)]
        return instead

    @contextmanager
    def noting_errors_in(self, function: str) -> Iterator[None]:
        """Take what breaks within for an error of the source's own code."""
        try:
            yield
        except Exception as error:  # an answer may be anything
            self.error = self.error or self.failure_in(function, error)

    def redacted(self, body: bytes) -> bytes:
        """Return a body without what the source must not store. Raises any exception of the module."""
        return self._module.redact(body) if hasattr(self._module, "redact") else body

    def failure_in(self, function: str, error: Exception) -> str:
        """Return an error of the source's own code as it may be stored."""
        text = self._secrets.redact(f"{self._config.name}.{function}: {type(error).__name__}: {error}")
        return text[:LONGEST_ERROR]
