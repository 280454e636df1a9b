"""One request in a capture and its outcome, as archived."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationInfo, field_validator

from pipeline.contracts.outcome import OutcomeCode


class Entry(BaseModel):
    """One request and its outcome, as archived. ``url`` and ``error`` contain no keys.

    ``file`` is relative to the capture's folder, and None if no body was stored; ``sha256`` and ``bytes``
    describe the stored body, and ``body_sha256`` the request's body. ``sent`` is False for a request that was
    never sent: it was disallowed by robots.txt, refused or given up, or it lacked its key.

    If an ``optional`` request has no answer, the other answers can still be read. ``instead`` contains the
    keys of the requests that replaced this one after it failed; if all of them are answered, they make up for
    the failure. ``warning`` says what was odd about a usable answer. ``more_unsent`` is the number of
    further requests that, for the same reason, were neither sent nor given an entry.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    method: Annotated[str, StringConstraints(to_upper=True)] = "GET"
    url: str
    body_sha256: str | None = None
    sent: bool = True
    status: int | None = 200
    headers: Mapping[str, str] = Field(default_factory=dict)
    file: str | None = None
    sha256: str | None = None
    bytes: int = 0
    observed_at: datetime | None = None
    duration_seconds: float = 0.0
    retries: int = 0
    outcome: OutcomeCode = Field(default=None, validate_default=True)
    error: str | None = None
    final_url: str | None = None
    optional: bool = False
    instead: tuple[str, ...] = ()
    warning: str | None = None
    more_unsent: int = 0

    @field_validator("headers", mode="before")
    @classmethod
    def _lower_names(cls, headers: Any) -> Any:
        if not isinstance(headers, Mapping):
            return headers or {}
        return {str(name).lower(): str(value) for name, value in headers.items()}

    @field_validator("observed_at")
    @classmethod
    def _utc(cls, moment: datetime | None) -> datetime | None:
        if moment is None:
            return None
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)

    @field_validator("outcome", mode="before")
    @classmethod
    def _from_status(cls, outcome: Any, info: ValidationInfo) -> Any:
        """Return the outcome; if a page saved by hand has none, derive it from the page's status and file."""
        if outcome in list(OutcomeCode):
            return outcome
        status = info.data.get("status")
        if status is None:
            return OutcomeCode.CONNECTION_FAILED
        if status != 200:
            return OutcomeCode.of_status(status)
        return OutcomeCode.OK if info.data.get("file") else OutcomeCode.EMPTY_BODY

    @property
    def usable(self) -> bool:
        """True if a reader may read the answer: it has a stored body, status 200 and no error."""
        return self.file is not None and self.status == 200 and self.outcome is OutcomeCode.OK

    @property
    def key(self) -> str:
        """The key that identifies the request in its capture."""
        return request_key(self.method, self.url, self.body_sha256)


def request_key(method: str, url: str, body_sha256: str | None) -> str:
    """Return a request's key: its method, its address (without API keys) and the hash of its body."""
    return " ".join(filter(None, (method, url, body_sha256)))
