"""Prices per GPU-hour without a job: today's by card and provider, and the lowest on each day on record."""

from collections.abc import Mapping
from typing import Any

from pipeline.catalog.job_settings import DAILY_PRICE_SETTINGS, PRICE_SETTINGS
from pipeline.questions.job import Job, JobError
from pipeline.questions.numbers import price_text
from pipeline.questions.reasons import kind_text
from pipeline.questions.session import JOBS, Session
from pipeline.questions.words import place_text, skipped
from pipeline.warehouse.query import Result


def prices(session: Session, constraints: Mapping[str, Any]) -> tuple[Result, dict[str, Any]]:
    """Return today's prices that meet constraints, cheapest first (the rows of the macro ``gpu_prices``), and
    the completed question (a row of ``completed_jobs``, and ``skipped``: a row of ``skipped_prices``). Raises
    JobError."""
    asked = _complete(session, constraints, PRICE_SETTINGS)
    return session.ask(f"FROM gpu_prices('{JOBS}')"), asked


def daily_prices(session: Session, constraints: Mapping[str, Any]) -> tuple[Result, dict[str, Any]]:
    """Return the lowest price of each card and price kind on each day on record (the rows of the macro
    ``daily_prices``), and the completed question. Raises JobError."""
    asked = _complete(session, constraints, DAILY_PRICE_SETTINGS)
    return session.ask(f"FROM daily_prices('{JOBS}')"), asked


def _complete(session: Session, constraints: Mapping[str, Any], allowed: tuple[str, ...]) -> dict[str, Any]:
    given = {name: value for name, value in constraints.items() if value not in (None, ())}
    for name in given:
        if name not in allowed:
            what = "past prices" if name in PRICE_SETTINGS else "prices"
            raise JobError(f"{what} cannot be chosen by {name}, only by {', '.join(allowed)}")
    # Prices depend on no model and no work, which every job must name.
    ((model,),) = session.ask("SELECT min(model) FROM main.models").rows
    asked = session.complete(Job(model=model, tokens=1, **given))
    left_out = next(session.ask(f"FROM skipped_prices('{JOBS}')").dicts(), {})
    return asked | {"skipped": {name: value for name, value in left_out.items() if value}}


def cheapest_of_each(prices: Result) -> Result:
    """Return the first of the prices of each card and price kind; ``prices``: rows of ``gpu_prices``."""
    first: dict[tuple[str, str], tuple[Any, ...]] = {}
    for row in prices.rows:
        named = dict(zip(prices.columns, row, strict=True))
        first.setdefault((named["gpu_id"], named["price_kind"]), row)
    return Result(prices.columns, prices.types, list(first.values()))


def price_notes(found: Result, asked: Mapping[str, Any]) -> list[str]:
    """Return what to know about prices: the cheapest, also of companies' own machines, and which offers are
    skipped. ``found``: rows of ``gpu_prices`` or ``daily_prices``; ``asked``: the job."""
    lines = []
    if "tier_class" in found.columns:
        first, own = next(found.dicts()), _own_machine(found)
        lines.append(f"The cheapest: {_price_text(first)}.")
        if own is None:
            lines.append("None of these is a company's own machine.")
        elif own != first:
            lines.append(f"The cheapest of a company's own machines: {_price_text(own)}.")
    return [*lines, *skipped(asked["skipped"])]


def _own_machine(found: Result) -> dict[str, Any] | None:
    """Return the cheapest price of a company's own machine that is not sold out and not in doubt, or None."""
    return next(
        (
            row
            for row in found.dicts()
            if row["tier_class"] == "dedicated" and row["available"] is not False and not row["doubt"]
        ),
        None,
    )


def _price_text(row: Mapping[str, Any]) -> str:
    machine = "" if row["gpu_count"] == 1 else f", in a machine of {row['gpu_count']}"
    return (
        f"{row['gpu']} at {row['provider']}{place_text(row)} ({kind_text(row['price_kind'])}), "
        f"${price_text(row['usd_per_gpu_hour'])} per GPU-hour{machine}"
    )


def no_price_text(asked: Mapping[str, Any]) -> str:
    """Return why there is no price, and what would show others; ``asked``: the question."""
    named = {name: value for name, value in asked["asked"].items() if name not in ("model", "tokens", "kind")}
    given = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in named.items())
    kinds = " or ".join(map(kind_text, asked["price_kinds"]))
    return f"no {kinds} price meets {given or 'this'}; --kind any asks for every kind"


def gpus(session: Session, text: str | None = None) -> Result:
    """Return the GPUs of the catalogue, or those with every word of ``text`` in a name: their specifications
    and cheapest prices (the table ``gpu_compare``). Raises JobError if there is none."""
    found = session.ask(
        """
        FROM main.gpu_compare
        WHERE ? IS NULL OR gpu_id IN (
            SELECT n.gpu_id
            FROM gpu_names() AS n
            JOIN main.gpus AS g USING (gpu_id)
            GROUP BY n.gpu_id
            HAVING has_words(string_agg(n.name, ' ') || ' ' || any_value(g.memory_gb)::INTEGER || 'gb', ?)
        )
        ORDER BY gpu_id
        """,
        [text, text],
    )
    return _some(found, "GPU", text)


def models(session: Session, text: str | None = None) -> Result:
    """Return the models that jobs can name, or those with every word of ``text`` in a name: parameters in
    billions, context in tokens, licence and id on the Hugging Face hub. Raises JobError if there is none."""
    found = session.ask(
        """
        SELECT
            model, params_total / 1e9 AS params_billion, params_active / 1e9 AS active_billion, max_context,
            licence, hf_id, title
        FROM main.models
        WHERE $1 IS NULL OR has_words(concat_ws(' ', model, title, hf_id), $1)
            OR name_key(base_model($1)) = name_key(model)
            OR model IN (
                SELECT n.meanings[1]
                FROM main.job_names AS n
                WHERE n.setting = 'model' AND has_words(n.name, base_model($1))
            )
        ORDER BY model
        """,
        [text],
    )
    return _some(found, "model", text)


def _some(found: Result, what: str, text: str | None) -> Result:
    if not found.rows:
        raise JobError(f"no {what} has {text!r} in its name; gpufare {what.lower()}s lists all of them")
    return found
