"""One source's visit, or all of them: what to ask, in which order, until when, and where answers are kept."""

import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import takewhile
from threading import Event
from types import ModuleType
from urllib.parse import urlsplit

from pipeline.capture.archive import Archive, Capture, CaptureWriter
from pipeline.capture.http.client import Client, Fetched, Rules
from pipeline.capture.http.robots import RobotsRules, Verdict
from pipeline.capture.http.secrets import MissingKeyError, Secrets, WatchedEnvironment
from pipeline.capture.index import Entry, PagesError, read_body, sha256_of
from pipeline.capture.outcome import (
    RETRYABLE,
    CaptureOutcome,
    CaptureStatus,
    OutcomeCode,
    RequestOutcome,
    capture_status,
    first_error,
    request_outcome,
)
from pipeline.catalog.source_config import RequestFacts, SourceConfig
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.listing import Answer, Request
from pipeline.parsing.paging import next_page
from pipeline.sources import source_module

GIVE_UP_AFTER = 3
"""So many requests in a row that end in a transport error, 429 or 5xx end the visit."""

Progress = Callable[[str, RequestOutcome | CaptureOutcome], None]
"""Called with the source's name after each request and, last, with the source's outcome; by capture_all from
several threads."""


class PastDayError(GpufareError):
    """A live capture was asked for a day other than today."""


def check_day(day: date, client: Client) -> None:
    """Raises PastDayError when ``day`` is not today (UTC) and the client asks live pages."""
    today = datetime.now(UTC).date()
    if client.replay is None and day != today:
        kind = "past" if day < today else "still to come"
        raise PastDayError(
            f"{day} is {kind}: a live price page shows today's prices ({today} UTC) and is never filed under "
            "another day; read the archive of that day, or replay saved pages with --pages"
        )


def first_requests(config: SourceConfig, module: ModuleType, environment: Mapping[str, str]) -> list[Request]:
    """What a visit begins with: the module's ``requests``, else the yaml's, with ``${NAME}`` unfilled."""
    if hasattr(module, "requests"):
        return list(module.requests(config, environment))
    return [_request_of(facts) for facts in config.requests]


def _request_of(facts: RequestFacts) -> Request:
    if facts.json_body is None:
        return Request(facts.url, facts.method, dict(facts.headers))
    body = json.dumps(facts.json_body, separators=(",", ":"), ensure_ascii=False).encode()
    headers = {"content-type": "application/json", **{k.lower(): v for k, v in facts.headers.items()}}
    return Request(facts.url, facts.method, headers, body)


def capture_source(
    config: SourceConfig,
    module: ModuleType,
    *,
    environment: Mapping[str, str],
    day: date,
    archive: Archive,
    client: Client,
    progress: Progress | None = None,
) -> CaptureOutcome:
    """Ask a source everything it is to be asked and archive every answer.

    Whatever the network or the host does ends up in the outcome. Raises PastDayError for another day than
    today, unless the client replays, and OSError when the archive cannot be written.
    """
    check_day(day, client)
    return _capture(
        config, module, _Run(environment, day, archive, client, _robots(client, archive), progress)
    )


def capture_all(
    configs: Iterable[SourceConfig],
    *,
    environment: Mapping[str, str],
    day: date,
    archive: Archive,
    client: Client,
    progress: Progress | None = None,
    module_of: Callable[[str], ModuleType] = source_module,
    max_workers: int = 8,
) -> dict[str, CaptureOutcome]:
    """Capture sources, at once where they ask different hosts, one after another where they share one.

    A source that breaks, its module included, becomes a failed outcome and touches no other. Outcomes come in
    the order of ``configs``. Raises PastDayError as capture_source does.
    """
    check_day(day, client)
    chosen = list(configs)
    run = _Run(environment, day, archive, client, _robots(client, archive), progress)

    def capture_group(group: list[SourceConfig]) -> list[CaptureOutcome]:
        return [_capture_or_fail(config, module_of, run) for config in group]

    with ThreadPoolExecutor(max_workers=max_workers, thread_name_prefix="capture") as pool:
        try:
            groups = list(pool.map(capture_group, _sharing_hosts(chosen)))
        except BaseException:  # Ctrl-C: what is under way ends with its present request
            run.stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    outcomes = {outcome.source: outcome for group in groups for outcome in group}
    return {config.name: outcomes[config.name] for config in chosen}


