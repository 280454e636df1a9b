"""Visiting sources, one or all: what to ask, in which order, until when, and where answers are archived."""

import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from os.path import commonprefix
from threading import Event
from types import ModuleType

from pipeline.capture.archive import Archive, CaptureWriter
from pipeline.capture.http.client import LONGEST_ERROR, Client, Response, Rules
from pipeline.capture.http.robots import RobotsDecision, RobotsRules
from pipeline.capture.http.secrets import MissingKeyError, Secrets, WatchedEnvironment, without_keys
from pipeline.capture.index import PagesError, read_body, sha256_of
from pipeline.capture.permissions import Choices, read_choices, why_off
from pipeline.catalog.source_config import RequestFacts, SourceConfig
from pipeline.contracts.capture import (
    NO_PAGE_HEADER,
    Capture,
    CaptureStatus,
    Entry,
    OutcomeCode,
    request_key,
)
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.hosts import host_of, same_origin
from pipeline.contracts.listing import Answer, Request
from pipeline.contracts.progress import Progress, Step, no_progress
from pipeline.home.disk import disk_error_text
from pipeline.home.paths import Home
from pipeline.parsing.paging import next_page
from pipeline.sources import source_module

GIVE_UP_AFTER = 3
"""So many requests in a row that end in a transport error, 429 or 5xx end the visit."""

UNSENT_LISTED = 20
"""So many requests that were not sent, because the visit ended before them, have an entry each."""

MAX_PARALLEL = 8
"""So many sources are asked at the same time."""


class PastDayError(GpufareError):
    """A live capture was asked for a day other than today."""


def check_day(day: date, client: Client) -> None:
    """Raises PastDayError when ``day`` is not today (UTC) and the client asks live pages."""
    today = datetime.now(UTC).date()
    if client.replay is None and day != today:
        when = "past" if day < today else "in the future"
        raise PastDayError(
            f"{day} is {when}: a live price page shows today's prices ({today} UTC) and is never filed under "
            "another day; read the archive of that day, or replay saved pages with --pages"
        )


def first_requests(config: SourceConfig, module: ModuleType, environment: Mapping[str, str]) -> list[Request]:
    """What a visit begins with: the module's ``requests``, else the yaml's, with ``${NAME}`` unfilled."""
    if hasattr(module, "requests"):
        return list(module.requests(config, environment))
    has_key = config.has_key(environment)
    wanted = [facts for facts in config.requests if has_key or not facts.only_with_key]
    return [_request_of(facts, environment) for facts in wanted]


def _request_of(facts: RequestFacts, environment: Mapping[str, str]) -> Request:
    with_key = {
        name: value
        for name, value in facts.key_headers.items()
        if all(environment.get(key) for key in Secrets.names_in(value))
    }
    headers = {**facts.headers, **with_key}
    if facts.json_body is None:
        return Request(facts.url, facts.method, headers, optional=facts.optional)
    body = json.dumps(facts.json_body, separators=(",", ":"), ensure_ascii=False).encode()
    headers = {"content-type": "application/json", **{k.lower(): v for k, v in headers.items()}}
    return Request(facts.url, facts.method, headers, body, facts.optional)


def capture_all(
    configs: Iterable[SourceConfig],
    *,
    environment: Mapping[str, str],
    day: date,
    archive: Archive,
    client: Client,
    progress: Progress = no_progress,
    module_of: Callable[[str], ModuleType] = source_module,
    max_workers: int = MAX_PARALLEL,
) -> dict[str, Capture]:
    """Capture sources, in parallel where they ask different hosts, one after another where they share one.

    Whatever goes wrong, in the network, at the host or in the source's code, is in that source's capture, and
    affects no other. Captures come in the order of ``configs``. A replay server on another machine gets no
    keys over plain http. Raises PastDayError for a day other than today, unless the client replays.
    """
    check_day(day, client)
    chosen = list(configs)
    robots = RobotsRules(client, None if client.replay else archive.root.parent / "robots", progress)
    if client.replay is not None and not client.replay.may_have_keys:
        names = {name for config in chosen for name in _key_names(config)}
        _say_that_keys_are_kept_back(client.replay.base_url, sorted(filter(environment.get, names)), progress)
        environment = without_keys(environment, names)
    choices = read_choices(Home(archive.root.parent))
    run = _Run(environment, day, archive, client, robots, progress, choices)

    def capture_group(group: list[SourceConfig]) -> list[Capture]:
        return [_capture(config, module_of, run) for config in group]

    with ThreadPoolExecutor(max_workers=max_workers, thread_name_prefix="capture") as pool:
        try:
            groups = list(pool.map(capture_group, sharing_hosts(chosen)))
        except BaseException:  # Ctrl-C: each visit ends after its present request
            run.stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    captures = {capture.source: capture for group in groups for capture in group}
    return {config.name: captures[config.name] for config in chosen}


