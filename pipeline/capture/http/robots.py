"""robots.txt, asked once per host and run, kept for a day, honoured (RFC 9309).

2xx: its rules hold. 4xx, or a redirect that leads away: there are none. 5xx or no answer: nothing is asked.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from protego import Protego

from pipeline.capture.http.client import ROBOT_NAME, Client, Fetched, Rules
from pipeline.capture.outcome import OutcomeCode
from pipeline.contracts.listing import Request

KEPT_FOR = timedelta(hours=24)

_NO_RULES = frozenset(
    {
        OutcomeCode.HTTP_403,
        OutcomeCode.HTTP_404,
        OutcomeCode.HTTP_429,
        OutcomeCode.HTTP_4XX,
        OutcomeCode.REDIRECT_REFUSED,
        OutcomeCode.TOO_MANY_REDIRECTS,
    }
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a URL may be asked: OK, or why not. ``crawl_delay_seconds`` is what the host wishes."""

    code: OutcomeCode
    detail: str = ""
    crawl_delay_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Robots:
    code: OutcomeCode
    text: str
    detail: str = ""


class RobotsRules:
    """The robots.txt of every host of one run. ``folder`` keeps them between runs; None keeps nothing, as
    in a replay, whose answers must not be taken for the host's own."""

    def __init__(self, client: Client, folder: Path | None) -> None:
        self._client = client
        self._folder = folder
        self._known: dict[str, _Robots] = {}

    def verdict(self, url: str, rules: Rules) -> Verdict:
        """Whether the URL may be asked, by the rules that its host gives to gpufare or to everyone."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        robots = self._known.get(origin) or self._kept(origin) or self._fetched(origin, rules)
        self._known[origin] = robots
        if robots.code is not OutcomeCode.OK:
            return Verdict(robots.code, robots.detail)
        parsed = Protego.parse(robots.text)
        if not parsed.can_fetch(url, ROBOT_NAME):
            return Verdict(
                OutcomeCode.ROBOTS_DISALLOWED, f"{origin}/robots.txt disallows {parts.path or '/'}"
            )
        return Verdict(OutcomeCode.OK, crawl_delay_seconds=float(parsed.crawl_delay(ROBOT_NAME) or 0.0))

    def _fetched(self, origin: str, rules: Rules) -> _Robots:
        fetched = self._client.fetch(Request(f"{origin}/robots.txt"), rules)
        if fetched.code is OutcomeCode.OK:
            robots = _Robots(OutcomeCode.OK, (fetched.body or b"").decode("utf-8", "replace"))
        elif fetched.code in _NO_RULES:
            robots = _Robots(OutcomeCode.OK, "")
        else:
            return _Robots(
                fetched.code, "", f"robots.txt could not be read, so nothing is asked: {fetched.error}"
            )
        self._keep(origin, robots, fetched)
        return robots

    def _path(self, origin: str) -> Path | None:
        return self._folder / f"{urlsplit(origin).netloc.replace(':', '_')}.json" if self._folder else None

    def _kept(self, origin: str) -> _Robots | None:
        path = self._path(origin)
        try:
            kept = json.loads(path.read_text(encoding="utf-8")) if path else None
            if kept and datetime.now(UTC) - datetime.fromisoformat(kept["fetched_at"]) < KEPT_FOR:
                return _Robots(OutcomeCode.OK, str(kept["text"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None  # asked again: a copy that cannot be read is no rule
        return None

    def _keep(self, origin: str, robots: _Robots, fetched: Fetched) -> None:
        if (path := self._path(origin)) is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"origin": origin, "fetched_at": fetched.observed_at.isoformat(), "text": robots.text}
        temporary = path.with_suffix(".writing")
        temporary.write_text(json.dumps(content), encoding="utf-8")
        temporary.replace(path)
