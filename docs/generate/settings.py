"""docs/reference/job-settings.md: the settings of a job in commands, SQL and Python."""

from docs.generate.markdown import code, table, text
from pipeline.catalog.tables import catalog_rows

INTRODUCTION = """# Settings of a job

This file is made by `make docs` from `catalog/job_settings.csv`. The table `job_settings` of each published
file contains the same rows. A setting is a column of the jobs that `cheapest_for` takes, an option of
`gpufare cheapest` (with `-` for `_`) and a keyword argument of the Python calls. Names are compared ignoring
case, blanks and dashes; `job_names` lists them. A setting of kind *names* or *machines* takes several values.
In commands and Python, a number may be text with a unit, such as `20 USD`, `2 days`, `100 million` or `95%`.
"""


def page() -> str:
    """Return the page."""
    rows = catalog_rows("job_settings.csv")
    headings = ["setting", "kind", "default", "unit", "choices", "meaning"]
    cells = (
        [code(row["setting"]), row["kind"], code(row["default_value"]), text(row["unit"]),
         text(", ".join(row["choices"].split())), text(row["meaning"])]
        for row in rows
    )  # fmt: skip
    return "\n".join([INTRODUCTION, table(headings, cells), ""])
