"""One visit to a source: the order and deadline of its requests, and what is archived for each request."""

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from os.path import commonprefix
from threading import Event
from types import ModuleType

from pipeline.capture.archive import Archive, CaptureWriter
from pipeline.capture.http.client import NO_PAGE_HEADER, Client, Rules
from pipeline.capture.http.response import LONGEST_ERROR, RequestFailedError, Response
from pipeline.capture.http.robots import RobotsRules
from pipeline.capture.http.secrets import Secrets
from pipeline.capture.index import sha256_of
from pipeline.capture.permissions import Choices
from pipeline.catalog.source_config import RequestFacts, SourceConfig
from pipeline.contracts.hosts import host_of, same_origin
from pipeline.contracts.listing import Answer, Request
from pipeline.contracts.outcome import OutcomeCode
from pipeline.contracts.progress import Progress
from pipeline.contracts.request import Entry, request_key
from pipeline.parsing.paging import next_page

GIVE_UP_AFTER = 3
"""Number of consecutive requests ending in a transport error, 429 or 5xx after which a visit ends."""


@dataclass(frozen=True, slots=True)
class Run:
    """State shared by the visits to all sources in one refresh."""

    environment: Mapping[str, str]
    day: date
    archive: Archive
    client: Client
    robots: RobotsRules
    progress: Progress
    choices: Choices
    busy_hosts: set[str] = field(default_factory=set)
    stopped: Event = field(default_factory=Event)


