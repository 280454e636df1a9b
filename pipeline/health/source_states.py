"""The current state of every source: the published table ``source_health``, computed from the record alone.

It needs no published file, so it works even if nothing can be published.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from datetime import date

from pipeline.catalog.source_config import configs
from pipeline.contracts.errors import GpufareError
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.refresh.permissions import off_sources
from pipeline.warehouse.database import in_memory
from pipeline.warehouse.lineage import Lineage
from pipeline.warehouse.load_record import load_newest
from pipeline.warehouse.marts import fill
from pipeline.warehouse.query import Result, ask
from pipeline.warehouse.replays import Replay, unlike_live

_log = logging.getLogger("gpufare")

TABLE = "source_health"

_STATES = f"""
SELECT h.source, h.title, h.state, h.last_attempt_day, h.last_accepted_day, h.age_days,
    h.offers, h.offers_ranked, h.evidence_level || ' ' || h.evidence_date AS evidence,
    s.terms_automated AS terms, s.terms_url, h.why,
    (
        SELECT arg_max(o.result, (o.day, o.attempt)) FROM main.capture_outcomes AS o WHERE o.source = h.source
    ) AS result
FROM main.{TABLE} AS h
INNER JOIN main.sources AS s ON s.source = h.source
ORDER BY h.source
"""  # noqa: S608 - our own table


def source_states(home: Home, today: date, environment: Mapping[str, str] = os.environ) -> Result:
    """Return one row per source, with the columns of ``source_health``; ``evidence`` is the kind and day of
    the pages its reader is based on, no claim that it works live; ``terms`` is the verdict of the provider's
    terms of use on automated reading; ``result`` is the newest attempt's (see ``capture_outcomes``).
    ``today`` is in UTC.

    Raises GpufareError if the home is a file.
    """
    if home.root.exists() and not home.root.is_dir():
        raise GpufareError(f"{home.root} is a file: set {HOME_VARIABLE} to the folder with gpufare's data")
    with in_memory(TABLE) as connection:
        damages = load_newest(connection, home, today)
        for path, reason in {damage.path: damage.reason for damage in damages}.items():
            _log.warning("%s cannot be read and is skipped: %s", path, reason)
        off = off_sources(configs().values(), home, environment)
        variables = {
            "as_of_day": today,
            "today": today,
            "sources_off": list(off),
            "reasons_off": list(off.values()),
            "sources_with_keys": [name for name, config in configs().items() if config.has_key(environment)],
        }
        for name, value in variables.items():
            connection.execute(f"SET VARIABLE {name} = ?", [value])
        for table in Lineage(connection).marts([TABLE]):
            fill(connection, table)
        return _with_replays(ask(connection, _STATES), unlike_live(connection))


def _with_replays(states: Result, found: Sequence[Replay]) -> Result:
    """Return the states, with a note in ``why`` if a source's prices come from saved pages."""
    observed = {each.source: each.observed_on for each in found}
    rows = list(states.dicts())
    for row in rows:
        if day := observed.get(row["source"]):
            replayed = f"its prices were replayed from saved pages (observed on {day})"
            row["why"] = f"{row['why']}; {replayed}" if row["why"] else replayed
    return Result(states.columns, states.types, [tuple(row.values()) for row in rows])
