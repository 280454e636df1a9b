"""The answers of the latest capture of a source, which a host may be asked to confirm, not to send again."""

from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.capture.http.response import Response
from pipeline.capture.index import PagesError, read_body
from pipeline.contracts.capture import Capture
from pipeline.contracts.request import Entry

_VALIDATORS = {"if-none-match": "etag", "if-modified-since": "last-modified"}
"""The conditional headers of RFC 9110 13.1 by the headers of an answer that they repeat."""


@dataclass(frozen=True, slots=True)
class EarlierAnswer:
    """An archived answer whose host sent validators."""

    entry: Entry
    body: bytes

    @property
    def validators(self) -> dict[str, str]:
        """The headers that ask whether this answer is still current."""
        headers = self.entry.headers
        return {ask: headers[answered] for ask, answered in _VALIDATORS.items() if answered in headers}

    def as_answered(self, not_modified: Response) -> Response:
        """Return the response that a 304 stands for: this body, as of now."""
        return replace(
            not_modified,
            status=200,
            headers=self.entry.headers,
            body=self.body,
            warning=self.entry.warning,
        )


def earlier_answer(folder: Path, latest: Capture, key: str, *, keyed: bool) -> EarlierAnswer | None:
    """Return the ``latest`` capture's answer to a request (see request_key), sent with a key of the user's or
    without one as ``keyed`` says; None when it has none, or a damaged one, which is asked for again."""
    same = (entry for entry in latest.entries if entry.usable and entry.key == key and entry.keyed == keyed)
    entry = next(same, None)
    if entry is None or not any(name in entry.headers for name in _VALIDATORS.values()):
        return None
    try:
        return EarlierAnswer(entry, read_body(folder, entry))
    except PagesError:
        return None
