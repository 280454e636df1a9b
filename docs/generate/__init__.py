"""The generated pages of the documentation: `python -m docs.generate` writes them."""

from collections.abc import Callable
from pathlib import Path

from docs.generate import (
    accuracy,
    codes,
    commands,
    first_page,
    macros,
    names,
    parameters,
    price_gates,
    python,
    questions,
    settings,
    sources,
    tables,
)

DOCS = Path(__file__).parents[1]

PAGES: dict[str, Callable[[], str]] = {
    "index.md": first_page.page,
    "reference/commands.md": commands.page,
    "reference/tables.md": tables.overview,
    **tables.pages(),
    "reference/macros.md": macros.page,
    "reference/questions.md": questions.page,
    "reference/python.md": python.page,
    "reference/job-settings.md": settings.page,
    "reference/names.md": names.page,
    "reference/sources.md": sources.page,
    "reference/reasons.md": codes.page,
    "reference/cost-parameters.md": parameters.page,
    "explanation/accuracy.md": accuracy.page,
    "../README.md": accuracy.readme,
    "explanation/price-gates.md": price_gates.page,
}
"""The function that returns each page, keyed by the page's path in ``DOCS``."""
