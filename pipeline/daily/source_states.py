"""The state of every source, from the archive and the record; needs no published file."""

import os
from collections.abc import Mapping
from datetime import date

from pipeline.capture.archive import Archive
from pipeline.catalog.source_config import SourceConfig, configs
from pipeline.contracts.paths import Home
from pipeline.offers.records import Records
from pipeline.warehouse.query import Result

COLUMNS = (
    ("source", "VARCHAR"),
    ("title", "VARCHAR"),
    ("state", "VARCHAR"),
    ("last_capture", "DATE"),
    ("last_accepted", "DATE"),
    ("age_days", "INTEGER"),
    ("offers", "INTEGER"),
    ("evidence", "VARCHAR"),
    ("why", "VARCHAR"),
)


def source_states(home: Home, today: date, environment: Mapping[str, str] = os.environ) -> Result:
    """One row per source. ``evidence`` is the kind and day of what its reader is based on, not a claim that
    it works live; ``last_capture`` is the last day on which it was asked."""
    archive, records = Archive(home.archive), Records(home)
    rows = [_row(config, archive, records, today, environment) for config in configs().values()]
    return Result(tuple(name for name, _ in COLUMNS), tuple(kind for _, kind in COLUMNS), rows)


def _row(
    config: SourceConfig, archive: Archive, records: Records, today: date, environment: Mapping[str, str]
) -> tuple[object, ...]:
    last_capture = archive.last_asked(config.name)
    rates = config.kind == "exchange_rates"
    accepted = records.rate_days() if rates else records.accepted_days(config.name)
    age = (today - accepted[-1]).days if accepted else None
    state, why = _state(config, records, last_capture, age, environment)
    offers = records.offer_count(config.name, accepted[-1]) if accepted and not rates else None
    return (
        config.name,
        config.title,
        state,
        last_capture,
        accepted[-1] if accepted else None,
        age,
        offers,
        f"{config.evidence.level} {config.evidence.date}",
        why,
    )


def _state(
    config: SourceConfig,
    records: Records,
    last_capture: date | None,
    age: int | None,
    environment: Mapping[str, str],
) -> tuple[str, str | None]:
    if config.disabled is not None:
        return "unsupported", config.disabled
    last = records.outcome(config.name, last_capture) if last_capture else None
    trouble = (last["error"] or last["reason"]) if last and not last["accepted"] else None
    if age is not None and age <= config.stale_after_days:
        return ("good", None) if trouble is None else ("last good kept", trouble)
    if age is not None:
        return "stale", trouble or f"older than {config.stale_after_days} days: out of the rankings"
    missing = [name for name in config.key_variables if not environment.get(name)]
    if missing and config.needs_key:
        return "needs a key", f"set {', '.join(missing)}"
    return ("failed", trouble) if trouble else ("never asked", None)
