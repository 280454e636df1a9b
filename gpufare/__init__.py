"""Dollars per finished training job: which GPU is cheapest today, where, and why.

    import gpufare

    for row in gpufare.cheapest(model="llama-3.1-8b", method="qlora", tokens=100e6, country="eu"):
        print(row["rank"], row["gpu"], row["provider"], row["total_usd"], row["hours"])

``gpufare.open()`` keeps the file open and its plans in memory: asking again about a job with a different
token count, deadline or filter then takes milliseconds. The answers are the same as those of the ``gpufare``
command and of the SQL macros in the published file, which ``gpufare refresh`` makes.
"""

from gpufare.questions import (
    Answer,
    Prices,
    cheapest,
    compare,
    explain,
    fit,
    fits_on,
    gpus,
    history,
    models,
    open,
    prices,
    sql,
    watch,
)
from pipeline.contracts.errors import GpufareError
from pipeline.questions.fit import Fit
from pipeline.questions.job import JobError
from pipeline.questions.why import Explanation
from pipeline.warehouse.query import NotPublishedError, QueryError

__all__ = [
    "Answer",
    "Explanation",
    "Fit",
    "GpufareError",
    "JobError",
    "NotPublishedError",
    "Prices",
    "QueryError",
    "cheapest",
    "compare",
    "explain",
    "fit",
    "fits_on",
    "gpus",
    "history",
    "models",
    "open",
    "prices",
    "sql",
    "watch",
]
