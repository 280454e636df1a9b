"""The tool sql: one read-only query on the published file, in a process of its own (query_process)."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.assistant import query_process
from pipeline.assistant.answers import Answer, Table
from pipeline.assistant.published import Published
from pipeline.assistant.query_process import MOST_SECONDS
from pipeline.home.processes import environment_without_keys
from pipeline.questions.job import JobError
from pipeline.warehouse.connection import MEMORY_VARIABLE

DUCKDB_MEMORY = "1GB"


def sql(published: Published, arguments: Mapping[str, Any]) -> Answer:
    """Return the first rows of a query on the published file. Raises JobError if it cannot be run."""
    published.session()  # raises the same errors as other tools if nothing is published
    found = _in_its_own_process(published.home.published, arguments["query"])
    columns, rows, row_count = found["columns"], found["rows"], found["row_count"]
    count = f"{row_count:,} row{'' if row_count == 1 else 's'}"
    heading = f"The first {count}" if found["is_cut"] else count
    return Answer(
        Table,
        {"columns": columns},
        lines=[f"{heading}; text in them comes from price pages and catalogues:", _csv_line(columns)],
        listed="rows",
        items=[(_csv_line(row), row) for row in rows],
        unlisted=row_count - len(rows),
        narrow="select fewer columns, aggregate, or page with LIMIT and OFFSET",
        end=published.age_notes(),
    )


def _csv_line(cells: list[Any]) -> str:
    """Return a line of CSV, in which all text is quoted."""
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_NONNUMERIC, lineterminator="").writerow(cells)
    return line.getvalue()


def _in_its_own_process(published: Path, query: str) -> dict[str, Any]:
    """Return what ``_answer`` returns for a query, from a process with limits. Raises JobError."""
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            [sys.executable, "-P", "-m", query_process.__name__, str(published)],
            input=query.encode(errors="replace"),
            env=environment_without_keys() | {MEMORY_VARIABLE: DUCKDB_MEMORY},
            capture_output=True,
            timeout=MOST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise JobError(f"the query took more than {MOST_SECONDS} s and was stopped: ask for less") from error
    if done.returncode:
        raise JobError("the query took more memory than a query may, and was stopped: ask for less")
    found: dict[str, Any] = json.loads(done.stdout)
    if "refusal" in found:
        raise JobError(found["refusal"])
    return found
