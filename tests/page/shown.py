"""What the page shows, compared with the answers of the command that it shows."""

import math
import shlex
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pipeline.cli.job_options import job_of_work
from pipeline.cli.questions import cheapest
from pipeline.home.paths import Home
from pipeline.questions.numbers import number_text, price_text
from pipeline.questions.reasons import percent_text
from pipeline.questions.session import Session
from pipeline.questions.tables import gpus_paid
from pipeline.questions.words import cautions, safety_text
from pipeline.warehouse.query import reader

if TYPE_CHECKING:
    from playwright.sync_api import Page

NO_SETTINGS = ("day", "every", "form", "limit")

SETTLED = "html[data-settled]"
"""What the page is once it has nothing more to show, a moment after the last key."""

ROWS = 15
"""Number of rows that a table shows at first."""


def table(page: "Page", place: str) -> list[dict[str, str]]:
    """The cells of a table that is shown, row by row, keyed by the titles of the columns."""
    page.wait_for_selector(SETTLED)
    found: list[dict[str, str]] = page.eval_on_selector_all(
        f"{place} tbody tr",
        """rows => rows.map(row => Object.fromEntries([...row.cells].map(cell =>
            [cell.dataset.title, cell.innerText.trim()])))""",
    )
    return found


def money(amount: Decimal) -> str:
    return f"${price_text(amount)}"


def machine(row: dict[str, Any]) -> str:
    nodes = f" on {row['node_count']} machines" if row["node_count"] > 1 else ""
    return f"{gpus_paid(row)} × {row['gpu']}{nodes}"


def one_line(text: str) -> str:
    return " ".join(text.split())


def rows_of_command(page: "Page", home: Home) -> list[dict[str, Any]]:
    """The ranking of the command that the page shows."""
    command = shlex.split(page.inner_text("#answer code"))
    assert command[:2] == ["gpufare", "cheapest"]
    context = cheapest.make_context("cheapest", command[2:])
    settings = {name: value for name, value in context.params.items() if name not in NO_SETTINGS}
    with reader(home.published) as connection:
        return list(Session(connection).cheapest(job_of_work(settings)[0]).dicts())


def check_ranking(page: "Page", home: Home) -> None:
    """The page's rows and picks equal those of the command that it shows, text by text."""
    rows = rows_of_command(page, home)
    found = table(page, "#ranking")
    assert len(found) == min(len(rows), ROWS) > 0
    for shown, row in zip(found, rows, strict=False):
        host = row["host_usd_per_hour"]
        wanted = {
            "Rank": str(row["rank"]),
            "GPU": machine(row),
            "Total, USD": money(row["total_usd"]),
            "p10 to p90": f"{money(row['total_usd_low'])} to {money(row['total_usd_high'])}",
            "Hours": number_text(row["hours"]),
            "USD/hour": price_text(row["usd_per_hour"]),
            "P(fits)": percent_text(row["fit_probability"]),
            "Evidence": row["evidence"],
        }
        got = shown | {"USD/hour": shown["USD/hour"].partition("+")[0].strip()}
        assert {name: got[name] for name in wanted} == wanted
        assert ("host" in shown["USD/hour"]) == bool(host)
        provider = one_line(shown["Provider"])
        assert provider.startswith(row["provider"])
        assert (row["country"] or "?") in provider
        assert row["price_kind"].replace("_", "-") in provider
    _check_picks(page, rows)


def _check_picks(page: "Page", rows: list[dict[str, Any]]) -> None:
    """The cards are the picks, each with its cost, hours, speed and cautions."""
    picks = [row for row in rows if row["pick"]]
    cards = [one_line(card) for card in page.locator("#answer article").all_inner_texts()]
    assert len(cards) == len(picks)
    for row in picks:
        parts = [machine(row), row["provider"], money(row["total_usd"]), f"{number_text(row['hours'])} hours"]
        (card,) = [each for each in cards if all(part in each for part in parts)]
        assert f"{math.floor(row['tokens_per_second'] + 0.5):,} tokens/s, {row['evidence']}" in card
        careful = "; ".join(cautions(row))
        assert (f"Careful: {careful}." in card) if careful else ("Careful" not in card)
        assert ("safest" not in row["pick"]) or safety_text(row)[1:] in card
        assert f"Rent at {row['provider']}" in card
