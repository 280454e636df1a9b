"""docs/reference/tables.md and a page for each published table, from sql/schema and sql/examples."""

import re
from collections.abc import Callable, Iterator
from functools import partial

from docs.generate.joins import Join, joins
from docs.generate.markdown import code, text
from docs.generate.questions import question_and_query
from pipeline.catalog.schema import PURPOSES, Column, Table, read_table, table_names
from pipeline.home.paths import SQL_DIR

OVERVIEW = """# Tables

This file and the pages of the tables are made by `make docs` from `sql/schema`. The table `data_dictionary`
of each published file contains the same text. Times are UTC. A null means unknown, not zero. [Ask with
SQL](../how-to/sql-and-bi.md) shows how to open the file.
"""

MADE = "<!-- Made by `make docs` from sql/schema/{name}.yaml, columns.csv and sql/examples/{name}.sql. -->"

DRAWING = "<!-- drawing of the joins -->"
"""Marks the place of the drawing on the site; a code host shows the list below it."""

RESULT = "<!-- the demo's answer -->"
"""Marks the place of the number of rows and the query's result at the sample prices, on the site."""


def pages() -> dict[str, Callable[[], str]]:
    """Return the function that returns each table's page, keyed by the page's path in docs/."""
    return {f"reference/tables/{name}.md": partial(_page, name) for name in table_names()}


def overview() -> str:
    """Return the page that lists the tables by purpose."""
    return "\n".join([OVERVIEW, *_purposes(), "## Joins\n", _JOINS, DRAWING, ""])


_JOINS = """Most keys have the same name in both tables, so `JOIN gpus USING (gpu_id)` works. The page
of each table lists its joins. In the drawing on the site, a dot means that the table on the left has a key
into the table at the top; a ring marks that table itself.
"""


def _purposes() -> Iterator[str]:
    for purpose, heading in PURPOSES.items():
        yield f"## {heading}\n"
        for table in map(read_table, table_names()):
            if table.purpose == purpose:
                yield f"- [{table.name}](tables/{table.name}.md): {text(first_sentence(table.comment))}"
        yield ""


def first_sentence(comment: str) -> str:
    """Return the first sentence of a comment, up to its first full stop or semicolon."""
    return re.split(r"(?<=\.)\s|;\s", comment, maxsplit=1)[0].rstrip(".") + "."


def _page(name: str) -> str:
    table = read_table(name)
    question, query = question_and_query(SQL_DIR / "examples" / f"{name}.sql")
    parts = [f"# {name}", MADE.format(name=name), text(table.comment)]
    parts += ["## Example", text(question), f"```sql\n{query}\n```", RESULT]
    if found := joins(name):
        parts += ["## Joins", DRAWING, "\n".join(_joins(table, found))]
    parts += ["## Columns", *_key(table), "\n".join(map(_column, table.described()))]
    return "\n\n".join(parts) + "\n"


def _key(table: Table) -> list[str]:
    return [f"Key: {', '.join(map(code, table.key))}."] if table.key else []


def _joins(table: Table, found: list[Join]) -> Iterator[str]:
    for join in found:
        if join.table == table.name:
            yield f"- {code(join.column)} is a key into {_link(join.into)}."
    others = [join for join in found if join.into == table.name]
    links = (
        _link(join.table) + (f" ({code(join.column)})" if (join.column,) != table.key else "")
        for join in others
    )
    if others:
        yield f"- Tables with a key into this one: {', '.join(links)}."


def _link(name: str) -> str:
    return f"[{name}]({name}.md)"


def _column(column: Column) -> str:
    facts = [f"**{code(column.name)}**", column.type.lower(), column.unit]
    facts += ["may be null"] if column.nullable else []
    meaning = text(column.meaning)
    if column.key_into:
        meaning = meaning.replace(column.key_into, _link(column.key_into), 1)
    return f"- {' · '.join(filter(None, facts))}\\\n  {meaning}"
