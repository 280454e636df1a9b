"""docs/reference/macros.md, from the comments on macros."""

import re

from docs.generate.markdown import code, table, text
from pipeline.warehouse.connection import connect
from pipeline.warehouse.database import create
from pipeline.warehouse.sql_files import macro_scripts, scripts

MACROS = """# Macros

This file is made by `make docs` from `sql/model`, `sql/jobs` and `sql/claims`. The table
`data_dictionary` of each published file contains the same text. A relation parameter takes the name of
a table or CTE as a string, as in `cheapest_for('my_jobs')`.
"""

_DEFINED = re.compile(r"^CREATE OR REPLACE MACRO (\w+)\(", re.MULTILINE)
_CALLED = re.compile(r"\b(\w+)\(")


def page() -> str:
    """Return the page of macros: first the macros that the examples call, then the others, by file."""
    macros = _described()
    examples = " ".join(script.read_text(encoding="utf-8") for script in scripts("examples"))
    called = set(_CALLED.findall(examples))
    parts = [MACROS, "## Macros to call\n", _macros([each for each in macros if each[0] in called])]
    parts.append("\n## Macros they use")
    for script in macro_scripts():
        sql = script.read_text(encoding="utf-8")
        defined = set(_DEFINED.findall(sql)) - called
        rows = [each for each in macros if each[0] in defined]
        if rows:
            heading = sql.splitlines()[0].removeprefix("-- ").rstrip(".")
            file = f"sql/{script.parent.name}/{script.name}"
            parts.append(f"\n### {text(heading)}\n\n`{file}`\n\n{_macros(rows)}")
    return "\n".join([*parts, ""])


def _macros(rows: list[tuple[str, str, str]]) -> str:
    return table(["macro", "meaning"], ([code(f"{name}({given})"), text(m)] for name, given, m in rows))


def _described() -> list[tuple[str, str, str]]:
    """Return the macros that an empty database contains, each as its name, parameters and comment."""
    with connect() as connection:
        create(connection)
        return connection.execute(
            "SELECT function_name, array_to_string(parameters, ', '), comment FROM duckdb_functions()"
            " WHERE database_name = current_database() AND schema_name = 'main' AND NOT internal"
            " AND function_type IN ('macro', 'table_macro') ORDER BY 1"
        ).fetchall()