def _say_that_keys_are_kept_back(base_url: str, names: list[str], progress: Progress) -> None:
    if names:
        progress(
            f"{base_url} is plain http on another machine: keys are not sent to it, its requests have "
            f"placeholders instead ({', '.join(names)}); use https or a server on this machine to send them"
        )


@dataclass(frozen=True, slots=True)
class _Run:
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


def sharing_hosts(configs: list[SourceConfig]) -> list[list[SourceConfig]]:
    """Groups of sources; no two groups share a host."""
    groups: list[tuple[frozenset[str], list[SourceConfig]]] = []
    for config in configs:
        touching = [group for group in groups if group[0] & config.allowed_hosts]
        groups = [group for group in groups if not group[0] & config.allowed_hosts]
        hosts = config.allowed_hosts.union(*(group[0] for group in touching))
        groups.append((hosts, [member for group in touching for member in group[1]] + [config]))
    return [members for _, members in groups]


def _capture(config: SourceConfig, module_of: Callable[[str], ModuleType], run: _Run) -> Capture:
    replay = run.client.replay
    try:
        writer = run.archive.start(config.name, run.day, replayed_from=replay.base_url if replay else None)
        capture = _archived(config, module_of, run, writer)
    except Exception as error:  # the archive cannot be written
        reason = _reason_of(error, run)
        capture = Capture(source=config.name, day=run.day, capture_id=None, status="failed", error=reason)
    seconds = f"{capture.duration_seconds:.1f} s"
    run.progress(Step(f"{config.name}: {capture.status}, {capture.bytes:,} bytes in {seconds}"))
    return capture


def _archived(
    config: SourceConfig, module_of: Callable[[str], ModuleType], run: _Run, writer: CaptureWriter
) -> Capture:
    if config.disabled is not None:
        return writer.finish("disabled", config.disabled)
    if run.client.replay is None and (off := why_off(config, run.choices, run.environment)) is not None:
        return writer.finish("needs_permission", off)
    environment = WatchedEnvironment(run.environment)
    secrets = Secrets(environment, _key_names(config))
    try:
        return _Visit(config, module_of(config.name), run, writer, environment, secrets).capture()
    except Exception as error:  # whatever broke it: one broken source never stops the rest
        return writer.finish("failed", secrets.redact(_reason_of(error, run)))


def _reason_of(error: Exception, run: _Run) -> str:
    if isinstance(error, OSError):
        return f"the archive cannot be written: {disk_error_text(error, Home(run.archive.root.parent))}"
    return f"{type(error).__name__}: {error}"


