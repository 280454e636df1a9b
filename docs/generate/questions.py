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
    question, _ = question_and_query(script)
    return f"- [{text(question)}](#{script.stem.replace('.', '')})"


def _sections() -> Iterator[str]:
    for script in scripts("examples"):
        question, query = question_and_query(script)
        yield f"## {script.stem}\n\n{text(question)}\n\n```sql\n{query}\n```\n"


def question_and_query(script: Path) -> tuple[str, str]:
    """Return the question in an example's first line, and the query below it."""
    question, query = script.read_text(encoding="utf-8").split("\n", 1)
    return question.removeprefix("-- "), query.strip()
