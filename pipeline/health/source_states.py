"""The state of every source now: the published table ``source_health``, computed of the record alone.

It needs no published file, so it also tells when nothing can be published.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from pipeline.catalog.source_config import configs
from pipeline.contracts.errors import GpufareError
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.refresh.permissions import off_sources
from pipeline.warehouse.database import in_memory
from pipeline.warehouse.lineage import Lineage
from pipeline.warehouse.load import load_incidents, load_newest
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


class HomeError(GpufareError):
    """The data home is not a folder: says where it is and what to set."""


def source_states(home: Home, today: date, environment: Mapping[str, str] = os.environ) -> Result:
    """One row per source, with the columns of ``source_health``; ``evidence`` is the kind and day of what its
    reader is based on, not a claim that it works live; ``terms`` is what the provider's terms of use say of
    automated reading; ``result`` is how the newest attempt ended (see ``capture_outcomes``). ``today`` is in
    UTC.

    Raises HomeError.
    """
    if home.root.exists() and not home.root.is_dir():
        raise HomeError(f"{home.root} is a file: set {HOME_VARIABLE} to the folder with gpufare's data")
    with in_memory(TABLE) as connection:
        for damage in [*load_newest(connection, home, today), *load_incidents(connection, home)]:
            _log.warning("%s cannot be read and is skipped: %s", damage.file.path, damage.reason)
        connection.execute("SET VARIABLE as_of_day = ?::DATE", [today])
        connection.execute("SET VARIABLE today = ?::DATE", [today])
        off = off_sources(configs().values(), home, environment)
        connection.execute("SET VARIABLE sources_off = ?::VARCHAR[]", [list(off)])
        connection.execute("SET VARIABLE reasons_off = ?::VARCHAR[]", [list(off.values())])
        with_keys = [config.name for config in configs().values() if config.has_key(environment)]
        connection.execute("SET VARIABLE sources_with_keys = ?::VARCHAR[]", [with_keys])
        for table in Lineage(connection).marts([TABLE]):
            fill(connection, table)
        return _with_replays(ask(connection, _STATES), unlike_live(connection))


def _with_replays(states: Result, found: Sequence[Replay]) -> Result:
    """The states, whose ``why`` also says that a source's prices are of saved pages."""
    observed = {each.source: each.observed_on for each in found}
    source, why = states.columns.index("source"), states.columns.index("why")

    def said(row: tuple[Any, ...]) -> tuple[Any, ...]:
        if row[source] not in observed:
            return row
        text = f"its prices were replayed from saved pages (observed on {observed[row[source]]})"
        return *row[:why], "; ".join(filter(None, (row[why], text))), *row[why + 1 :]

    return Result(states.columns, states.types, [said(row) for row in states.rows])
