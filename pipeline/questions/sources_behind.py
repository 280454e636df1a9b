"""What an answer should say of the sources behind it: which were replayed, and which are not asked at all."""

from collections.abc import Mapping

import duckdb

from pipeline.home.paths import Home
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
    """Return the sources whose prices are of saved pages and could pass for live ones."""
    return frozenset(each.source for each in unlike_live(connection))


def not_asked_note(
    connection: duckdb.DuckDBPyConnection, home: Home, environment: Mapping[str, str]
) -> str | None:
    """Which sources the rankings lack, or will soon lack, because they are off: all that are by their terms,
    and those that the user disabled and that have had prices. None where there is none; saved pages need no
    permission, so sources with prices of such pages lack nothing.

    The published file says what each source's yaml says: 45 of them take longer to read than the answer.
    """
    asked, problem = _choices(home)
    if problem is not None:
        return problem
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
    parts = [f"by their terms: {', '.join(by_terms)}"] if by_terms else []
    parts += [f"because you disabled them: {', '.join(by_choice)}"] if by_choice else []
    return f"not asked, {'; '.join(parts)} (gpufare sources says more)" if parts else None


def _choices(home: Home) -> tuple[dict[str, bool], str | None]:
    """Whether each source that the user enabled or disabled is asked, and why that cannot be known."""
    if not home.permissions.exists():
        return {}, None
    from pipeline.capture.permissions import read_choices

    choices = read_choices(home)
    return {source: choice.asked for source, choice in choices.by_source.items()}, choices.problem
