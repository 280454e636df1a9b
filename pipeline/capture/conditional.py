"""The answers of a source's last capture, which a host may be asked to confirm rather than to send again."""

from dataclasses import dataclass, replace

from pipeline.capture.archive import Archive
from pipeline.capture.http.response import Response
from pipeline.capture.index import PagesError, read_body
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


class EarlierAnswers:
    """The answers of a source's last capture that can be asked for conditionally. Those of a replay are used
    in replays only."""

    def __init__(self, archive: Archive, source: str, *, replayed: bool) -> None:
        self._archive = archive
        self._capture = archive.latest_capture(source)
        self._entries: dict[str, Entry] = {}
        if self._capture is not None and (self._capture.replayed_from is not None) == replayed:
            self._entries = {
                entry.key: entry
                for entry in self._capture.entries
                if entry.usable and any(name in entry.headers for name in _VALIDATORS.values())
            }

    def find(self, key: str, *, keyed: bool) -> EarlierAnswer | None:
        """Return the answer to a request (see request_key), sent with a key of the user's or without one as
        ``keyed`` says; None when there is none or it is damaged, and is therefore asked for again."""
        entry = self._entries.get(key)
        if self._capture is None or entry is None or entry.keyed != keyed:
            return None
        try:
            return EarlierAnswer(entry, read_body(self._archive.folder(self._capture), entry))
        except PagesError:
            return None
