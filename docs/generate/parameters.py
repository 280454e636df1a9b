"""docs/reference/cost-parameters.md: every number in a cost that comes from neither a price nor a plan."""

from docs.generate.markdown import code, table, text
from pipeline.catalog.tables import catalog_rows

INTRODUCTION = """# Cost parameters

This file is made by `make docs` from `catalog/cost_parameters.csv`. The table `cost_parameters` of each
published file contains the same rows. If two rows with the same name apply to an
offer, the row that applies to fewer offers is used.
"""


def page() -> str:
    """Return the page."""
    rows = catalog_rows("cost_parameters.csv")
    headings = ["name", "value", "unit", "applies to", "source", "note"]
    keys = [heading.replace(" ", "_") for heading in headings[1:]]
    cells = ([code(row["name"]), *(text(row[key]) for key in keys)] for row in rows)
    return "\n".join([INTRODUCTION, table(headings, cells), ""])
