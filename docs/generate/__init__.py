"""The pages of docs/reference made from what they describe: `python -m docs.generate` writes them."""

from collections.abc import Callable
from pathlib import Path

from docs.generate import codes, commands, names, parameters, python, questions, recipes, sources, sql

REFERENCE = Path(__file__).parents[1] / "reference"

PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands.page,
    "tables.md": sql.tables_page,
    "macros.md": sql.macros_page,
    "questions.md": questions.page,
    "python.md": python.page,
    "names.md": names.page,
    "sources.md": sources.page,
    "reasons.md": codes.page,
    "cost-parameters.md": parameters.page,
    "recipes.md": recipes.page,
}
"""What each page says, by its name in ``REFERENCE``."""
