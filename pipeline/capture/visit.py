"""Visits to all sources: which may be asked, which can be visited in parallel, and their first requests."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from types import ModuleType

from pipeline.capture.archive import Archive, CaptureWriter
from pipeline.capture.http.client import Client
from pipeline.capture.http.robots import RobotsRules
from pipeline.capture.http.secrets import Secrets, placeholders
from pipeline.capture.permissions import read_choices, why_off
from pipeline.capture.source_visit import Run, SourceVisit
from pipeline.catalog.source_config import RequestFacts, SourceConfig
from pipeline.contracts.capture import Capture, CaptureStatus
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.listing import Request
from pipeline.contracts.progress import Progress, Step, no_progress
from pipeline.home.disk import disk_error_text
from pipeline.home.paths import Home
from pipeline.sources import source_module

MAX_PARALLEL = 8
"""Maximum number of sources visited at the same time."""


def capture_all(
    configs: Iterable[SourceConfig],
    *,
    environment: Mapping[str, str],
    day: date,
    archive: Archive,
    client: Client,
    progress: Progress = no_progress,
    module_of: Callable[[str], ModuleType] = source_module,
) -> dict[str, Capture]:
    """Capture sources in parallel if they use different hosts, and one after another if they share a host.

    A failure of the network, a host or a source's code is recorded in that source's capture and affects no
    other source. Captures are returned in the order of ``configs``. A replay server on another machine gets
    no keys over plain http. Raises GpufareError for a day other than today, except in a replay.
    """
    check_day(day, client)
    chosen = list(configs)
    run = Run(
        _environment_to_send(environment, chosen, client, progress),
        day,
        archive,
        client,
        RobotsRules(client),
        progress,
        read_choices(Home(archive.root.parent)),
    )

    def capture_group(group: list[SourceConfig]) -> list[Capture]:
        return [_capture(config, module_of, run) for config in group]

    with ThreadPoolExecutor(max_workers=MAX_PARALLEL, thread_name_prefix="capture") as pool:
        try:
            groups = list(pool.map(capture_group, sharing_hosts(chosen)))
        except BaseException:  # Ctrl-C: each visit ends after its current request
            run.stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    captures = {capture.source: capture for group in groups for capture in group}
    return {config.name: captures[config.name] for config in chosen}


def check_day(day: date, client: Client) -> None:
    """Raise GpufareError if ``day`` is not today (UTC) and the client requests live pages."""
    today = datetime.now(UTC).date()
    if client.replay is None and day != today:
        when = "past" if day < today else "in the future"
        raise GpufareError(
            f"{day} is {when}: a live price page shows today's prices ({today} UTC) and is never filed under "
            "another day; read the archive of that day, or replay saved pages with --pages"
        )


def _environment_to_send(
    environment: Mapping[str, str], configs: list[SourceConfig], client: Client, progress: Progress
) -> Mapping[str, str]:
    """Return the environment, with placeholders replacing keys that others on the network could read."""
    if client.replay is None or client.replay.may_have_keys:
        return environment
    names = {name for config in configs for name in config.key_variables}
    if kept_back := sorted(filter(environment.get, names)):
        progress(
            f"{client.replay.base_url} is plain http on another machine: keys are not sent to it, and "
            f"its requests have placeholders instead ({', '.join(kept_back)}); use https or a server on this "
            "machine to send them"
        )
    return {**environment, **placeholders(environment, names)}


def sharing_hosts(configs: list[SourceConfig]) -> list[list[SourceConfig]]:
    """Return the sources in groups such that no two groups share a host, whatever the port."""
    groups: list[tuple[frozenset[str], list[SourceConfig]]] = []
    for config in configs:
        names = frozenset(host.partition(":")[0] for host in config.allowed_hosts)
        touching = [group for group in groups if group[0] & names]
        groups = [group for group in groups if not group[0] & names]
        members = [member for group in touching for member in group[1]]
        groups.append((names.union(*(group[0] for group in touching)), [*members, config]))
    return [members for _, members in groups]


def _capture(config: SourceConfig, module_of: Callable[[str], ModuleType], run: Run) -> Capture:
    """Visit a source, unless it is retired or not permitted, and finish its capture."""
    replay = run.client.replay
    try:
        writer = run.archive.start(config.name, run.day, replayed_from=replay.base_url if replay else None)
        if config.disabled is not None:
            capture = writer.finish("disabled", config.disabled)
        elif not replay and (off := why_off(config, run.choices, run.environment)) is not None:
            capture = writer.finish("needs_permission", off)
        else:
            capture = writer.finish(*_visited(config, module_of, run, writer))
    except Exception as error:  # for example, the archive cannot be written
        reason = _reason_of(error, run)
        capture = Capture(source=config.name, day=run.day, capture_id=None, status="failed", error=reason)
    seconds = f"{capture.duration_seconds:.1f} s"
    run.progress(Step(f"{config.name}: {capture.status}, {capture.bytes:,} bytes in {seconds}"))
    return capture


def _visited(
    config: SourceConfig, module_of: Callable[[str], ModuleType], run: Run, writer: CaptureWriter
) -> tuple[CaptureStatus | None, str | None]:
    """Visit a source. Return the capture's status (None if its entries determine it) and the source's error.

    Never raises: one broken source never stops the others.
    """
    secrets = Secrets(run.environment, config.key_variables)
    try:
        module = module_of(config.name)
        visit = SourceVisit(config, module, run, writer, secrets)
        requests: list[Request] = []
        with visit.noting_errors_in("requests"):
            requests = first_requests(config, module, run.environment)
        if not requests:
            if not visit.error and (missing := config.missing_keys(run.environment)):
                return "needs_key", f"needs a key: set {', '.join(missing)}"
            return "failed", visit.error or "the source names no request"
        visit.work_through(requests)
        return None, visit.error
    except Exception as error:
        return "failed", secrets.redact(_reason_of(error, run))


def _reason_of(error: Exception, run: Run) -> str:
    if isinstance(error, OSError):
        return f"the archive cannot be written: {disk_error_text(error, Home(run.archive.root.parent))}"
    return f"{type(error).__name__}: {error}"


def first_requests(config: SourceConfig, module: ModuleType, environment: Mapping[str, str]) -> list[Request]:
    """Return a visit's first requests, before keys are filled in: from the module's ``requests``, or else
    from the yaml. A module learns which keys are set, and nothing else about the environment."""
    keys = placeholders(environment, config.key_variables)
    if hasattr(module, "requests"):
        return list(module.requests(config, keys))
    has_key = config.has_key(environment)
    wanted = [facts for facts in config.requests if has_key or not facts.only_with_key]
    return [_request_of(facts, keys) for facts in wanted]


def _request_of(facts: RequestFacts, keys: Collection[str]) -> Request:
    with_key = {
        name: value
        for name, value in facts.key_headers.items()
        if all(key in keys for key in Secrets.names_in(value))
    }
    headers = {**facts.headers, **with_key}
    if facts.json_body is None:
        return Request(facts.url, facts.method, headers, optional=facts.optional)
    body = json.dumps(facts.json_body, separators=(",", ":"), ensure_ascii=False).encode()
    headers = {"content-type": "application/json", **{k.lower(): v for k, v in headers.items()}}
    return Request(facts.url, facts.method, headers, body, facts.optional)
