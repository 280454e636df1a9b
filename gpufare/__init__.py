"""Dollars per finished training job: which GPU is cheapest today, where, and why.

    import gpufare

    for row in gpufare.cheapest(model="llama-3.1-8b", method="qlora", tokens=100e6, country="eu"):
        print(row["rank"], row["gpu"], row["provider"], row["total_usd"], row["hours"])

``gpufare.open()`` keeps the file and its plans open: changing the tokens, the deadline or a filter of a job
then takes milliseconds. The answers are those of the command ``gpufare`` and of the SQL macros of
the published file; ``gpufare refresh`` makes it.
"""

from gpufare.prices import Answer, Prices, cheapest, compare, explain, fit, fits_on, history, open, watch
from pipeline.contracts.errors import GpufareError
from pipeline.questions.fit import Fit
from pipeline.questions.job import JobError
from pipeline.questions.why import Explanation
from pipeline.warehouse.query import NotPublishedError

__all__ = [
    "Answer",
    "Explanation",
    "Fit",
    "GpufareError",
    "JobError",
    "NotPublishedError",
    "Prices",
    "cheapest",
    "compare",
    "explain",
    "fit",
    "fits_on",
    "history",
    "open",
    "watch",
]
