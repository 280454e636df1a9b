"""Outcomes of a made-up source, for the tests of the record and of the gates."""

from datetime import date
from typing import Any

from pipeline.contracts.outcome import Outcome, SourceResult


def outcome(day: date, *, hour: int = 6, accepted: bool = True, **changes: Any) -> Outcome:
    """Return the outcome of an attempt at an hour of a day."""
    facts: dict[str, Any] = {
        "day": day,
        "source": "acme",
        "attempt": f"{day:%Y%m%d}T{hour:02}0000.000000Z",
        "status": "captured",
        "result": SourceResult.FRESH if accepted else SourceResult.DOUBTED,
        "accepted": accepted,
        "reason": None if accepted else "too few",
    }
    return Outcome(**facts | changes)