@dataclass(frozen=True, slots=True)
class _Run:
    """What the visits to all sources of one refresh have in common."""

    environment: Mapping[str, str]
    day: date
    archive: Archive
    client: Client
    robots: RobotsRules
    progress: Progress | None
    stopped: Event = field(default_factory=Event)

    def tell(self, source: str, event: RequestOutcome | CaptureOutcome) -> None:
        if self.progress:
            self.progress(source, event)


def _robots(client: Client, archive: Archive) -> RobotsRules:
    return RobotsRules(client, None if client.replay else archive.root.parent / "robots")


def _sharing_hosts(configs: list[SourceConfig]) -> list[list[SourceConfig]]:
    """Groups of sources between which no host is shared."""
    groups: list[tuple[frozenset[str], list[SourceConfig]]] = []
    for config in configs:
        touching = [group for group in groups if group[0] & config.allowed_hosts]
        groups = [group for group in groups if not group[0] & config.allowed_hosts]
        hosts = config.allowed_hosts.union(*(group[0] for group in touching))
        groups.append((hosts, [member for group in touching for member in group[1]] + [config]))
    return [members for _, members in groups]


def _capture_or_fail(
    config: SourceConfig, module_of: Callable[[str], ModuleType], run: _Run
) -> CaptureOutcome:
    try:
        return _capture(config, module_of(config.name), run)
    except Exception as error:  # whatever broke it: one broken source never stops the rest
        outcome = CaptureOutcome(
            source=config.name, status="failed", error=f"{type(error).__name__}: {error}"
        )
        run.tell(config.name, outcome)
        return outcome


def _capture(config: SourceConfig, module: ModuleType, run: _Run) -> CaptureOutcome:
    if config.disabled is not None:
        outcome = CaptureOutcome(source=config.name, status="disabled", error=config.disabled)
    else:
        outcome = _Visit(config, module, run).outcome()
    run.tell(config.name, outcome)
    return outcome


