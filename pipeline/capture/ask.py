"""One request of a visit: whether it may be sent, how it ends, what is archived, and what follows from it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from os.path import commonprefix

from pipeline.capture.archive import CaptureWriter
from pipeline.capture.conditional import EarlierAnswer, EarlierAnswers
from pipeline.capture.hooks import SourceHooks
from pipeline.capture.http.client import NO_PAGE_HEADER, Client, Rules
from pipeline.capture.http.response import LONGEST_ERROR, RequestFailedError, Response
from pipeline.capture.http.robots import Decision, RobotsRules
from pipeline.capture.http.secrets import MissingKeyError, Secrets
from pipeline.capture.index import sha256_of
from pipeline.catalog.source_config import RequestFacts, SourceConfig
from pipeline.contracts.hosts import host_of
from pipeline.contracts.listing import Answer, Request
from pipeline.contracts.outcome import OutcomeCode
from pipeline.contracts.request import Entry, request_key


@dataclass(frozen=True, slots=True)
class Asked:
    """How a request ended, and the requests that follow from it: further pages, or what is asked instead."""

    code: OutcomeCode
    following: list[Request]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Asks one source's requests, one after another. ``busy_hosts`` are those of all sources that answered
    429; ``deadline`` is the end of the visit in time.monotonic seconds."""

    config: SourceConfig
    client: Client
    robots: RobotsRules
    busy_hosts: set[str]
    secrets: Secrets
    hooks: SourceHooks
    writer: CaptureWriter
    earlier: EarlierAnswers
    deadline: float

    def ask(self, template: Request) -> Asked:
        """Fill in the keys of a request, send it if it may be sent, and archive how it ended."""
        try:
            request = self.secrets.fill(template)
        except MissingKeyError as error:
            return self._unsent(template, OutcomeCode.NEEDS_KEY, f"needs a key: set {error.name}")
        rules = self._rules(template)
        decision = self._decision(request, rules)
        if decision.code is not OutcomeCode.OK:
            return self._unsent(template, decision.code, decision.detail)
        keyed = request != template
        earlier = self.earlier.find(request_key(*self._key(request)), keyed=keyed)
        rules = replace(
            rules,
            spacing_seconds=max(rules.spacing_seconds, decision.crawl_delay_seconds),
            validators=earlier.validators if earlier else {},
        )
        response = self.client.fetch(request, rules)
        if response.code is OutcomeCode.HTTP_429:
            self.busy_hosts.add(host_of(request.url))
        if self.client.replay and request.optional and NO_PAGE_HEADER in response.headers:
            return Asked(response.code, [])  # the saved pages lack it: no answer of a host
        return self._answered(template, request, response, earlier, keyed)

    def _rules(self, template: Request) -> Rules:
        facts = _facts_of(template, self.config)
        return Rules(
            source=self.config.name,
            allowed_hosts=self.config.allowed_hosts,
            secrets=self.secrets,
            deadline=self.deadline,
            body_bytes=min(self.config.max_body_bytes, self.client.limits.body_bytes),
            content_types=facts.content_types if facts else (),
            spacing_seconds=self.config.spacing_seconds,
        )

    def _decision(self, request: Request, rules: Rules) -> Decision:
        """Return whether a request may be sent: by its source's hosts, by what its host answered before, and
        by its host's robots.txt, unless that is an interface for programs."""
        try:
            self.client.check(request.url, rules)
        except RequestFailedError as refusal:
            return Decision(refusal.code, str(refusal))
        if (host := host_of(request.url)) in self.busy_hosts:
            return Decision(
                OutcomeCode.GIVEN_UP, f"not asked again in this run: {host} limits requests (429)"
            )
        if self.config.is_api(request.url):
            return Decision(OutcomeCode.OK)
        return self.robots.decide(request.url, rules)

    def _answered(
        self,
        template: Request,
        request: Request,
        response: Response,
        earlier: EarlierAnswer | None,
        keyed: bool,
    ) -> Asked:
        """Archive a response, without what must not be stored; return what follows from it."""
        redacted, since = False, None
        if response.code is OutcomeCode.NOT_MODIFIED and earlier is not None:
            response, since = earlier.as_answered(response), earlier.since
        elif response.body:
            received = response.body
            response = self._redacted(request, response)
            redacted = response.body != received
        method, url, body_sha256 = self._key(request)
        body = response.body or b""
        answer = Answer(
            url,
            body,
            response.observed_at,
            sha256_of(body),
            response.status or 0,
            response.headers,
            self._without_keys(request.body),
        )
        is_usable = response.code.usable and bool(body)
        instead = [] if is_usable else self.hooks.retry_requests(answer, response.code)
        entry = Entry(
            method=method,
            url=url,
            body_sha256=body_sha256,
            status=response.status,
            headers=response.headers,
            observed_at=response.observed_at,
            duration_seconds=response.duration_seconds,
            retries=response.retries,
            outcome=response.code,
            error=response.error,
            final_url=response.final_url if response.final_url != url else None,
            redacted=redacted,
            not_modified_since=since,
            optional=request.optional,
            instead=self._keys_of(instead),
            warning=response.warning,
            keyed=keyed,
        )
        self.writer.add(entry, response.body)
        return Asked(response.code, self.hooks.next_requests(template, answer) if is_usable else instead)

    def _redacted(self, request: Request, response: Response) -> Response:
        """Return a response without keys and without what its source must not store in the body. A body that
        cannot be redacted is dropped."""
        try:
            body = self.secrets.redact_bytes(self.hooks.redacted(response.body or b""))
        except Exception as broken:  # the source's own code; an unredacted body is never stored
            dropped = replace(response, body=None)
            if response.code is not OutcomeCode.OK:
                return dropped
            error = self.hooks.failure_in("redact", broken)
            return replace(dropped, code=OutcomeCode.REDACTION_FAILED, error=error)
        if body or response.code is not OutcomeCode.OK:
            return replace(response, body=body)
        url = self.secrets.redact(request.url)
        error = f"{OutcomeCode.EMPTY_BODY.sentence}: redact leaves nothing of {url}"[:LONGEST_ERROR]
        return replace(response, body=body, code=OutcomeCode.EMPTY_BODY, error=error)

    def _unsent(self, request: Request, code: OutcomeCode, error: str) -> Asked:
        """Archive that a request is not sent; return what is asked instead."""
        failed = Answer(self._key(request)[1], b"", datetime.now(UTC), sha256_of(b""), 0)
        instead = self.hooks.retry_requests(failed, code)
        self.archive_unsent(request, code, error, self._keys_of(instead))
        return Asked(code, instead)

    def archive_unsent(
        self,
        request: Request,
        code: OutcomeCode,
        error: str,
        instead: tuple[str, ...] = (),
        more_unsent: int = 0,
    ) -> None:
        """Archive that a request was not sent, and why. ``more_unsent`` further ones have no entry of their
        own."""
        method, url, body_sha256 = self._key(request)
        entry = Entry(
            method=method,
            url=url,
            body_sha256=body_sha256,
            sent=False,
            status=None,
            outcome=code,
            error=self.secrets.redact(error)[:LONGEST_ERROR],
            optional=request.optional,
            instead=instead,
            more_unsent=more_unsent,
        )
        self.writer.add(entry, None)

    def _key(self, request: Request) -> tuple[str, str, str | None]:
        """Return what distinguishes requests, without keys: method, URL, SHA-256 of the body."""
        sent = self._without_keys(request.body)
        return request.method, self.secrets.redact(request.url), None if sent is None else sha256_of(sent)

    def _keys_of(self, requests: Iterable[Request]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(request_key(*self._key(request)) for request in requests))

    def _without_keys(self, body: bytes | None) -> bytes | None:
        return None if body is None else self.secrets.redact_bytes(body)


def _facts_of(request: Request, config: SourceConfig) -> RequestFacts | None:
    """Return the yaml's request that applies to this one: the same address, else the same host and the
    longest common prefix (a further page, a query per GPU)."""
    same_host = [facts for facts in config.requests if facts.host == host_of(request.url)]
    return max(same_host, key=lambda facts: _shared_length(facts.url, request.url), default=None)


def _shared_length(one: str, other: str) -> int:
    return len(commonprefix([one, other]))  # noqa: RUF071 - of characters, not of a path's parts
