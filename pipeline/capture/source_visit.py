"""One visit to a source: what is asked, in which order and until when, what is archived of each request, and
what follows from it."""

import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from os.path import commonprefix
from threading import Event

from pipeline.capture.archive import Archive, CaptureWriter
from pipeline.capture.hooks import SourceHooks
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

GIVE_UP_AFTER = 3
"""Requests in a row that end in a transport error, 429 or 5xx before a visit ends."""


@dataclass(frozen=True, slots=True)
class Run:
    """What the visits to all sources of one refresh have in common."""

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
    """One source's requests, from the first to the last."""

    def __init__(
        self, config: SourceConfig, run: Run, writer: CaptureWriter, secrets: Secrets, hooks: SourceHooks
    ) -> None:
        self._config = config
        self._run = run
        self._client = run.client
        self._writer = writer
        self._secrets = secrets
        self._hooks = hooks
        self._deadline = time.monotonic() + config.time_limit_seconds

    def work_through(self, requests: list[Request]) -> None:
        """Ask until nothing is left; what an answer or a failure leads to comes before the rest, and optional
        requests come last: their failures never end a visit before the others were asked."""
        queue = deque(sorted(requests, key=lambda request: request.optional))
        seen: set[str] = set()
        failures_in_a_row = 0
        while queue:
            request = queue.popleft()
            if (key := self._key(request)) in seen:
                continue
            seen.add(key)
            if (stop := self._why_stop(len(seen), failures_in_a_row)) is not None:
                left = {self._key(each): each for each in queue if self._key(each) not in seen}
                self._archive_rest([request, *left.values()], *stop)
                return
            code, following = self._ask(request)
            failures_in_a_row = failures_in_a_row + 1 if code.retryable else 0
            queue.extendleft(_following(request, each) for each in reversed(following))

    def _why_stop(self, asked: int, failures_in_a_row: int) -> tuple[OutcomeCode, str] | None:
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
        """Archive that a visit ended before these requests: one of them, not optional if any is not, and how
        many more there were. A page may have any number of links."""
        first = min(requests, key=lambda request: request.optional)
        more = len(requests) - 1
        note = f"; {more} more requests were not asked either" if more else ""
        self._archive(first, self._unsent(code, error + note), more_unsent=more)

    def _ask(self, template: Request) -> tuple[OutcomeCode, list[Request]]:
        """Fill in the keys of a request, send it if it may be sent, and archive it. Return how it ended, and
        the requests that follow from it: further pages, or what is asked instead."""
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
            return response.code, []  # the saved pages lack it: no answer of a host
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
        be sent: by its source's hosts, by what its host answered before, or by its host's robots.txt, which
        an interface for programs does not need."""
        self._client.check(request.url, rules)
        if (host := host_of(request.url)) in self._run.busy_hosts:
            detail = f"{host} limits requests (429), and is not asked again in this run"
            raise RequestFailedError(OutcomeCode.GIVEN_UP, detail)
        if self._config.is_api(request.url):
            return 0.0
        return self._run.robots.crawl_delay_seconds(request.url, rules)

    def _ended(self, template: Request, request: Request, response: Response) -> list[Request]:
        """Archive how a request ended, without what must not be stored; return what follows from it."""
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
            return self._hooks.next_requests(template, answer)
        instead = self._hooks.retry_requests(answer, response.code)
        self._archive(request, response, instead)
        return instead

    def _redacted(self, request: Request, response: Response) -> Response:
        """Return a response without keys and without what its source must not store in the body. A body that
        cannot be redacted is dropped."""
        try:
            body = self._secrets.redact_bytes(self._hooks.redacted(response.body or b""))
        except Exception as broken:  # the source's own code; an unredacted body is never stored
            dropped = replace(response, body=None)
            if response.code is not OutcomeCode.OK:
                return dropped
            error = self._hooks.failure_in("redact", broken)
            return replace(dropped, code=OutcomeCode.REDACTION_FAILED, error=error)
        if body or response.code is not OutcomeCode.OK:
            return replace(response, body=body)
        url = self._secrets.redact(request.url)
        error = f"{OutcomeCode.EMPTY_BODY.sentence}: redact leaves nothing of {url}"[:LONGEST_ERROR]
        return replace(response, body=body, code=OutcomeCode.EMPTY_BODY, error=error)

    def _unsent(self, code: OutcomeCode, error: str) -> Response:
        """Return how a request ends that is not sent."""
        error = self._secrets.redact(error)[:LONGEST_ERROR]
        return Response(observed_at=datetime.now(UTC), sent=False, code=code, error=error)

    def _archive(
        self, request: Request, response: Response, instead: Iterable[Request] = (), more_unsent: int = 0
    ) -> None:
        """Archive a request and its response. ``more_unsent`` further ones have no entry of their own."""
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
        """Return what distinguishes requests, without keys: method, URL, SHA-256 of the body."""
        sent = self._without_keys(request.body)
        return request.method, self._secrets.redact(request.url), None if sent is None else sha256_of(sent)

    def _without_keys(self, body: bytes | None) -> bytes | None:
        return None if body is None else self._secrets.redact_bytes(body)


def _following(request: Request, following: Request) -> Request:
    """Return a request that follows from another: optional if that is, with its keys on the same origin."""
    keyed: dict[str, str] = {}
    if same_origin(following.url, request.url):
        keyed = {name: value for name, value in request.headers.items() if Secrets.names_in(value)}
    headers = {**keyed, **following.headers}
    return replace(following, headers=headers, optional=following.optional or request.optional)


def _facts_of(request: Request, config: SourceConfig) -> RequestFacts | None:
    """Return the yaml's request that applies to this one: the same address, else the same host and the
    longest common prefix (a further page, a query per GPU)."""
    same_host = [facts for facts in config.requests if facts.host == host_of(request.url)]
    return max(same_host, key=lambda facts: len(commonprefix([facts.url, request.url])), default=None)  # noqa: RUF071