class _Visit:
    """One source's requests, from the first to the last."""

    def __init__(
        self,
        config: SourceConfig,
        module: ModuleType,
        run: _Run,
        writer: CaptureWriter,
        environment: WatchedEnvironment,
        secrets: Secrets,
    ) -> None:
        self._config = config
        self._module = module
        self._run = run
        self._writer = writer
        self._began = time.monotonic()
        self._deadline = self._began + min(config.time_limit_seconds, run.client.limits.source_seconds)
        self._environment = environment
        self._secrets = secrets
        self._previous = _previous_answers(run.archive, config.name, replayed=run.client.replay is not None)
        self._source_error: str | None = None

    def capture(self) -> Capture:
        """Make the visit."""
        try:
            requests = first_requests(self._config, self._module, self._environment)
            # Optional ones come last: their failures never end a visit before the others were asked.
            queue = deque(sorted(requests, key=lambda request: request.optional))
        except Exception as error:  # the source's own code
            if isinstance(error, KeyError) and error.args[0] in self._environment.read:
                return self._writer.finish("needs_key", f"needs a key: set {error.args[0]}")
            return self._writer.finish("failed", self._failure_in("requests", error))
        if not queue:
            return self._writer.finish(*self._why_nothing_to_ask())
        self._work_through(queue)
        return self._writer.finish(error=self._source_error)

    def _why_nothing_to_ask(self) -> tuple[CaptureStatus, str]:
        if missing := self._config.missing_keys(self._environment):
            return "needs_key", f"needs a key: set {', '.join(missing)}"
        return "failed", "the source names no request"

    def _failure_in(self, function: str, error: Exception) -> str:
        text = self._secrets.redact(f"{self._config.name}.{function}: {type(error).__name__}: {error}")
        return text[:LONGEST_ERROR]

    def _work_through(self, queue: deque[Request]) -> None:
        """Ask until the queue is empty; what an answer or a failure leads to comes before the rest."""
        seen: set[tuple[str, str, bytes | None]] = set()
        failures_in_a_row = 0
        while queue:
            request = queue.popleft()
            if (key := _identity(request)) in seen:
                continue
            seen.add(key)
            if (stop := self._why_stop(len(seen), failures_in_a_row)) is not None:
                left = {_identity(each): each for each in queue if _identity(each) not in seen}
                self._add_all_unsent([request, *left.values()], *stop)
                return
            code, following = self._ask(request)
            failures_in_a_row = failures_in_a_row + 1 if code.retryable else 0
            queue.extendleft(reversed([_following(request, each) for each in following]))

    def _add_all_unsent(self, requests: list[Request], code: OutcomeCode, error: str) -> None:
        """Archive that a visit ended before these requests: the first ones, then how many more there were. A
        page may have any number of links; those to optional answers come last, so that none is missed."""
        requests.sort(key=lambda request: request.optional)
        listed = requests[:UNSENT_LISTED]
        for request in listed[:-1]:
            self._add_unsent(request, code, error)
        more = len(requests) - len(listed)
        note = f"; {more} more requests were not asked either" if more else ""
        self._add_unsent(listed[-1], code, error + note, more_unsent=more)

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
            self._source_error = self._source_error or self._failure_in("paging", error)
            return []

    def _retry_requests(self, failed: Answer, code: OutcomeCode) -> list[Request]:
        """What the source asks because a request failed. A host that is busy or was not reached is not asked
        in another way."""
        if not hasattr(self._module, "retry_requests"):
            return []
        try:
            instead = list(self._module.retry_requests(failed, self._config))
        except Exception as error:  # an answer may be anything
            self._source_error = self._source_error or self._failure_in("retry_requests", error)
            return []
        if code.retryable or code is OutcomeCode.GIVEN_UP:
            return [request for request in instead if host_of(request.url) != host_of(failed.url)]
        return instead

    def _ask(self, template: Request) -> tuple[OutcomeCode, list[Request]]:
        """Send one request and archive its outcome; which requests follow from it."""
        try:
            request = self._secrets.fill(template)
        except MissingKeyError as error:
            return self._refused(template, OutcomeCode.NEEDS_KEY, f"needs a key: set {error.name}")
        if (unsent := self._why_unsent(request)) is not None:
            return self._refused(template, *unsent)
        facts = _facts_of(template, self._config)
        rules = self._rules(facts)
        if not self._config.is_api(request.url):
            decision = self._robots_decision(request, rules)
            if decision.code is not OutcomeCode.OK:
                return self._refused(template, decision.code, decision.detail)
            rules = replace(rules, spacing_seconds=max(rules.spacing_seconds, decision.crawl_delay_seconds))
        keyed = request != template or self._secrets.are_in(request)
        earlier = self._earlier(request, keyed)
        if earlier is not None:
            rules = replace(rules, validators=earlier.validators)
        response = self._run.client.fetch(request, rules)
        if response.code is OutcomeCode.HTTP_429:
            self._run.busy_hosts.add(host_of(request.url))
        if self._run.client.replay and request.optional and NO_PAGE_HEADER in response.headers:
            return response.code, []  # the saved pages lack it: no answer of a host
        return self._add(template, request, response, earlier, keyed)

    def _why_unsent(self, request: Request) -> tuple[OutcomeCode, str] | None:
        """Why a request that has its key is not sent; None when it is."""
        if (refusal := self._run.client.refusal(request.url, self._rules(None))) is not None:
            return OutcomeCode.HOST_REFUSED, f"{OutcomeCode.HOST_REFUSED.sentence}: {refusal}"
        if (host := host_of(request.url)) in self._run.busy_hosts:
            return OutcomeCode.GIVEN_UP, f"not asked again in this run: {host} limits requests (429)"
        return None

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

    def _robots_decision(self, request: Request, rules: Rules) -> RobotsDecision:
        limit = self._run.client.limits.robots_bytes
        return self._run.robots.decide(
            request.url, replace(rules, body_bytes=limit, content_types=(), truncate=True)
        )

    def _add(
        self,
        template: Request,
        request: Request,
        response: Response,
        earlier: "_Earlier | None",
        keyed: bool,
    ) -> tuple[OutcomeCode, list[Request]]:
        """Archive a response, without what must not be stored; which requests follow from it."""
        code, error, body, redacted = response.code, response.error, response.body, False
        status, headers, since, warning = response.status, response.headers, None, response.warning
        if code is OutcomeCode.NOT_MODIFIED and earlier is not None:
            status, headers, body, since = 200, earlier.entry.headers, earlier.body, earlier.since
            warning = earlier.entry.warning
        elif body:
            try:
                clean = self._module.redact(body) if hasattr(self._module, "redact") else body
                clean = self._secrets.redact_bytes(clean)
                redacted, body = clean != body, clean
            except Exception as broken:  # the source's own code; an unredacted body is never stored
                body, redacted = None, True
                if code is OutcomeCode.OK:
                    code, error = OutcomeCode.REDACTION_FAILED, self._failure_in("redact", broken)
            if code is OutcomeCode.OK and not body:
                code, error = OutcomeCode.EMPTY_BODY, self._nothing_left(request)
        method, url, body_sha256 = self._key(request)
        sent, instead = self._without_keys(request.body), list[Request]()
        if not (code.usable and body):
            excerpt = body or b""
            instead = self._retry_requests(
                Answer(url, excerpt, response.observed_at, sha256_of(excerpt), status or 0, headers, sent),
                code,
            )
        entry = self._writer.add(
            Entry(
                method=method,
                url=url,
                body_sha256=body_sha256,
                status=status,
                headers=headers,
                observed_at=response.observed_at,
                duration_seconds=response.duration_seconds,
                retries=response.retries,
                outcome=code,
                error=error,
                final_url=response.final_url if response.final_url != url else None,
                redacted=redacted,
                not_modified_since=since,
                optional=request.optional,
                instead=self._keys_of(instead),
                warning=warning,
                keyed=keyed,
            ),
            body,
        )
        if not entry.usable or body is None or entry.sha256 is None:
            return code, instead
        answer = Answer(url, body, response.observed_at, entry.sha256, 200, entry.headers, sent)
        return code, self._next_requests(template, answer)

    def _nothing_left(self, request: Request) -> str:
        url = self._secrets.redact(request.url)
        return f"{OutcomeCode.EMPTY_BODY.sentence}: redact leaves nothing of {url}"[:LONGEST_ERROR]

    def _refused(self, request: Request, code: OutcomeCode, error: str) -> tuple[OutcomeCode, list[Request]]:
        """Archive the outcome of a request that cannot be sent; what is asked instead."""
        failed = Answer(self._key(request)[1], b"", datetime.now(UTC), sha256_of(b""), 0)
        instead = self._retry_requests(failed, code)
        self._add_unsent(request, code, error, self._keys_of(instead))
        return code, instead

    def _keys_of(self, requests: Iterable[Request]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(request_key(*self._key(request)) for request in requests))

    def _add_unsent(
        self,
        request: Request,
        code: OutcomeCode,
        error: str,
        instead: tuple[str, ...] = (),
        more_unsent: int = 0,
    ) -> None:
        """Archive the outcome of a request that was not sent."""
        method, url, body_sha256 = self._key(request)
        self._writer.add(
            Entry(
                method=method,
                url=url,
                body_sha256=body_sha256,
                sent=False,
                status=None,
                outcome=code,
                error=self._secrets.redact(error)[:LONGEST_ERROR],
                optional=request.optional,
                instead=instead,
                more_unsent=more_unsent,
            ),
            None,
        )

    def _key(self, request: Request) -> tuple[str, str, str | None]:
        """What distinguishes requests, without keys: method, URL, SHA-256 of the body."""
        sent = self._without_keys(request.body)
        return request.method, self._secrets.redact(request.url), None if sent is None else sha256_of(sent)

    def _without_keys(self, body: bytes | None) -> bytes | None:
        return None if body is None else self._secrets.redact_bytes(body)

    def _earlier(self, request: Request, keyed: bool) -> "_Earlier | None":
        """The last archived answer to the request, with a key or without one as now; None when there is none
        or it is damaged, and is therefore asked for again."""
        capture, entry = self._previous.get(self._key(request), (None, None))
        if capture is None or entry is None or entry.keyed != keyed:
            return None
        try:
            body = read_body(self._run.archive.folder(capture), entry)
        except PagesError:
            return None
        return _Earlier(entry, body, entry.not_modified_since or f"{capture.day}/{capture.capture_id}")


