"""Days of made-up sources, for the tests of the record and of the gates."""

from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.capture.archive import Archive
from pipeline.contracts.offer import RejectedRow
from pipeline.contracts.outcome import Outcome, SourceResult
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.home.paths import Home
from pipeline.record.months import DAYS_KEY, SEAL_KEY
from pipeline.record.records import Records
from tests.offers.builders import CAPTURED, offer


def outcome(day: date, *, hour: int = 6, accepted: bool = True, **changes: Any) -> Outcome:
    """Return the outcome of an attempt at an hour of a day."""
    result = SourceResult.FRESH if accepted else SourceResult.DOUBTED
    facts: dict[str, Any] = {
        "day": day, "source": "acme", "attempt": f"{day:%Y%m%d}T{hour:02}0000.000000Z", "status": "captured",
        "result": result, "accepted": accepted, "reason": None if accepted else "too few",
    }  # fmt: skip
    return Outcome(**facts | changes)


def reject(**changes: Any) -> RejectedRow:
    """Return a rejected row."""
    facts: dict[str, Any] = {
        "source": "acme", "reason": RejectReason.ZERO_PRICE, "detail": "0 €", "raw": {"price": "0"},
        "observed_at": CAPTURED.observed_at, "source_url": CAPTURED.url, "capture_sha256": CAPTURED.sha256,
    }  # fmt: skip
    return RejectedRow(**facts | changes)


def archived(home: Home, source: str, day: date) -> str:
    """Archive a capture without answers, and return its id."""
    return Archive(home.archive).start(source, day).finish("captured").capture_id or ""


def recorded(home: Home, source: str, day: date, attempt: str | None = None) -> Outcome:
    """Record an offer and a reject of a source, or euros of the source of exchange rates, as read from a new
    capture or from one that is given."""
    records, attempt = Records(home), attempt or archived(home, source, day)
    if source == "ecb":
        row = {"day": day, "currency": "EUR", "usd_per_unit": "1.17", "rate_date": day}
        records.write_exchange_rates(day, [row])
        made = outcome(day, source=source, attempt=attempt, rows=1)
    else:
        records.write_accepted(day, source, [offer(source=source)])
        records.write_rejects(day, source, [reject(source=source)])
        made = outcome(day, source=source, attempt=attempt, rows=1, rejects=1)
    records.write_outcome(made)
    return made


def rewritten(path: Path) -> None:
    """Write the rows of a month's file again, with the hash of the file before."""
    metadata = pl.read_parquet_metadata(path)
    rows = pl.read_parquet(path).with_columns(capture_sha256=pl.lit("0"))
    rows.write_parquet(path, metadata={key: metadata[key] for key in (DAYS_KEY, SEAL_KEY)})


REWRITTEN = "its bytes are not those that were written"
