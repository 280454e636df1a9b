"""What an answer should say of the sources behind it: which were replayed, and which are not asked at all."""

from collections.abc import Mapping

import duckdb

from pipeline.capture.permissions import off_by_terms_and_by_choice, read_choices
from pipeline.catalog.source_config import configs
from pipeline.contracts.paths import Home
from pipeline.warehouse.query import QueryError, ask
from pipeline.warehouse.replays import replays, unlike_live


def replayed_sources(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """The sources whose prices are of saved pages and could pass for live ones; none in a file that an
    earlier version published, which does not say."""
    try:
        return frozenset(each.source for each in unlike_live(connection))
    except QueryError:
        return frozenset()


def not_asked_note(
    connection: duckdb.DuckDBPyConnection, home: Home, environment: Mapping[str, str]
) -> str | None:
    """Which sources the rankings lack, or will soon lack, because they are off: all that are by their terms,
    and those that the user disabled and that have had prices. None where there is none; saved pages need no
    permission, so sources with prices of such pages lack nothing."""
    choices = read_choices(home)
    if choices.problem is not None:
        return choices.problem
    by_terms, by_choice = off_by_terms_and_by_choice(configs().values(), choices, environment)
    saved = _saved(connection)
    priced = {name for (name,) in ask(connection, "SELECT DISTINCT source FROM main.offers").rows}
    unasked = [config.name for config in by_terms if config.name not in saved]
    disabled = [config.name for config in by_choice if config.name in priced - saved]
    parts = [f"by their terms: {', '.join(unasked)}"] if unasked else []
    parts += [f"because you disabled them: {', '.join(disabled)}"] if disabled else []
    return f"not asked, {'; '.join(parts)} (gpufare sources says more)" if parts else None


def _saved(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """The sources with prices of saved pages; none in a file that an earlier version published."""
    try:
        return frozenset(each.source for each in replays(connection))
    except QueryError:
        return frozenset()
