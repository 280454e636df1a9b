"""Problems with a file, the disk or a run, rather than with a source's answer.

Problems with a source are recorded in its outcome. Incidents are published as the table ``incidents``.
"""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import auto

from pipeline.contracts.codes import CodeWithSentence

_LASTING = True


class IncidentKind(CodeWithSentence):
    """The kind of incident. The cause of a ``lasting`` incident remains until a person removes it; the
    incident is recorded only once, and every refresh reports it."""

    DAMAGED_FILE = auto(), "A file of the record cannot be read and was moved aside."
    MISSING_FILE = auto(), "A file of the record is gone, though its outcome was accepted.", _LASTING
    DAMAGED_CAPTURE = auto(), "An archived capture cannot be read; the archive is never changed.", _LASTING
    OWN_CATALOGUE = auto(), "A row of your own GPUs, models or workloads cannot be used.", _LASTING
    STRAY_FILE = auto(), "A file or folder that does not belong where it is was ignored.", _LASTING
    UNKNOWN_SOURCE = (
        auto(),
        "The record has files of a source that is not in the catalogue; they are skipped.",
        _LASTING,
    )
    UNWRITABLE = auto(), "A file could not be written."
    FUTURE_DAY = auto(), "The record has data of a future day, which are ignored.", _LASTING
    WRONG_CLOCK = auto(), "The clock of this machine is wrong, so nothing was published."
    RUN_FAILED = auto(), "A run ended with an error."
    NOT_PUBLISHED = auto(), "Nothing could be published."
    NOT_PLANNED = auto(), "Plans of some models could not be computed, or not be published."
    DIGEST_NOT_SENT = auto(), "The morning's digest could not be posted to the webhook."
    NOT_STORED = auto(), "What is published could not be sent to the bucket."

    def __init__(self, code: str, sentence: str, lasting: bool = False) -> None:
        self.lasting = lasting


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One problem, and the time at which it occurred (UTC; by default now).

    ``path`` is relative to the home. ``remedy`` is what was done about the problem, or what a person must do.
    """

    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    kind: IncidentKind
    reason: str
    remedy: str
    day: date | None = None
    source: str | None = None
    path: str | None = None

    def line(self) -> str:
        """Return the incident as one line of text for people."""
        about = " ".join(str(part) for part in (self.source, self.day) if part is not None)
        where = self.path or about or "gpufare"
        return f"{where}: {self.reason}; {self.remedy}"
