"""docs/reference/questions.md: each query in sql/examples, with the question that it answers."""

from collections.abc import Iterator
from pathlib import Path

from docs.generate.markdown import text
from pipeline.warehouse.sql_files import scripts

INTRODUCTION = """# Questions with their queries

This file is made by `make docs` from `sql/examples`. `gpufare sql -f sql/examples/NAME.sql` runs a query.
Tests run all of them.
"""


def page() -> str:
    """Return the page."""
    return "\n".join([INTRODUCTION, *map(_line, scripts("examples")), "", *_sections()])


def _line(script: Path) -> str:
    return f"- [{text(_question(script))}](#{script.stem.replace('.', '')})"


def _sections() -> Iterator[str]:
    for script in scripts("examples"):
        query = script.read_text(encoding="utf-8").split("\n", 1)[1].strip()
        yield f"## {script.stem}\n\n{text(_question(script))}\n\n```sql\n{query}\n```\n"


def _question(script: Path) -> str:
    return script.read_text(encoding="utf-8").splitlines()[0].removeprefix("-- ")