class _Visit:
    """One source's requests, from the first to the last."""

    def __init__(self, config: SourceConfig, module: ModuleType, run: _Run) -> None:
        self._config = config
        self._module = module
        self._run = run
        self._began = time.monotonic()
        self._deadline = self._began + min(config.time_limit_seconds, run.client.limits.source_seconds)
        self._environment = WatchedEnvironment(run.environment)
        self._secrets = Secrets(self._environment, _key_names(config))
        self._previous = _previous_answers(run.archive, config.name, replayed=run.client.replay is not None)
        self._writer: CaptureWriter | None = None
        self._outcomes: list[RequestOutcome] = []
        self._source_error: str | None = None

    def outcome(self) -> CaptureOutcome:
        """Make the visit."""
        try:
            queue = deque(first_requests(self._config, self._module, self._environment))
        except Exception as error:  # the source's own code
            if isinstance(error, KeyError) and error.args[0] in self._environment.read:
                return self._without_requests("needs_key", f"needs a key: set {error.args[0]}")
            return self._without_requests("failed", self._told("requests", error))
        if not queue:
            return self._without_requests(*self._why_nothing_to_ask())
        self._work_through(queue)
        status = capture_status(outcome.outcome for outcome in self._outcomes)
        if self._source_error and status == "captured":
            status = "partial"
        return CaptureOutcome(
            source=self._config.name,
            status=status,
            requests=tuple(self._outcomes),
            error=self._source_error or first_error(self._outcomes),
            capture=self._writer.finish(status) if self._writer else None,
            duration_seconds=round(time.monotonic() - self._began, 3),
        )

    def _without_requests(self, status: CaptureStatus, error: str) -> CaptureOutcome:
        return CaptureOutcome(source=self._config.name, status=status, error=error)

    def _why_nothing_to_ask(self) -> tuple[CaptureStatus, str]:
        missing = [name for name in self._config.key_variables if name not in self._environment]
        if missing:
            return "needs_key", f"needs a key: set {', '.join(missing)}"
        return "failed", "the source names no request"

    def _told(self, function: str, error: Exception) -> str:
        return self._secrets.redact(f"{self._config.name}.{function}: {type(error).__name__}: {error}")

    def _work_through(self, queue: deque[Request]) -> None:
        """Ask until nothing is left; the pages that an answer leads to come before what was queued."""
        seen: set[tuple[str, str, bytes | None]] = set()
        failures_in_a_row = 0
        while queue:
            request = queue.popleft()
            if (key := _identity(request)) in seen:
                continue
            seen.add(key)
            if (stop := self._why_stop(len(seen), failures_in_a_row)) is not None:
                self._note(request, *stop)
                continue
            code, answer = self._ask(request)
            failures_in_a_row = failures_in_a_row + 1 if code in RETRYABLE else 0
            if answer is not None:
                queue.extendleft(reversed(self._next_requests(request, answer)))

    def _why_stop(self, asked: int, failures_in_a_row: int) -> tuple[OutcomeCode, str] | None:
        limit = self._run.client.limits.requests_per_source
        if asked > limit:
            return OutcomeCode.REQUEST_LIMIT, f"{OutcomeCode.REQUEST_LIMIT.sentence} ({limit})"
        if failures_in_a_row >= GIVE_UP_AFTER:
            return OutcomeCode.GIVEN_UP, f"not asked, because {failures_in_a_row} requests before it failed"
        if self._run.stopped.is_set():
            return OutcomeCode.GIVEN_UP, "not asked: the refresh was interrupted"
        if time.monotonic() >= self._deadline:
            limit_seconds = self._deadline - self._began
            return OutcomeCode.SOURCE_TIMEOUT, f"not asked: the source's {limit_seconds:g} s are used up"
        return None

    def _next_requests(self, request: Request, answer: Answer) -> list[Request]:
        try:
            if self._config.paging is not None:
                following = next_page(request, answer, self._config.paging)
                return [following] if following else []
            if hasattr(self._module, "next_requests"):
                return list(self._module.next_requests(answer, self._config))
            return []
        except Exception as error:  # an answer may be anything
            self._source_error = self._source_error or self._told("paging", error)
            return []

    def _ask(self, template: Request) -> tuple[OutcomeCode, Answer | None]:
        """Ask one request and keep what came of it; the answer when a reader may read it."""
        try:
            request = self._secrets.fill(template)
        except MissingKeyError as error:
            self._note(template, OutcomeCode.NEEDS_KEY, f"needs a key: set {error.name}")
            return OutcomeCode.NEEDS_KEY, None
        if (refusal := self._run.client.refusal(request.url, self._rules(None))) is not None:
            self._note(template, OutcomeCode.HOST_REFUSED, f"{OutcomeCode.HOST_REFUSED.sentence}: {refusal}")
            return OutcomeCode.HOST_REFUSED, None
        facts = _facts_of(template, self._config)
        rules = self._rules(facts)
        if urlsplit(request.url).hostname not in self._config.api_hosts:
            verdict = self._robots_verdict(request, rules)
            if verdict.code is not OutcomeCode.OK:
                self._note(template, verdict.code, verdict.detail)
                return verdict.code, None
            rules = replace(rules, spacing_seconds=max(rules.spacing_seconds, verdict.crawl_delay_seconds))
        earlier = _earlier(self._previous.get(self._key(request)))
        if earlier is not None:
            rules = replace(rules, validators=earlier.validators)
        fetched = self._run.client.fetch(request, rules)
        return self._keep(request, fetched, earlier)

    def _rules(self, facts: RequestFacts | None) -> Rules:
        return Rules(
            source=self._config.name,
            allowed_hosts=self._config.allowed_hosts,
            secrets=self._secrets,
            deadline=self._deadline,
            body_bytes=min(self._config.max_body_bytes, self._run.client.limits.body_bytes),
            content_types=facts.content_types if facts else (),
            spacing_seconds=self._config.spacing_seconds,
        )

    def _robots_verdict(self, request: Request, rules: Rules) -> Verdict:
        limit = self._run.client.limits.robots_bytes
        return self._run.robots.verdict(
            request.url, replace(rules, body_bytes=limit, content_types=(), truncate=True)
        )

    def _keep(
        self, request: Request, fetched: Fetched, earlier: "_Earlier | None"
    ) -> tuple[OutcomeCode, Answer | None]:
        """Archive what came of a request, without what must not be stored."""
        code, error, body, redacted = fetched.code, fetched.error, fetched.body, False
        status, headers, since = fetched.status, fetched.headers, None
        if code is OutcomeCode.NOT_MODIFIED and earlier is not None:
            status, headers, body, since = 200, earlier.entry.headers, earlier.body, earlier.since
        elif body:
            try:
                clean = self._module.redact(body) if hasattr(self._module, "redact") else body
                clean = self._secrets.redact_bytes(clean)
                redacted, body = clean != body, clean
            except Exception as broken:  # the source's own code; an unredacted body is never kept
                body, redacted = None, True
                if code is OutcomeCode.OK:
                    code, error = OutcomeCode.REDACTION_FAILED, self._told("redact", broken)
        method, url, body_sha256 = self._key(request)
        entry = self._archive().add(
            Entry(
                method=method,
                url=url,
                body_sha256=body_sha256,
                status=status,
                headers=headers,
                observed_at=fetched.observed_at,
                duration_seconds=fetched.duration_seconds,
                retries=fetched.retries,
                outcome=code.value,
                error=error,
                final_url=fetched.final_url if fetched.final_url != url else None,
                redacted=redacted,
                not_modified_since=since,
            ),
            body,
        )
        self._record(replace(request_outcome(entry, code), status_code=fetched.status))
        if not code.usable or body is None or entry.sha256 is None:
            return code, None
        return code, Answer(url, body, fetched.observed_at, entry.sha256, 200, entry.headers)

    def _archive(self) -> CaptureWriter:
        """The capture that this visit writes, begun with the first request that was really sent."""
        if self._writer is None:
            replay = self._run.client.replay
            self._writer = self._run.archive.start(
                self._config.name, self._run.day, replayed_from=replay.base_url if replay else None
            )
        return self._writer

    def _key(self, request: Request) -> tuple[str, str, str | None]:
        """What tells requests apart, without keys: method, URL, SHA-256 of the body."""
        body = None if request.body is None else sha256_of(self._secrets.redact_bytes(request.body))
        return request.method, self._secrets.redact(request.url), body

    def _note(self, request: Request, code: OutcomeCode, error: str) -> None:
        """Record a request that was not sent."""
        url, error = self._secrets.redact(request.url), self._secrets.redact(error)
        self._record(RequestOutcome(url=url, method=request.method, outcome=code, error=error))

    def _record(self, outcome: RequestOutcome) -> None:
        self._outcomes.append(outcome)
        self._run.tell(self._config.name, outcome)


