"""What the page shows, compared with the answers of the command that it shows."""

import shlex
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any

from pipeline.cli.job_options import job_of_work
from pipeline.cli.questions import cheapest
from pipeline.home.paths import Home
from pipeline.questions.session import Session
from pipeline.questions.words import cautions
from pipeline.warehouse.query import reader

if TYPE_CHECKING:
    from playwright.sync_api import Page

NO_SETTINGS = ("day", "every", "form", "limit")


def cells(page: "Page") -> list[list[str]]:
    """The texts of the ranking, row by row."""
    found: list[list[str]] = page.eval_on_selector_all(
        ".ranking tbody tr", "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )
    return found


def rounded(amount: Decimal, places: int) -> str:
    """As SQL and people round: half a cent is a cent."""
    return f"{amount.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):,}"


def money(amount: Decimal) -> str:
    return f"${rounded(amount, 0 if amount >= 1000 else 2)}"


def digits(number: float) -> str:
    """Three significant digits, as `gpufare` and people write them."""
    number = float(f"{number:.3g}")
    return f"{number:,.0f}" if number >= 100 else f"{number:#.3g}"


def machine(row: dict[str, Any]) -> str:
    count = f"{row['gpu_count']} × " if row["gpu_count"] > 1 else ""
    return f"{count}{row['gpu']}" + (f" on {row['node_count']} machines" if row["node_count"] > 1 else "")


def percent(probability: float) -> str:
    if 0.99 < probability < 1:
        return "over 99%"
    return f"{int(round(100 * probability, 6))}%"


def rate(usd: Decimal) -> str:
    return f"${rounded(usd, 3 if usd < 1 else 2)}"


def one_line(text: str) -> str:
    return " ".join(text.split())


def price(row: dict[str, Any]) -> str:
    """The price of an hour, and the extra charge for CPU and memory."""
    host = row["host_usd_per_hour"]
    extra = rate(host) if host < Decimal("0.1") else f"${rounded(host, 2)}"
    return rate(row["usd_per_hour"]) + (f" + {extra} host" if host else "")


def in_band(text: str, low: Decimal, high: Decimal) -> bool:
    """True if the ends shown are SQL's, rounded outward to two digits."""
    shown = [Decimal(end.strip("$").replace(",", "")) for end in text.split("\n")[0].split(" to ")]
    steps = [max(Decimal(1).scaleb(end.adjusted() - 1), Decimal("0.01")) for end in (low, high)]
    return 0 <= low - shown[0] < steps[0] and 0 <= shown[1] - high < steps[1]


def check_ranking(page: "Page", home: Home) -> None:
    """The page's rows equal those of the command that it shows, cell by cell."""
    found = cells(page)
    command = shlex.split(page.inner_text("#answer code"))
    assert command[:2] == ["gpufare", "cheapest"]
    context = cheapest.make_context("cheapest", command[2:])
    settings = {name: value for name, value in context.params.items() if name not in NO_SETTINGS}
    with reader(home.published) as connection:
        rows = list(Session(connection).cheapest(job_of_work(settings)[0]).dicts())
    picks, rows = {row["rank"]: row for row in rows if row["pick"]}, rows[:10]
    assert len(found) == len(rows) > 0
    for shown, row in zip(found, rows, strict=True):
        rank, gpu, total, band, provider, hours, fit, evidence, per_hour, age = shown
        assert [rank, gpu, total, hours, fit, evidence, one_line(per_hour), age] == [
            str(row["rank"]), machine(row), money(row["total_usd"]), digits(row["hours"]),
            percent(row["fit_probability"]), row["evidence"], price(row), "1 day",
        ]  # fmt: skip
        assert in_band(band, row["total_usd_low"], row["total_usd_high"])
        assert provider.startswith(row["provider"])
        assert (row["country"] or "") in provider
        assert row["price_kind"].replace("_", "-") in provider
    (first,) = (row for row in picks.values() if "cheapest" in row["pick"])
    answer = page.inner_text("#answer")
    told = [one_line(pick) for pick in page.locator("#answer .picks li").all_inner_texts()]
    assert len(told) == len(picks)
    for rank, row in picks.items():
        where = f"{machine(row)}, {row['provider']}"
        (pick,) = [each for each in told if where in each and money(row["total_usd"]) in each]
        assert digits(row["hours"]) in pick, rank
        careful = "; ".join(cautions(row))
        assert pick.endswith(f" hours Careful: {careful}." if careful else " hours"), rank
    parts = (
        money(first["total_usd"]),
        machine(first),
        first["provider"],
        digits(first["hours"]),
        price(first),
    )
    assert [part for part in parts if part not in answer] == []
