"""The generated pages of the documentation: `python -m docs.generate` writes them."""

from collections.abc import Callable
from pathlib import Path

from docs.generate import (
    accuracy,
    codes,
    commands,
    names,
    parameters,
    price_gates,
    python,
    questions,
    settings,
    sources,
    sql,
)

DOCS = Path(__file__).parents[1]

PAGES: dict[str, Callable[[], str]] = {
    "reference/commands.md": commands.page,
    "reference/tables.md": sql.tables_page,
    "reference/macros.md": sql.macros_page,
    "reference/questions.md": questions.page,
    "reference/python.md": python.page,
    "reference/job-settings.md": settings.page,
    "reference/names.md": names.page,
    "reference/sources.md": sources.page,
    "reference/reasons.md": codes.page,
    "reference/cost-parameters.md": parameters.page,
    "explanation/accuracy.md": accuracy.page,
    "explanation/price-gates.md": price_gates.page,
}
"""The function that returns each page, keyed by the page's path in ``DOCS``."""
