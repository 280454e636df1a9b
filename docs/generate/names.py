"""docs/reference/names.md: GPUs and models by the names that a job can give."""

from docs.generate.markdown import code, table, text
from pipeline.catalog.tables import catalog_rows

INTRODUCTION = """# Names of GPUs and models

This file is made by `make docs` from `catalog/gpus.csv` and `catalog/models.csv`. A GPU is named by its id,
which is that card alone, or by a family such as `h100`, `hopper` or `nvidia` (the table `job_names` has
them all). What is missing you can add [for yourself](../how-to/own-catalogue.md), a model by its
`config.json`.
"""


def page() -> str:
    """The whole file."""
    gpus = (
        [code(row["gpu_id"]), text(f"{row['vendor']} {row['model']} {row['form_factor']}"), row["memory_gb"],
         row["architecture"], row["year"], row["confidence"]]
        for row in catalog_rows("gpus.csv")
    )  # fmt: skip
    models = (
        [code(row["model"]), text(row["title"]), f"{int(row['params_total']) / 1e9:.2f}", row["max_context"],
         text(row["licence"])]
        for row in catalog_rows("models.csv")
    )  # fmt: skip
    return "\n".join(
        [
            INTRODUCTION,
            "## GPUs\n",
            table(["id", "card", "memory, GB", "architecture", "year", "confidence"], gpus),
            "\n## Models\n",
            table(["name", "title", "parameters, 10^9", "context, tokens", "licence"], models),
            "",
        ]
    )
