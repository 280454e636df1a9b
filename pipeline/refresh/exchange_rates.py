"""Reads the day's exchange rates and compares them with those before."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.listing import Answer
from pipeline.contracts.rates import ExchangeRates
from pipeline.gates.reading import Acceptance
from pipeline.gates.thresholds import MAX_RATE_CHANGE
from pipeline.record.records import MAX_RATE_AGE_DAYS, Records
from pipeline.sources import source_module


class RateJumpError(GpufareError):
    """A rate moved more than MAX_RATE_CHANGE: none of the day's rates is kept."""


def read_rates(
    config: SourceConfig, day: date, answers: Sequence[Answer], records: Records
) -> tuple[list[dict[str, Any]], Acceptance]:
    """Read the day's exchange rates, by which every source that does not price in dollars is converted.

    Raises RateJumpError, RecordError, and whatever the reader raises.
    """
    rows = _rows(source_module(config.name).read_rates(answers, config), day, records)
    rate_date = rows[0]["rate_date"]
    # Each converted price carries its rate's day, so an old rate is shown and not refused.
    old = (day - rate_date).days > MAX_RATE_AGE_DAYS
    return rows, Acceptance(True, warnings=(f"the rates are of {rate_date}",) if old else ())


def _rows(rates: ExchangeRates, day: date, records: Records) -> list[dict[str, Any]]:
    """A row per currency, the euro included. Raises RateJumpError."""
    before = records.usd_rates(day - timedelta(days=1))
    rows = []
    for currency, usd in sorted(rates.usd_per_unit.items()):
        if currency in before and abs(usd / before[currency].usd - 1) > MAX_RATE_CHANGE.value:
            raise RateJumpError(
                f"one {currency} went from {before[currency].usd:.4f} to {usd:.4f} USD, more than "
                f"{MAX_RATE_CHANGE.value:.0%} in a week"
            )
        rows.append({"day": day, "currency": currency, "usd_per_unit": usd, "rate_date": rates.date})
    return rows
