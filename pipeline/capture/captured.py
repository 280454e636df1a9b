"""What the capture of a source left for its readers: the answers, and how asking for them went."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from pipeline.capture.archive import Archive
from pipeline.capture.outcome import CaptureOutcome
from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.listing import Answer


@dataclass(frozen=True, slots=True)
class Captured:
    """What the capture of a source left for its outcome row."""

    status: str
    answers: Sequence[Answer]
    requests: int = 0
    failed_requests: int = 0
    bytes: int = 0
    duration_seconds: float = 0.0
    retries: int = 0
    error: str | None = None


def captured_of(outcome: CaptureOutcome, archive: Archive) -> Captured:
    """A capture's outcome with its answers read back from the archive, their hashes checked."""
    error = outcome.error
    answers = []
    if outcome.capture is not None:
        try:
            answers = archive.answers(outcome.capture)
        except GpufareError as damaged:
            error = str(damaged)
    return Captured(
        status=outcome.status,
        answers=answers,
        requests=len(outcome.requests),
        failed_requests=sum(not request.outcome.usable for request in outcome.requests),
        bytes=outcome.bytes,
        duration_seconds=outcome.duration_seconds,
        retries=outcome.retries,
        error=error,
    )


def captured_from_archive(config: SourceConfig, day: date, archive: Archive) -> Captured:
    """The newest whole capture of a day, as the archive holds it."""
    capture = archive.latest_capture(config.name, day)
    if capture is None:
        return Captured(status="failed", answers=[], error=f"the archive holds no capture of {day}")
    try:
        answers = archive.answers(capture)
    except GpufareError as damaged:
        return Captured(status="failed", answers=[], error=str(damaged))
    size = sum(len(answer.body) for answer in answers)
    return Captured(status=capture.status or "failed", answers=answers, requests=len(answers), bytes=size)
