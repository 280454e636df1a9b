"""A person's word on what the gates held or refused: stored, and applied to the day at once."""

from datetime import date
from decimal import Decimal
from typing import Any

from pipeline.catalog.source_config import source_config
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.outcome import Outcome, SourceResult
from pipeline.gates.held import HELD_REASONS
from pipeline.gates.reviews import Review, Verdict, add_reviews
from pipeline.home.paths import Home
from pipeline.record.records import Records
from pipeline.refresh.ingest import read_again


def review(home: Home, source: str, verdict: Verdict, label: str | None = None, why: str = "") -> list[str]:
    """Store a verdict on the prices that a source's newest reading holds, those whose label contains
    ``label``, and read that day again. If the reading was refused, and no label is given, the verdict is on
    the reading, too. Return lines for the user.

    Raises GpufareError for an unknown source, or if nothing is held or refused; ReviewsError and
    UnwritableError.
    """
    config, records = source_config(source), Records(home)
    day = max(records.rejected_days(config.name), default=None)
    if day is None:
        raise GpufareError(f"{config.name} has never been read in {home.root}")
    newest = records.outcome(config.name, day)
    held = [
        row
        for row in records.rejects(config.name, day)
        if row["reason"] in HELD_REASONS and _is_named(row, label)
    ]
    found = [_of_price(row, config.name, day, verdict, why) for row in held]
    if label is None and newest and newest["result"] == SourceResult.DOUBTED:
        found.append(Review(source=config.name, day=day, verdict=verdict, why=why, sha256=newest["sha256"]))
    if not found:
        about = f" whose label contains {label!r}" if label else ""
        raise GpufareError(f"{config.name} holds no price of {day}{about}, so there is nothing to review")
    add_reviews(home, found)
    outcome = read_again(config.name, day, home)
    return [*(_line(row, verdict) for row in held), *_result(config.name, day, outcome)]


def _is_named(row: dict[str, Any], label: str | None) -> bool:
    return label is None or label.casefold() in str(row["raw"]["price_key"][0]).casefold()


def _of_price(row: dict[str, Any], source: str, day: date, verdict: Verdict, why: str) -> Review:
    raw = row["raw"]
    return Review(
        source=source,
        day=day,
        verdict=verdict,
        why=why,
        price_key=tuple(raw["price_key"]),
        price=Decimal(raw["native_price"]),
        currency=raw["native_currency"],
    )


def _line(row: dict[str, Any], verdict: Verdict) -> str:
    raw = row["raw"]
    where = " ".join(str(part) for part in raw["price_key"][1:] if part is not None)
    price = f"{raw['native_price']} {raw['native_currency']}"
    return f"{raw['price_key'][0]} ({where}): {price} is {verdict} from now on"


def _result(source: str, day: date, outcome: Outcome | None) -> list[str]:
    if outcome is None:
        return [
            f"{source}: the archive lacks the answers of {day}; the verdict counts from the next reading on"
        ]
    if not outcome.accepted:
        return [f"{source}: the reading of {day} stays refused: {outcome.reason}"]
    return [f"{source}: {outcome.rows} offers of {day} are accepted; `gpufare refresh` publishes them"]
