"""robots.txt: fetched once per host and run, and honoured (RFC 9309).

If robots.txt returns 2xx, its rules apply; if it returns 4xx or a redirect to another host, the host has no
rules; if it returns 5xx or nothing at all, no request is sent. 429, which the RFC counts among the 4xx, is
treated like 5xx: "not now" does not mean "no rules".
"""

from dataclasses import replace
from urllib.parse import urlsplit

from protego import Protego

from pipeline.capture.http.client import ROBOT_NAME, Client, Rules
from pipeline.capture.http.response import RequestFailedError, Response
from pipeline.contracts.listing import Request
from pipeline.contracts.outcome import OutcomeCode

LONGEST_WAIT_SECONDS = 30.0
"""If a host asks for a longer wait for robots.txt, it is skipped: no time would be left for its pages."""

_NO_RULES = frozenset(
    {
        OutcomeCode.HTTP_403,
        OutcomeCode.HTTP_404,
        OutcomeCode.HTTP_4XX,
        OutcomeCode.REDIRECT_REFUSED,
        OutcomeCode.TOO_MANY_REDIRECTS,
    }
)


class RobotsRules:
    """The robots.txt rules of all hosts in one run."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, Protego | Response] = {}

    def crawl_delay_seconds(self, url: str, rules: Rules) -> float:
        """Return the pause that a URL's host asks of gpufare, or of every robot. ``rules`` are the rules for
        requesting the URL. Raises RequestFailedError if the URL may not be requested."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        robots = self._known.get(origin) or self._fetched(origin, rules)
        self._known[origin] = robots
        if isinstance(robots, Response):
            detail = f"robots.txt could not be read, so no request was sent: {robots.error}"
            raise RequestFailedError(robots.code, detail)
        if not robots.can_fetch(url, ROBOT_NAME):
            detail = f"{parts.path or '/'} in {origin}/robots.txt"
            raise RequestFailedError(OutcomeCode.ROBOTS_DISALLOWED, detail)
        return float(robots.crawl_delay(ROBOT_NAME) or 0.0)

    def _fetched(self, origin: str, rules: Rules) -> Protego | Response:
        """Return the rules of a host, or, if the host must not be asked, the failed response."""
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
        return Protego.parse("") if response.code in _NO_RULES else response
