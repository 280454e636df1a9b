"""From archived answers to the record of a source and day: read, judge, keep.

What is accepted is written to the record; what is refused leaves the last good offers where they are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from pipeline.capture.captured import Captured
from pipeline.catalog.source_config import SourceConfig
from pipeline.contracts.listing import Answer, SourceChangedError
from pipeline.contracts.rates import ExchangeRates, Rate
from pipeline.contracts.reject_reasons import RejectReason
from pipeline.offers.acceptance import Acceptance, judge, quarantine_jumps
from pipeline.offers.build import Built, build_offers
from pipeline.offers.printable import printable
from pipeline.offers.records import MAX_RATE_AGE_DAYS, Outcome, Records
from pipeline.sources import source_module

MAX_RATE_CHANGE = Decimal("0.25")
"""A currency that moved more than this against the dollar within a week was misread."""


def read_answers(
    answers: Sequence[Answer], config: SourceConfig, rates: Mapping[str, Rate] | None = None
) -> Built:
    """One source's answers as offers and rejects.

    Raises SourceChangedError when the answers are not in the shape that the reader knows, whatever the
    reader itself raised on them: an answer may be anything, and one source never stops the others.
    """
    try:
        return build_offers(source_module(config.name).read(answers, config), config, rates)
    except SourceChangedError as changed:
        raise SourceChangedError(printable(str(changed))) from changed
    except Exception as error:
        raise SourceChangedError(
            f"the {config.name} reader does not understand the answer "
            f"({type(error).__name__}: {printable(str(error))})"
        ) from error


def record(config: SourceConfig, day: date, captured: Captured, records: Records) -> Outcome:
    """Read what was captured of a source, prices or exchange rates, and keep what is accepted."""
    if config.kind == "exchange_rates":
        return record_rates(config, day, captured, records)
    return record_source(config, day, captured, usd_rates(day, records), records)


def record_source(
    config: SourceConfig,
    day: date,
    captured: Captured,
    rates: Mapping[str, Rate],
    records: Records,
) -> Outcome:
    """Read a source's captured answers, judge them and write offers, rejects and the outcome row."""
    built, verdict, error = Built(), Acceptance(False, _why_nothing(captured)), captured.error
    if captured.answers:
        try:
            built = read_answers(captured.answers, config, rates)
            built, verdict = _judged(built, config, day, records)
        except SourceChangedError as changed:
            verdict, error = Acceptance(False, "the answer could not be read"), str(changed)
    if verdict.accepted:
        records.write_accepted(day, config.name, built.offers)
    if captured.answers:
        records.write_rejects(day, config.name, built.rejects)
    outcome = _outcome(config, day, captured, verdict, error, **_counts(built))
    records.write_outcome(outcome)
    return outcome


def _why_nothing(captured: Captured) -> str:
    return captured.error or captured.status


def _judged(built: Built, config: SourceConfig, day: date, records: Records) -> tuple[Built, Acceptance]:
    last = records.last_accepted(config.name, before=day)
    verdict = judge(built.offers, config, len(last[1]) if last else None, built.rejects)
    verdict = replace(verdict, warnings=(*verdict.warnings, *built.warnings))
    if not verdict.accepted or last is None:
        return built, verdict
    last_day, last_offers = last
    held = _held_back_since(records, config.name, last_day, day)
    quarantine = quarantine_jumps(built.offers, last_offers, held, config)
    built = Built(quarantine.offers, built.rejects + quarantine.rejects)
    return built, Acceptance(False, quarantine.failure, verdict.warnings) if quarantine.failure else verdict


def _held_back_since(
    records: Records, source: str, since: date, before: date
) -> dict[tuple[Any, ...], Decimal]:
    """Prices that the last reading of an earlier day held back, by ``price_key``."""
    days = [day for day in records.rejected_days(source) if since <= day < before]
    if not days:
        return {}
    return {
        tuple(row["raw"]["price_key"]): Decimal(row["raw"]["native_price"])
        for row in records.rejects(source, days[-1])
        if row["reason"] == RejectReason.PRICE_JUMP
    }


def _outcome(
    config: SourceConfig,
    day: date,
    captured: Captured,
    verdict: Acceptance,
    error: str | None,
    **counts: int,
) -> Outcome:
    return Outcome(
        day=day,
        source=config.name,
        status=captured.status,
        accepted=verdict.accepted,
        reason=verdict.reason,
        warnings=verdict.warnings,
        requests=captured.requests,
        failed_requests=captured.failed_requests,
        bytes=captured.bytes,
        sha256=captured.answers[0].sha256 if captured.answers else None,
        duration_seconds=captured.duration_seconds,
        retries=captured.retries,
        error=error,
        observed_at=max((answer.observed_at for answer in captured.answers), default=None),
        **counts,
    )


def _counts(built: Built) -> dict[str, int]:
    statuses = [offer.match_status for offer in built.offers]
    return {
        "rows": len(built.offers),
        "rejects": len(built.rejects),
        "matched": statuses.count("matched"),
        "ambiguous": statuses.count("ambiguous"),
        "unknown": statuses.count("unknown"),
    }


def record_rates(config: SourceConfig, day: date, captured: Captured, records: Records) -> Outcome:
    """Read the day's exchange rates and keep them for every source that does not price in dollars."""
    rows: list[dict[str, Any]] = []
    error = captured.error
    if captured.answers:
        try:
            rows = _rate_rows(source_module(config.name).read_rates(captured.answers, config), day, records)
        except Exception as problem:  # an answer may be anything: the other sources go on with older rates
            error = str(problem)
    if rows:
        records.write_exchange_rates(day, rows)
    reason = None if rows else error or captured.status
    verdict = Acceptance(bool(rows), reason, tuple(_warn_of_age(rows, day)))
    outcome = _outcome(config, day, captured, verdict, error, rows=len(rows))
    records.write_outcome(outcome)
    return outcome


def _rate_rows(rates: ExchangeRates, day: date, records: Records) -> list[dict[str, Any]]:
    """The rates as they are kept. Raises SourceChangedError for one that jumped."""
    before = usd_rates(day - timedelta(days=1), records)
    rows = []
    for currency in sorted({"EUR", *rates.rates}):
        usd = rates.usd_per(currency)
        if currency in before and abs(usd / before[currency].usd - 1) > MAX_RATE_CHANGE:
            raise SourceChangedError(
                f"one {currency} went from {before[currency].usd:.4f} to {usd:.4f} USD, which is not believed"
            )
        rows.append({"day": day, "currency": currency, "usd_per_unit": usd, "rate_date": rates.date})
    return rows


def _warn_of_age(rows: Sequence[Mapping[str, Any]], day: date) -> Iterator[str]:
    """Each price says its rate's day, so an old rate is shown and not refused."""
    if rows and (day - rows[0]["rate_date"]).days > MAX_RATE_AGE_DAYS:
        yield f"the rates are of {rows[0]['rate_date']}"


def usd_rates(day: date, records: Records) -> dict[str, Rate]:
    """Dollars per unit of each currency, from the newest rates kept up to ``day`` (and not too old)."""
    return {
        row["currency"]: Rate(row["usd_per_unit"], row["rate_date"]) for row in records.exchange_rates(day)
    }
