"""docs/reference/names.md: the names by which a job refers to GPUs and models."""

from docs.generate.markdown import code, table, text
from pipeline.catalog.tables import catalog_rows

INTRODUCTION = """# Names of GPUs and models

This file is made by `make docs` from `catalog/gpus.csv` and `catalog/models.csv`. Name a GPU by its id,
which stands for that card alone or, if it leaves the form factor open (`a100-80gb`), for all cards of that
model and memory, or by a family such as `h100`, `hopper` or `nvidia` (the table `job_names` lists
them). You can [add your own](../how-to/own-catalogue.md) GPUs and models; for a model, its
`config.json` is enough. Ids on the Hugging Face hub are names, too, with or without suffixes such as
`-Instruct`, `-Base` or `-bnb-4bit`.
"""


def page() -> str:
    """Return the page."""
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
    others = (
        [code(row["name"]), code(row["model"]), text(row["source"])]
        for row in catalog_rows("model_names.csv")
    )
    return "\n".join(
        [
            INTRODUCTION,
            "## GPUs\n",
            table(["id", "card", "memory, GB", "architecture", "year", "confidence"], gpus),
            "\n## Models\n",
            table(["name", "title", "parameters, 10^9", "context, tokens", "licence"], models),
            "\nThese models have the shapes of another, and are planned as it:\n",
            table(["name", "planned as", "source"], others),
            "",
        ]
    )
