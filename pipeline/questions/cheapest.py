"""What a person asks: the cheapest way to run one job, ranked, with the first answer explained."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import duckdb

from pipeline.catalog.source_config import configs
from pipeline.contracts.errors import GpufareError
from pipeline.contracts.paths import Home
from pipeline.offers.money import price_text
from pipeline.offers.records import Records
from pipeline.warehouse.build import build
from pipeline.warehouse.query import QueryError, Result, ask, reader

HOURS_TOLD_IN_DAYS = 72

OLD_PRICE_DAYS = 2
"""A price older than this is called old in the explanation."""


class JobError(GpufareError):
    """The job cannot be answered: says which part of it is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A training job as ``cheapest_for`` takes it; None leaves a setting to its stated default."""

    model: str
    method: str
    tokens: float | None = None
    examples: float | None = None
    tokens_per_example: float | None = None
    epochs: float | None = None
    seq_len: int | None = None
    lora_rank: int | None = None
    micro_batch: int | None = None
    checkpointing: str | None = None
    stack: str | None = None
    max_gpus: int | None = None
    max_hours: float | None = None
    price_kind: str = "on_demand"
    objective: Literal["cost", "time"] = "cost"


@contextmanager
def prices_of(home: Home, day: date | None) -> Iterator[duckdb.DuckDBPyConnection]:
    """The published file, or for another day than its own a database of that day built from the record.

    Raises NotPublishedError, and JobError for a day without prices.
    """
    with reader(home.published) as connection:
        if day is None or day == ask(connection, "SELECT as_of_day FROM main.publication").rows[0][0]:
            yield connection
            return
    _refuse_day_without_prices(home, day)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gpufare.duckdb"
        build(file, home, day, datetime.now(UTC))
        with reader(file) as connection:
            yield connection


def _refuse_day_without_prices(home: Home, day: date) -> None:
    records = Records(home)
    days = sorted({each for source in configs() for each in records.accepted_days(source)})
    if day not in days:
        kept = f"there are prices of {days[0]} to {days[-1]}" if days else "there are none at all"
        raise JobError(f"no prices were captured on {day}; {kept}")


def cheapest(connection: duckdb.DuckDBPyConnection, job: Job) -> Result:
    """Every ranked way to run the job, all columns of ``cheapest_for``. Raises JobError."""
    settings = {name: value for name, value in asdict(job).items() if value is not None}
    _refuse_unknown_model(connection, job.model)
    columns = ", ".join(f"? AS {name}" for name in settings)
    query = f"WITH asked AS (SELECT {columns}) FROM cheapest_for('asked') ORDER BY rank"  # noqa: S608
    try:
        return ask(connection, query, list(settings.values()))
    except QueryError as error:
        raise JobError(str(error).splitlines()[0].removeprefix("Invalid Input Error: ")) from error


def _refuse_unknown_model(connection: duckdb.DuckDBPyConnection, model: str) -> None:
    known = [name for (name,) in ask(connection, "SELECT model FROM main.models ORDER BY model").rows]
    if model not in known:
        plain = model.lower().rpartition("/")[2]
        alike = get_close_matches(plain, known, n=3)
        hint = f"did you mean {' or '.join(alike)}? " if alike else ""
        raise JobError(f"there is no model {model!r}; {hint}known models: {', '.join(known)}")


def nothing_fits(job: Job) -> str:
    """Why no row came back, in one line."""
    kind = "" if job.price_kind == "any" else f" {job.price_kind}"
    limits = [
        f"at most {job.max_gpus} GPUs" if job.max_gpus else "",
        f"at most {job.max_hours:g} hours" if job.max_hours else "",
    ]
    within = " and ".join(limit for limit in limits if limit)
    fits = f"FROM fits('{job.model}', '{job.method}', 'h100-sxm-80gb')"
    return (
        f"no{kind} offer runs {job.model} {job.method}"
        + (f" with {within}" if within else "")
        + f'; what it needs, for example: gpufare sql "{fits}"'
    )


def explained(row: Mapping[str, Any], today: date) -> list[str]:
    """The first answer in three lines: what, why, and how far to trust it."""
    return [_what(row), _why(row), _trust(row, today)]


def _what(row: Mapping[str, Any]) -> str:
    tier = f", {row['tier']}" if row["tier"] else ""
    money = f"${row['total_usd']:,.2f} (${row['total_usd_low']:,.2f} to ${row['total_usd_high']:,.2f})"
    idle = f" ({row['gpus_billed']} are paid)" if row["gpus_billed"] > row["gpu_count"] else ""
    kind = row["price_kind"].replace("_", "-")
    spot = f" Interruptions are ${row['interruption_usd']:,.2f} of it." if row["price_kind"] == "spot" else ""
    reserved = (
        f" The reservation is for {row['term_days']} days, ${row['commitment_usd']:,.2f} in all."
        if row["term_days"] and row["commitment_usd"]
        else ""
    )
    days = f" ({row['hours'] / 24:,.0f} days)" if row["hours"] >= HOURS_TOLD_IN_DAYS else ""
    return (
        f"{row['gpu_count']} x {row['gpu']}{idle} at {row['provider']} ({kind}{tier}): {money} for the "
        f"finished job, {row['hours']:,.1f} hours{days} at ${price_text(row['usd_per_hour'])} per hour."
        f"{spot}{reserved}"
    )


def _why(row: Mapping[str, Any]) -> str:
    offload = ", its training state in the host's memory" if row["offload"] else ""
    return (
        f"It needs {row['memory_gib']:.1f} of {row['usable_memory_gib']:.1f} GiB per GPU with micro-batch "
        f"{row['micro_batch']}, checkpointing {row['checkpointing']}{offload}, and trains "
        f"{row['tokens_per_second']:,.0f} tokens/s; most of the time goes to {row['bottleneck']}."
    )


def _trust(row: Mapping[str, Any], today: date) -> str:
    cautions = []
    age = (today - row["price_day"]).days
    if age > OLD_PRICE_DAYS:
        cautions.append(f"the price is {age} days old")
    if row["verdict"] == "tight":
        cautions.append("the fit is tight")
    if row["evidence"] == "extrapolated":
        cautions.append("the evidence is thin: no published run is close")
    nearest = f", closest published run {row['evidence_run']}" if row["evidence_run"] else ""
    address = row["source_url"].partition("?")[0]
    converted = (
        f" ({row['native_price'].normalize():f} {row['native_currency']} per {row['native_unit']}, "
        f"one {row['native_currency']} at ${row['fx_rate'].normalize():f} of {row['fx_date']})"
        if row["fx_rate"]
        else ""
    )
    seen = f"Price seen {row['price_day']} at {address}{converted}; speed {row['evidence']}{nearest}."
    return seen + (f" CAREFUL: {'; '.join(cautions)}." if cautions else "")