@dataclass(frozen=True, slots=True)
class _Earlier:
    """The last archived answer to a request, whose host sent validators with it."""

    entry: Entry
    body: bytes
    since: str

    @property
    def validators(self) -> dict[str, str]:
        """The conditional headers of RFC 9110 13.1 that ask whether this answer is still current."""
        names = {"if-none-match": "etag", "if-modified-since": "last-modified"}
        headers = self.entry.headers
        return {ask: headers[answered] for ask, answered in names.items() if answered in headers}


def _previous_answers(
    archive: Archive, source: str, *, replayed: bool
) -> dict[tuple[str, str, str | None], tuple[Capture, Entry]]:
    """The answers of the source's last capture that can be asked for conditionally. Those of a replay are
    used in replays only."""
    capture = archive.latest_capture(source)
    if capture is None or (capture.replayed_from is not None) != replayed:
        return {}
    return {
        (entry.method, entry.url, entry.body_sha256): (capture, entry)
        for entry in capture.entries
        if entry.usable and {"etag", "last-modified"} & set(entry.headers)
    }


def _following(request: Request, following: Request) -> Request:
    """A request that follows from another one: optional if that is, with its keys on the same origin."""
    keyed: dict[str, str] = {}
    if same_origin(following.url, request.url):
        keyed = {name: value for name, value in request.headers.items() if Secrets.names_in(value)}
    headers = {**keyed, **following.headers}
    return replace(following, headers=headers, optional=following.optional or request.optional)


def _identity(request: Request) -> tuple[str, str, bytes | None]:
    return request.method, request.url, request.body


def _facts_of(request: Request, config: SourceConfig) -> RequestFacts | None:
    """The yaml's request that applies to this one: the same address, else the same host and the longest
    common prefix (a further page, a query per GPU)."""
    same_host = [facts for facts in config.requests if facts.host == host_of(request.url)]
    return max(same_host, key=lambda facts: _shared_length(facts.url, request.url), default=None)


def _shared_length(one: str, other: str) -> int:
    return len(commonprefix([one, other]))  # noqa: RUF071 - of characters, not of a path's parts


def _key_names(config: SourceConfig) -> frozenset[str]:
    """The variables that the source may put into its requests."""
    texts = [
        text
        for facts in config.requests
        for text in (
            facts.url,
            json.dumps(facts.json_body),
            *facts.headers.values(),
            *facts.key_headers.values(),
        )
    ]
    return frozenset(config.key_variables).union(*(Secrets.names_in(text) for text in texts))
