"""What went wrong outside of a source's own answer: with a file, the disk or a run.

What a source did is an outcome. Incidents are published as the table ``incidents``.
"""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from pipeline.contracts.codes import CodeWithSentence


class IncidentKind(CodeWithSentence):
    """What kind of thing went wrong."""

    DAMAGED_FILE = "damaged_file", "A file of the record cannot be read and was moved aside."
    MISSING_FILE = "missing_file", "A file of the record is gone, though its outcome was accepted."
    DAMAGED_CAPTURE = "damaged_capture", "An archived capture cannot be read; the archive is never changed."
    OWN_MODELS = "own_models", "A model of models.csv in the home cannot be read and was skipped."
    OWN_CATALOGUE = (
        "own_catalogue",
        "A GPU of gpus.csv or a workload of workloads.csv in the home cannot be used and was skipped.",
    )
    STRAY_FILE = "stray_file", "A file or folder that does not belong where it is was ignored."
    UNKNOWN_SOURCE = (
        "unknown_source",
        "The record has files of a source that is not in the catalogue; they were left out.",
    )
    UNWRITABLE = "unwritable", "A file could not be written."
    FUTURE_DAY = "future_day", "The record has data of a day after the present one, which are ignored."
    RUN_FAILED = "run_failed", "A run ended with an error."
    NOT_PUBLISHED = "not_published", "Nothing could be published."
    DIGEST_NOT_SENT = "digest_not_sent", "The morning's digest could not be posted to the webhook."
    NOT_STORED = "not_stored", "What is published could not be sent to the bucket."

    @property
    def lasting(self) -> bool:
        """Whether the cause stays in place until a person removes it: it is reported once, not every day."""
        return self in (
            IncidentKind.MISSING_FILE,
            IncidentKind.DAMAGED_CAPTURE,
            IncidentKind.OWN_MODELS,
            IncidentKind.OWN_CATALOGUE,
            IncidentKind.STRAY_FILE,
            IncidentKind.UNKNOWN_SOURCE,
            IncidentKind.FUTURE_DAY,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One thing that went wrong, at a moment (UTC), now by default.

    ``day`` and ``source`` are those concerned, ``path`` is relative to the home; None where there is none.
    ``remedy`` says what was done about it, or what a person must do.
    """

    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    kind: IncidentKind
    reason: str
    remedy: str
    day: date | None = None
    source: str | None = None
    path: str | None = None

    def line(self) -> str:
        """The incident in one line for people."""
        about = " ".join(str(part) for part in (self.source, self.day) if part is not None)
        where = self.path or about or "gpufare"
        return f"{where}: {self.reason}; {self.remedy}"