@dataclass(frozen=True, slots=True)
class _Earlier:
    """The last archived answer to a request, whose host sent validators with it."""

    entry: Entry
    body: bytes
    since: str

    @property
    def validators(self) -> dict[str, str]:
        """The conditional headers of RFC 9110 13.1 that ask whether this answer still stands."""
        pairs = {"if-none-match": "etag", "if-modified-since": "last-modified"}
        return {ask: self.entry.headers[said] for ask, said in pairs.items() if said in self.entry.headers}


def _previous_answers(
    archive: Archive, source: str, *, replayed: bool
) -> dict[tuple[str, str, str | None], tuple[Capture, Entry]]:
    """The answers of the source's last capture that can be asked for conditionally. Those of a replay serve
    replays only."""
    capture = archive.latest_capture(source)
    if capture is None or (capture.replayed_from is not None) != replayed:
        return {}
    return {
        (entry.method, entry.url, entry.body_sha256): (capture, entry)
        for entry in archive.entries(capture)
        if entry.usable and {"etag", "last-modified"} & set(entry.headers)
    }


def _earlier(found: tuple[Capture, Entry] | None) -> _Earlier | None:
    """An earlier answer with its body; None when there is none or it is damaged, and so is asked for anew."""
    if found is None:
        return None
    capture, entry = found
    try:
        body = read_body(capture.path, entry)
    except PagesError:
        return None
    return _Earlier(entry, body, entry.not_modified_since or f"{capture.day}/{capture.capture_id}")


def _identity(request: Request) -> tuple[str, str, bytes | None]:
    return request.method, request.url, request.body


def _facts_of(request: Request, config: SourceConfig) -> RequestFacts | None:
    """The yaml's request that speaks for this one: the same address, else the same host and the longest
    common beginning (a further page, a query per GPU)."""
    same_host = [facts for facts in config.requests if facts.host == (urlsplit(request.url).hostname or "")]
    return max(same_host, key=lambda facts: _shared_length(facts.url, request.url), default=None)


def _shared_length(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _key_names(config: SourceConfig) -> frozenset[str]:
    """The variables that the source may put into its requests."""
    texts = [
        text
        for facts in config.requests
        for text in (facts.url, json.dumps(facts.json_body), *facts.headers.values())
    ]
    return frozenset(config.key_variables).union(*(Secrets.names_in(text) for text in texts))