class SourceVisit:
    """One source's requests, from the first to the last.

    ``error`` is the first error raised in a function of the source's module (see contracts/listing.py); such
    an error never ends a visit.
    """

    def __init__(
        self, config: SourceConfig, module: ModuleType, run: Run, writer: CaptureWriter, secrets: Secrets
    ) -> None:
        self.error: str | None = None
        self._config = config
        self._module = module
        self._run = run
        self._client = run.client
        self._writer = writer
        self._secrets = secrets
        self._deadline = time.monotonic() + config.time_limit_seconds

    def work_through(self, requests: list[Request]) -> None:
        """Send all requests. A request that follows from an answer or a failure comes next; optional requests
        come last, so their failures never end a visit before mandatory requests are sent."""
        queue = deque(sorted(requests, key=lambda request: request.optional))
        seen: set[str] = set()
        failures_in_a_row = 0
        while queue:
            request = queue.popleft()
            if (key := self._key(request)) in seen:
                continue
            seen.add(key)
            if (stop := self._reason_to_stop(len(seen), failures_in_a_row)) is not None:
                left = {self._key(each): each for each in queue if self._key(each) not in seen}
                self._archive_rest([request, *left.values()], *stop)
                return
            code, following = self._ask(request)
            failures_in_a_row = failures_in_a_row + 1 if code.retryable else 0
            queue.extendleft(_following(request, each) for each in reversed(following))

    def _reason_to_stop(self, asked: int, failures_in_a_row: int) -> tuple[OutcomeCode, str] | None:
        limit = self._run.client.limits.requests_per_source
        if asked > limit:
            return OutcomeCode.REQUEST_LIMIT, f"{OutcomeCode.REQUEST_LIMIT.sentence} ({limit})"
        if failures_in_a_row >= GIVE_UP_AFTER:
            return OutcomeCode.GIVEN_UP, f"not asked, because {failures_in_a_row} requests before it failed"
        if self._run.stopped.is_set():
            return OutcomeCode.GIVEN_UP, "not asked: the refresh was interrupted"
        if time.monotonic() >= self._deadline:
            error = f"not asked: the source's {self._config.time_limit_seconds:g} s are used up"
            return OutcomeCode.SOURCE_TIMEOUT, error
        return None

    def _archive_rest(self, requests: list[Request], code: OutcomeCode, error: str) -> None:
        """Record that a visit ended before these requests: archive one of them (a mandatory one if possible)
        and the number of the others, because a page may contain any number of links."""
        first = min(requests, key=lambda request: request.optional)
        more = len(requests) - 1
        note = f"; {more} more requests were not asked either" if more else ""
        self._archive(first, self._unsent(code, error + note), more_unsent=more)

    def _ask(self, template: Request) -> tuple[OutcomeCode, list[Request]]:
        """Fill in the keys of a request, send it if it may be sent, and archive it. Return the request's
        outcome and the requests that follow: for further pages, or in place of a failed request."""
        rules = self._rules(template)
        try:
            request = self._secrets.fill(template)
            pause = self._crawl_delay_seconds(request, rules)
        except RequestFailedError as refusal:
            unsent = self._unsent(refusal.code, str(refusal))
            return refusal.code, self._ended(template, template, unsent)
        rules = replace(rules, spacing_seconds=max(rules.spacing_seconds, pause))
        response = self._client.fetch(request, rules)
        if response.code is OutcomeCode.HTTP_429:
            self._run.busy_hosts.add(host_of(request.url))
        if self._client.replay and request.optional and NO_PAGE_HEADER in response.headers:
            return response.code, []  # no page was saved: this is not the host's answer
        return response.code, self._ended(template, request, response)

    def _rules(self, template: Request) -> Rules:
        facts = _facts_of(template, self._config)
        return Rules(
            source=self._config.name,
            allowed_hosts=self._config.allowed_hosts,
            secrets=self._secrets,
            deadline=self._deadline,
            body_bytes=min(self._config.max_body_bytes, self._client.limits.body_bytes),
            content_types=facts.content_types if facts else (),
            spacing_seconds=self._config.spacing_seconds,
        )

    def _crawl_delay_seconds(self, request: Request, rules: Rules) -> float:
        """Return the pause that a request's host asks for. Raises RequestFailedError when the request may not
        be sent: its host is not one of the source's, is busy, or disallows it in robots.txt (which does not
        apply to APIs)."""
        self._client.check(request.url, rules)
        if (host := host_of(request.url)) in self._run.busy_hosts:
            detail = f"{host} limits requests (429), and is not asked again in this run"
            raise RequestFailedError(OutcomeCode.GIVEN_UP, detail)
        if self._config.is_api(request.url):
            return 0.0
        return self._run.robots.crawl_delay_seconds(request.url, rules)

    def _ended(self, template: Request, request: Request, response: Response) -> list[Request]:
        """Archive the redacted outcome of a request, and return the requests that follow from it."""
        if response.body:
            response = self._redacted(request, response)
        body = response.body or b""
        answer = Answer(
            self._secrets.redact(request.url),
            body,
            response.observed_at,
            sha256_of(body),
            response.status or 0,
            response.headers,
            self._without_keys(request.body),
        )
        if response.code is OutcomeCode.OK:
            self._archive(request, response)
            return self._next_requests(template, answer)
        instead = self._retry_requests(answer, response.code)
        self._archive(request, response, instead)
        return instead

    def _redacted(self, request: Request, response: Response) -> Response:
        """Return a response whose body is redacted by the source's module and contains no keys. A body that
        cannot be redacted is dropped."""
        body = response.body or b""
        try:
            body = self._module.redact(body) if hasattr(self._module, "redact") else body
            body = self._secrets.redact_bytes(body)
        except Exception as broken:  # from the source's own code; an unredacted body is never stored
            dropped = replace(response, body=None)
            if response.code is not OutcomeCode.OK:
                return dropped
            error = self._failure_in("redact", broken)
            return replace(dropped, code=OutcomeCode.REDACTION_FAILED, error=error)
        if body or response.code is not OutcomeCode.OK:
            return replace(response, body=body)
        url = self._secrets.redact(request.url)
        error = f"{OutcomeCode.EMPTY_BODY.sentence}: redact leaves nothing of {url}"[:LONGEST_ERROR]
        return replace(response, body=body, code=OutcomeCode.EMPTY_BODY, error=error)

    def _unsent(self, code: OutcomeCode, error: str) -> Response:
        """Return the response for a request that is not sent."""
        error = self._secrets.redact(error)[:LONGEST_ERROR]
        return Response(observed_at=datetime.now(UTC), sent=False, code=code, error=error)

    def _archive(
        self, request: Request, response: Response, instead: Iterable[Request] = (), more_unsent: int = 0
    ) -> None:
        """Archive a request and its response. ``more_unsent`` counts unsent requests that get no entry."""
        method, url, body_sha256 = self._named(request)
        entry = Entry(
            method=method,
            url=url,
            body_sha256=body_sha256,
            sent=response.sent,
            status=response.status,
            headers=response.headers,
            observed_at=response.observed_at if response.sent else None,
            duration_seconds=response.duration_seconds,
            retries=response.retries,
            outcome=response.code,
            error=response.error,
            final_url=response.final_url if response.final_url != url else None,
            optional=request.optional,
            instead=tuple(dict.fromkeys(map(self._key, instead))),
            warning=response.warning,
            more_unsent=more_unsent,
        )
        self._writer.add(entry, response.body)

    def _key(self, request: Request) -> str:
        return request_key(*self._named(request))

    def _named(self, request: Request) -> tuple[str, str, str | None]:
        """Return the identity of a request, without keys: its method, its URL and the SHA-256 of its body."""
        sent = self._without_keys(request.body)
        return request.method, self._secrets.redact(request.url), None if sent is None else sha256_of(sent)

    def _without_keys(self, body: bytes | None) -> bytes | None:
        return None if body is None else self._secrets.redact_bytes(body)

    # Calls to the source's module.

    def _next_requests(self, request: Request, answer: Answer) -> list[Request]:
        """Return the requests that follow from an answer, using the yaml's paging or the source's module."""
        with self.noting_errors_in("paging"):
            if self._config.paging is not None:
                following = next_page(request, answer, self._config.paging)
                return [following] if following else []
            if hasattr(self._module, "next_requests"):
                return list(self._module.next_requests(answer, self._config))
        return []

    def _retry_requests(self, failed: Answer, code: OutcomeCode) -> list[Request]:
        """Return the requests that the module makes in place of a failed request, except those to the same
        host if that host is busy or was not reached."""
        instead: list[Request] = []
        if hasattr(self._module, "retry_requests"):
            with self.noting_errors_in("retry_requests"):
                instead = list(self._module.retry_requests(failed, self._config))
        if code.retryable or code is OutcomeCode.GIVEN_UP:
            return [request for request in instead if host_of(request.url) != host_of(failed.url)]
        return instead

    @contextmanager
    def noting_errors_in(self, function: str) -> Iterator[None]:
        """Record an exception inside the ``with`` as the visit's ``error``, if it is the first."""
        try:
            yield
        except Exception as error:  # an answer may contain anything
            self.error = self.error or self._failure_in(function, error)

    def _failure_in(self, function: str, error: Exception) -> str:
        """Return the text of an error in the module, without keys and short enough to be stored."""
        text = self._secrets.redact(f"{self._config.name}.{function}: {type(error).__name__}: {error}")
        return text[:LONGEST_ERROR]


def _following(request: Request, following: Request) -> Request:
    """Return ``following``, made optional if ``request`` is optional, and given its keys if the two have the
    same origin."""
    keyed: dict[str, str] = {}
    if same_origin(following.url, request.url):
        keyed = {name: value for name, value in request.headers.items() if Secrets.names_in(value)}
    headers = {**keyed, **following.headers}
    return replace(following, headers=headers, optional=following.optional or request.optional)


def _facts_of(request: Request, config: SourceConfig) -> RequestFacts | None:
    """Return the yaml's entry for a request: the entry with the same URL, or else the entry on the same host
    with the longest common prefix (for a further page, or a query per GPU)."""
    same_host = [facts for facts in config.requests if facts.host == host_of(request.url)]
    return max(same_host, key=lambda facts: len(commonprefix([facts.url, request.url])), default=None)  # noqa: RUF071
