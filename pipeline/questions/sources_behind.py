"""Notes on the sources behind an answer: sources that were replayed, and sources that are not asked."""

from collections.abc import Mapping

from pipeline.home.paths import Home
from pipeline.warehouse.engine import duckdb
from pipeline.warehouse.query import ask
from pipeline.warehouse.replays import replays, unlike_live

_SOURCES = """
SELECT
    source, terms_automated = 'forbidden' AND NOT needs_key AS forbidden,
    string_split(coalesce(key_variables, ''), ', ') AS key_variables,
    source IN (SELECT source FROM main.offers) AS priced
FROM main.sources
WHERE disabled IS NULL
ORDER BY source
"""


def replayed_sources(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """Return the sources whose prices come from saved pages and could pass for live ones."""
    return frozenset(each.source for each in unlike_live(connection))


def not_asked_note(
    connection: duckdb.DuckDBPyConnection, home: Home, environment: Mapping[str, str]
) -> str | None:
    """List the sources that are missing from rankings, or soon will be, because their terms turn them off or
    because the user disabled them although they had prices. Return None if all sources are asked. Prices from
    saved pages need no permission, so the sources of such prices are not listed.

    Facts about sources are read from the published file: reading 45 yaml files takes longer than answering.
    """
    asked: dict[str, bool] = {}
    if home.permissions.exists():
        from pipeline.capture.permissions import read_choices

        choices = read_choices(home)
        if choices.problem is not None:
            return choices.problem
        asked = {source: choice.asked for source, choice in choices.by_source.items()}
    saved = {each.source for each in replays(connection)}
    by_terms, by_choice = [], []
    for source, forbidden, keys, priced in ask(connection, _SOURCES).rows:
        if source in saved:
            continue
        if source in asked:
            if priced and not asked[source]:
                by_choice.append(source)
        elif forbidden and not all(environment.get(key, "").strip() for key in keys):
            by_terms.append(source)
    parts = [f"{', '.join(by_terms)} (their terms)"] if by_terms else []
    parts += [f"{', '.join(by_choice)} (you disabled them)"] if by_choice else []
    return f"not asked: {', '.join(parts)}; see gpufare sources" if parts else None
