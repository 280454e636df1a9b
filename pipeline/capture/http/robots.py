"""robots.txt: fetched once per host and run, cached for a day, honoured (RFC 9309).

2xx: its rules apply. 4xx, or a redirect to another host: there are none. 5xx or no answer: nothing is sent.
429, which the RFC counts among the 4xx, is taken like 5xx: "not now" does not mean "no rules".
"""

import json
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from protego import Protego

from pipeline.capture.http.client import ROBOT_NAME, Client, Response, Rules
from pipeline.contracts.capture import OutcomeCode
from pipeline.contracts.listing import Request
from pipeline.contracts.progress import Progress, no_progress
from pipeline.home.disk import disk_error_text, naming
from pipeline.home.paths import Home

CACHED_FOR = timedelta(hours=24)

LONGEST_WAIT_SECONDS = 30.0
"""A host that asks for a longer wait before it gives its robots.txt is not asked in this run: the wait would
take the time of its pages."""

_NO_RULES = frozenset(
    {
        OutcomeCode.HTTP_403,
        OutcomeCode.HTTP_404,
        OutcomeCode.HTTP_4XX,
        OutcomeCode.REDIRECT_REFUSED,
        OutcomeCode.TOO_MANY_REDIRECTS,
    }
)


@dataclass(frozen=True, slots=True)
class RobotsDecision:
    """Whether a URL may be asked: OK, or why not. ``crawl_delay_seconds`` is what the host asks for."""

    code: OutcomeCode
    detail: str = ""
    crawl_delay_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Robots:
    code: OutcomeCode
    text: str
    detail: str = ""


class RobotsRules:
    """The robots.txt of every host of one run. ``folder`` caches them between runs; None caches nothing, as
    in a replay, whose answers must not be mistaken for the host's."""

    def __init__(self, client: Client, folder: Path | None, progress: Progress = no_progress) -> None:
        self._client = client
        self._folder = folder
        self._progress = progress
        self._known: dict[str, _Robots] = {}

    def decide(self, url: str, rules: Rules) -> RobotsDecision:
        """Whether the URL may be asked, by the rules that its host has for gpufare or for everyone."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        robots = self._known.get(origin) or self._cached(origin) or self._fetched(origin, rules)
        self._known[origin] = robots
        if robots.code is not OutcomeCode.OK:
            return RobotsDecision(robots.code, robots.detail)
        parsed = Protego.parse(robots.text)
        if not parsed.can_fetch(url, ROBOT_NAME):
            return RobotsDecision(
                OutcomeCode.ROBOTS_DISALLOWED, f"{origin}/robots.txt disallows {parts.path or '/'}"
            )
        return RobotsDecision(
            OutcomeCode.OK, crawl_delay_seconds=float(parsed.crawl_delay(ROBOT_NAME) or 0.0)
        )

    def _fetched(self, origin: str, rules: Rules) -> _Robots:
        request = Request(f"{origin}/robots.txt")
        response = self._client.fetch(request, replace(rules, longest_wait_seconds=LONGEST_WAIT_SECONDS))
        if response.code is OutcomeCode.OK:
            robots = _Robots(OutcomeCode.OK, (response.body or b"").decode("utf-8", "replace"))
        elif response.code in _NO_RULES:
            robots = _Robots(OutcomeCode.OK, "")
        else:
            return _Robots(
                response.code, "", f"robots.txt could not be read, so no request was sent: {response.error}"
            )
        self._cache(origin, robots, response)
        return robots

    def _path(self, origin: str) -> Path | None:
        return self._folder / f"{urlsplit(origin).netloc.replace(':', '_')}.json" if self._folder else None

    def _cached(self, origin: str) -> _Robots | None:
        path = self._path(origin)
        try:
            cached = json.loads(path.read_text(encoding="utf-8")) if path else None
            if cached and datetime.now(UTC) - datetime.fromisoformat(cached["fetched_at"]) < CACHED_FOR:
                return _Robots(OutcomeCode.OK, str(cached["text"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None  # fetched again: a copy that cannot be read is no rule
        return None

    def _cache(self, origin: str, robots: _Robots, response: Response) -> None:
        if (path := self._path(origin)) is None:
            return
        content = {"origin": origin, "fetched_at": response.observed_at.isoformat(), "text": robots.text}
        temporary = path.with_name(f".{path.name}.{os.getpid()}.writing")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with naming(path):
                temporary.write_text(json.dumps(content), encoding="utf-8")
                temporary.replace(path)
        except OSError as error:  # it is read again tomorrow; today's pages do not depend on it
            reason = disk_error_text(error, Home(path.parents[1]))
            self._progress(f"robots.txt of {origin} is not cached: {reason}")
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
