"""The page of the whole sample day: every view, at both sizes, for everybody."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from pipeline.home.paths import Home
from pipeline.page.html import page as page_of
from pipeline.page.write import write_report
from pipeline.questions.numbers import price_text
from pipeline.warehouse.query import ask, reader
from tests.conftest import WRITTEN, facts_of
from tests.page.conftest import PHONE, VIEWED, WIDE, OpenPage
from tests.page.shown import SETTLED, check_ranking, one_line, table

JOB = "#model=llama-3.1-8b&method=lora&tokens=100M"

VIEWS = (
    f"{JOB}&kind=any",
    f"{JOB}&max_usd=1&gpus=1",
    f"{JOB}&seq_len=3000",
    "#view=prices&card=h100-sxm-80gb&other=rtx-4090",
    "#view=error",
    "#view=sources",
    "#view=audit",
    "#view=method",
)
"""Every view, and the kinds of answers."""


@pytest.mark.parametrize(
    "limits",
    [
        "&kind=any&country=eu&tier=dedicated",
        "&epochs=200&kind=reserved&max_term_days=400",
        "&kind=serverless",
        "&kind=spot&objective=time&exclude_gpu=h100",
        "&gpus=64&min_gpus=16&max_nodes=8",
    ],
)
def test_rows_and_picks_are_those_of_the_command(limits: str, shown: OpenPage, sample_home: Home) -> None:
    check_ranking(shown(JOB + limits), sample_home)


def test_an_extra_charge_for_the_host_is_told(shown: OpenPage) -> None:
    """Modal charges CPU and memory besides the card."""
    page = shown(f"{JOB}&kind=serverless")
    assert any(" host" in row["USD/hour"] for row in table(page, "#ranking"))


WHY = {
    "why_mine": "SELECT 'llama-3.1-8b' AS model, 1e8 AS tokens, 'any' AS kind, 'eu' AS country",
    "why_jobs": "FROM completed_jobs('why_mine')",
    "why_settings": "SELECT * REPLACE (64 AS max_gpus) FROM why_jobs",
    "why_plans": "FROM job_plans('why_settings')",
    "why_ranked": "FROM cheapest_for('why_mine')",
}
"""The tables behind the reasons why GPUs are not in a ranking."""


def test_each_gpu_has_its_rank_or_the_reason_why_not(shown: OpenPage, sample_home: Home) -> None:
    page = shown(f"{JOB}&kind=any&country=eu")
    page.wait_for_selector(SETTLED)
    page.click("#why .more")
    rows = table(page, "#why")
    with reader(sample_home.published) as connection:
        for name, query in WHY.items():
            ask(connection, f"CREATE TEMP TABLE {name} AS {query}")
        every = ask(connection, "SELECT count(*) FROM gpus").rows[0][0]
        ranked = ask(
            connection, "SELECT gpu, min(rank), arg_min(total_usd, rank) FROM why_ranked GROUP BY gpu"
        ).rows
        why = ask(
            connection, "SELECT gpu_id, reason FROM why_not_for('why_jobs', 'why_plans', 'why_ranked')"
        ).rows
    reasons = dict(why)
    assert len(rows) == every
    assert {row["GPU"]: (row["Best rank"], row["Total, USD"]) for row in rows if row["Best rank"]} == {
        gpu: (str(rank), f"${price_text(total)}") for gpu, rank, total in ranked
    }
    told = page.evaluate("() => D.gpus.gpu_id.map((gpu) => [gpu, reasonOf(current.job, gpu).reason])")
    # The page has no rentals whose network is too slow for any plan.
    alike = {"network_too_slow": "not_rented_in_that_number"}
    differing = {
        gpu: (reason, reasons[gpu])
        for gpu, reason in told
        if reasons[gpu] != "ranked" and reason != alike.get(reasons[gpu], reasons[gpu])
    }
    assert differing == {}


def test_prices_are_those_of_the_command(shown: OpenPage, sample_home: Home) -> None:
    page = shown("#view=prices&card=h100-sxm-80gb&price=on_demand")
    page.click("#card-prices .more")
    with reader(sample_home.published) as connection:
        wanted = ask(
            connection,
            """WITH _mine AS (SELECT 'h100-sxm-80gb' AS gpu)
            SELECT provider, min(usd_per_gpu_hour) FROM prices_for('_mine') GROUP BY provider""",
        ).rows
    cheapest: dict[str, str] = {}
    for row in table(page, "#card-prices"):
        cheapest.setdefault(row["Provider"], row["USD/GPU-hour"])
    assert cheapest == {provider: price_text(usd) for provider, usd in wanted}


@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "light"), (PHONE, "dark")])
@pytest.mark.parametrize("view", VIEWS)
def test_everybody_can_read_it(view: str, scheme: str, width: int, shown: OpenPage) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = shown(view, width=width, scheme=scheme)
    for summary in page.locator("summary:visible").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.emulate_media(color_scheme="light" if scheme == "dark" else "dark")
    colours = Axe().run(page, options={"runOnly": ["color-contrast"], "resultTypes": ["violations"]})
    assert colours.violations_count == 0, colours.generate_report()
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    found = Axe().run(page, options={"resultTypes": ["violations"]})
    assert found.violations_count == 0, found.generate_report()


def test_nothing_is_cut_on_a_phone(shown: OpenPage) -> None:
    """Cells stand below one another, in cards within the width."""
    for view in ("", "#view=prices", "#view=sources"):
        page = shown(view, width=PHONE)
        ends = page.eval_on_selector_all(
            ".grid tbody td, .grid tbody th",
            "all => all.filter(e => e.offsetParent).map(e => e.getBoundingClientRect().right)",
        )
        assert 0 < max(ends) <= PHONE


def _tabbed(page: object, presses: int) -> Sequence[str]:
    reached = []
    for _ in range(presses):
        page.keyboard.press("Tab")  # type: ignore[attr-defined]
        reached.append(
            page.evaluate(  # type: ignore[attr-defined]
                "(({ name, dataset, className: c }) => name || dataset.view || c)(document.activeElement)"
            )
        )
    return reached


def test_it_prints_and_the_keyboard_reaches_the_choices(shown: OpenPage) -> None:
    page = shown()
    assert _tabbed(page, 13) == [
        "skip", "job", "prices", "error", "sources", "audit", "method", "model", "method", "tokens",
        "epochs", "seq_len", "kind",
    ]  # fmt: skip
    assert page.get_attribute("#answer-body", "aria-live") == "polite"
    page.emulate_media(media="print")
    hidden = "all => all.map(e => e.offsetParent)"
    assert not any(page.eval_on_selector_all("nav, .controls, .command button", hidden))
    page.set_viewport_size({"width": PAPER, "height": 1000})
    widths = page.eval_on_selector_all("table", "all => all.map(each => each.getBoundingClientRect().width)")
    assert 0 < max(widths) <= PAPER
    assert page.pdf().startswith(b"%PDF")


PAPER = 720
"""The width in CSS pixels of A4 within usual margins."""


def test_a_table_stands_behind_every_chart(shown: OpenPage) -> None:
    page = shown("#view=error")
    charts = page.locator("figure.chart [role=img]").all()
    assert len(charts) == 2
    for summary in page.locator("#error summary").all():
        summary.click()
    assert all(chart.get_attribute("aria-label") for chart in charts)
    assert page.locator("#error details[open] tbody tr").count() > 1000


def test_prices_have_their_age_on_the_day_of_viewing(shown: OpenPage) -> None:
    fresh = shown(at=VIEWED)
    assert "1 day ago" in fresh.inner_text("#published")
    assert "old" not in fresh.inner_text("#ranking tbody")
    assert fresh.is_hidden("#old")
    later = shown(at=VIEWED + timedelta(days=30))
    assert "31 days ago" in later.inner_text("#published")
    assert "These prices are 31 days old" in later.inner_text("#old")
    assert "An old page: write a new one." in later.inner_text("#old")
    later.evaluate("D.written_ms = Date.now(); showPublished()")
    assert "Old prices: refresh, then write the page again." in later.inner_text("#old")
    assert later.inner_text("#ranking").count("31 days, old") == 15
    later.click("nav [data-view=sources]")
    assert "stale" in later.inner_text("#sources")
    earlier = shown(at=datetime(2026, 8, 1, tzinfo=UTC))
    assert "after today" in earlier.inner_text("#published")


def test_the_history_of_one_day_is_bars_and_a_day_without_a_price_is_a_gap(
    opened: OpenPage, page_file: Path, tmp_path: Path
) -> None:
    facts, arrays = facts_of(page_file)
    first = facts["history"]["days"] - 4
    facts["history"]["series"] = [
        ["rtx-4090", "on_demand", "RunPod", first, [0.34, None, 0.36, 0.4]],
        ["rtx-3090", "on_demand", "RunPod", first, [0.22]],
        ["rtx-3090", "on_demand", "Vast", first, [0.11]],
    ]
    file = tmp_path / "history.html"
    file.write_text(page_of(facts, arrays), encoding="utf-8")
    page = opened(file, "#view=prices&card=rtx-4090")
    page.click("#card-history summary")
    rows = page.eval_on_selector_all(
        "#card-history tbody tr", "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )
    newest = date.fromisoformat(facts["history"]["first_day"]) + timedelta(days=first + 3)
    days = [str(newest - timedelta(days=age)) for age in range(4)]
    prices = ["$0.40", "$0.36", "no price", "$0.34"]
    assert rows == [list(row) for row in zip(days, prices, strict=True)]
    assert page.evaluate("drawn.get('history').plot.data[1]") == [0.34, None, 0.36, 0.4]
    assert page.evaluate("drawn.get('history').plot.series[1].spanGaps") is False
    one_day = opened(file, "#view=prices&card=rtx-3090")
    bars = [one_line(bar) for bar in one_day.locator("#card-history .bars li").all_inner_texts()]
    assert bars == ["Vast $0.11", "RunPod $0.22"]
    assert one_day.locator("#card-history canvas").count() == 0


def test_page_without_ranked_prices_reports_it(opened: OpenPage, sample_home: Home, tmp_path: Path) -> None:
    """Every price is too old, as after weeks without a refresh."""
    home = Home(tmp_path / "home")
    home.published.parent.mkdir(parents=True)
    home.published.write_bytes(sample_home.published.read_bytes())
    with duckdb.connect(str(home.published)) as connection:
        for name in ("rentals", "price_list", "price_history"):
            connection.execute(f"DELETE FROM {name}")
    page = opened(write_report(home, tmp_path / "report", WRITTEN), JOB)
    assert "Nothing that is rented out runs this job" in page.inner_text("#answer")
    assert "There is nothing to rank" in page.inner_text("#ranking")
    page.wait_for_selector(SETTLED)
    assert "no source has a ranked price for it" in page.inner_text("#why")
