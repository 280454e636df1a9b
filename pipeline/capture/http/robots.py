"""robots.txt: fetched once per host and run, and honoured (RFC 9309).

2xx: its rules apply. 4xx, or a redirect to another host: there are none. 5xx or no answer: nothing is sent.
429, which the RFC counts among the 4xx, is taken like 5xx: "not now" does not mean "no rules".
"""

from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from protego import Protego

from pipeline.capture.http.client import ROBOT_NAME, Client, Rules
from pipeline.contracts.listing import Request
from pipeline.contracts.outcome import OutcomeCode

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
class Decision:
    """Whether a URL may be asked: OK, or why not. ``crawl_delay_seconds`` is what the host asks for."""

    code: OutcomeCode
    detail: str = ""
    crawl_delay_seconds: float = 0.0


class RobotsRules:
    """The robots.txt of every host of one run."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, Protego | Decision] = {}

    def decide(self, url: str, rules: Rules) -> Decision:
        """Return whether the URL may be asked, by the rules that its host has for gpufare or for everyone.
        ``rules`` are those of the request for the URL."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        robots = self._known.get(origin) or self._fetched(origin, rules)
        self._known[origin] = robots
        if isinstance(robots, Decision):
            return robots
        if not robots.can_fetch(url, ROBOT_NAME):
            detail = f"{origin}/robots.txt disallows {parts.path or '/'}"
            return Decision(OutcomeCode.ROBOTS_DISALLOWED, detail)
        return Decision(OutcomeCode.OK, crawl_delay_seconds=float(robots.crawl_delay(ROBOT_NAME) or 0.0))

    def _fetched(self, origin: str, rules: Rules) -> Protego | Decision:
        own_rules = replace(
            rules,
            body_bytes=self._client.limits.robots_bytes,
            content_types=(),
            truncate=True,
            longest_wait_seconds=LONGEST_WAIT_SECONDS,
        )
        response = self._client.fetch(Request(f"{origin}/robots.txt"), own_rules)
        if response.code is OutcomeCode.OK:
            return Protego.parse((response.body or b"").decode("utf-8", "replace"))
        if response.code in _NO_RULES:
            return Decision(OutcomeCode.OK)
        detail = f"robots.txt could not be read, so no request was sent: {response.error}"
        return Decision(response.code, detail)
