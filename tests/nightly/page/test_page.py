"""The page of the whole sample day: its answers are SQL's for every choice, and everybody can read it."""

import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from pipeline.home.paths import Home
from pipeline.page.html import page as page_of
from pipeline.page.write import write_report
from pipeline.warehouse.query import ask, reader
from tests.conftest import WRITTEN, facts_of
from tests.page.conftest import PHONE, VIEWED, WIDE, OpenPage
from tests.page.shown import cells, check_ranking, digits, money, one_line, percent

CHOICES = (
    "#job=mistral-7b-v0.3-full-100m-8192&kind=any&place=eu&tier=dedicated",
    "#job=llama-2-7b-lora-100b&kind=reserved",
    "#job=llama-3.1-8b-lora-100m&kind=serverless",
)
"""For each choice, one other than the first, together and alone."""

CELLS = "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"


def test_ranked_cells_and_the_command_are_those_of_sql(shown: OpenPage, sample_home: Home) -> None:
    for chosen in CHOICES:
        page = shown(chosen)
        check_ranking(page, sample_home)
    # Modal charges CPU and memory besides the card: one offer has one price everywhere.
    (price,) = re.findall(r"\$\S+ \+ \$\S+ host", page.inner_text("#answer"))
    assert price in one_line(page.inner_text(".ranking tbody tr:first-child"))
    assert price in one_line(page.inner_text("#compare"))


PAPER = 720
"""The width in CSS pixels of A4 within usual margins."""


def test_every_ranked_number_of_the_grid_is_sqls(shown: OpenPage, sample_home: Home) -> None:
    """All workloads and price kinds, against the published table."""
    page = shown()
    found = page.evaluate(
        """() => D.workloads.workload.flatMap((name, job) => D.answers.kinds.slice(0, -1).flatMap((kind, k) =>
            ranking({ job, kind: k, place: 0, tier: 0 }).rows.map((row) =>
                [name, kind.name, row.rank, ...row.machine, row.offer.provider, money(row.total),
                  hours(row.hours), percent(row.plan.fit), row.plan.evidence])))"""
    )
    query = """SELECT workload, price_kind, rank, gpu_id, gpu_count, node_count, provider, total_usd, hours,
                fit_probability, evidence
                FROM cheapest_gpu_per_workload WHERE objective = 'cost' AND rank <= 10"""
    with reader(sample_home.published) as connection:
        rows = ask(connection, query).rows
    wanted = [[*row[:7], money(row[7]), digits(row[8]), percent(row[9]), row[10]] for row in rows]
    assert len(found) > 7_000
    assert sorted(found) == sorted(wanted)


def test_the_best_of_each_gpu_is_sqls(shown: OpenPage, sample_home: Home) -> None:
    """Rank, total and reason of every GPU."""
    page = shown("#job=llama-3.1-8b-lora-100m&kind=any")
    page.click("#why-not .more")
    rows = page.eval_on_selector_all("#why-not tbody tr", CELLS)
    query = """WITH _mine AS (SELECT 'llama-3.1-8b' AS model, 1e8 AS tokens, 'any' AS kind)
                SELECT gpu, min(rank), arg_min(total_usd, rank) FROM cheapest_for('_mine') GROUP BY gpu"""
    with reader(sample_home.published) as connection:
        ranked = ask(connection, query).rows
        every = ask(connection, "SELECT count(*) FROM gpus").rows[0][0]
    assert len(rows) == every
    assert {row[0]: row[1:3] for row in rows if row[1]} == {
        gpu: [f"{rank:,}", money(total)] for gpu, rank, total in ranked
    }
    assert all(": " in row[4] for row in rows if not row[1])


def test_choices_stand_in_the_address(shown: OpenPage) -> None:
    page = shown()
    before = cells(page)
    page.select_option("#kind", "spot")
    page.select_option("#model", "model:llama-3.1-70b")
    page.select_option("#method", "qlora")
    assert page.url.endswith("#job=llama-3.1-70b-qlora-100m&kind=spot")
    assert cells(shown(page.url[page.url.index("#") :])) == cells(page) != before
    page.evaluate("location.hash = '#job=llama-3.1-8b-lora-100m'")
    page.wait_for_function("document.title.includes('llama-3.1-8b-lora-100m')")
    assert cells(page) == before


def test_impossible_deadline_is_reported(shown: OpenPage) -> None:
    page = shown()
    late = page.evaluate(
        """() => D.workloads.workload.flatMap((name, job) => D.answers.kinds.map((kind, k) =>
            [name, kind.name, ranking({ job, kind: k, place: 0, tier: 0 })])).find(
            ([name, kind, { rows, note }]) => rows.length && !note.inTime && note.wait)"""
    )
    page.evaluate("([job, kind]) => change({ job, kind })", late[:2])
    answer = page.inner_text("#answer")
    assert "Nothing finishes within the hours wanted" in answer
    assert "If you can wait, it costs $" in answer
    assert "cheapest" not in page.inner_text(".ranking caption")
    assert "Times rank 1" in page.inner_text("#why-not thead")


def test_an_address_of_another_page_is_not_an_error(shown: OpenPage) -> None:
    page = shown("#job=gone&kind=barter&place=moon&one=none&verdict=who")
    assert len(cells(page)) == 10
    said = page.inner_text("[role=status]")
    assert "This page has no job gone; shown is llama-3.1-8b-lora-100m." in said
    assert all(f" {name}; shown is " in said for name in ("barter", "moon", "none", "who"))
    verdict = page.evaluate("D.claims.verdict[0]")
    page.evaluate("verdict => { location.hash = `#verdict=${verdict}`; }", verdict)
    page.wait_for_function("verdict => document.getElementById('verdict').value === verdict", arg=verdict)
    count = page.evaluate("verdict => D.claims.verdict.filter((each) => each === verdict).length", verdict)
    assert page.inner_text("#audit caption") == f"{count} claim{'' if count == 1 else 's'}."
    assert page.is_hidden("[role=status]")


def test_a_place_of_the_answer_is_not_one_of_the_reasons(shown: OpenPage) -> None:
    """The table of reasons is for machines anywhere, and calls nothing the answer under a filter."""
    page = shown("#job=llama-3.1-8b-lora-100m&place=eu")
    page.fill("#find", "l40s")
    assert page.inner_text("#why-not code").endswith(" --not-gpu l40s")
    page.fill("#find", "")
    table = page.inner_text("#why-not tbody")
    assert "cheapest anywhere, of all machines" in table
    assert "the answer" not in table
    assert "(on-demand, European Union)" in page.inner_text(".ranking caption")
    page.select_option("#place", "anywhere")
    assert "the answer" in page.inner_text("#why-not tbody")
    assert re.search(r"fits; cheapest with \d+ GPUs?\n", page.inner_text("#why-not tbody"))


@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "light"), (PHONE, "dark")])
def test_everybody_can_read_it(scheme: str, width: int, shown: OpenPage) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = shown(width=width, scheme=scheme)
    for table in ("#history",):  # those of thousands of rows are built alike
        page.click(f"{table} summary")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.emulate_media(color_scheme="light" if scheme == "dark" else "dark")
    colours = Axe().run(page, options={"runOnly": ["color-contrast"], "resultTypes": ["violations"]})
    assert colours.violations_count == 0, colours.generate_report()
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    found = Axe().run(page, options={"resultTypes": ["violations"]})
    assert found.violations_count == 0, found.generate_report()
    heights = page.eval_on_selector_all(
        ".ranking tbody tr", "rows => rows.map(row => row.getBoundingClientRect().height)"
    )
    assert width != PHONE or max(heights) < 66  # two lines
    places = page.eval_on_selector_all("*", "all => all.map(each => getComputedStyle(each).position)")
    assert width != PHONE or not {"sticky", "fixed"} & set(places)


def test_it_prints_and_the_keyboard_reaches_the_choices(shown: OpenPage) -> None:
    page = shown()
    reached = []
    for _ in range(9):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert reached == ["skip", "model", "method", "tokens", "seq", "kind", "place", "tier", ""]
    assert page.get_attribute("#answer-body", "aria-live") == "polite"
    page.emulate_media(media="print")
    hidden = "all => all.map(e => e.offsetParent)"
    assert not any(page.eval_on_selector_all("nav, .controls, .command button", hidden))
    page.set_viewport_size({"width": PAPER, "height": 1000})
    widths = page.eval_on_selector_all("table", "all => all.map(each => each.getBoundingClientRect().width)")
    assert 0 < max(widths) <= PAPER
    assert page.pdf().startswith(b"%PDF")


def test_a_table_stands_behind_every_chart(shown: OpenPage) -> None:
    page = shown("#job=llama-3.1-8b-lora-100m&kind=any")
    charts = page.locator("figure.chart [role=img]").all()
    assert len(charts) == 3
    for chart in charts:
        assert chart.get_attribute("aria-label")
        section = chart.locator("xpath=(ancestor::section | ancestor::div[parent::*[@class='two']])[last()]")
        section.locator("summary").first.click()
        (said,) = re.findall(r"\(([\d,]+) rows?\)", section.locator("summary").first.inner_text())
        section.locator("details[open] tbody tr").first.wait_for()
        assert section.locator("details[open] tbody tr").count() == int(said.replace(",", "")) > 0


def test_prices_have_their_age_on_the_day_of_viewing(shown: OpenPage) -> None:
    fresh = shown(at=VIEWED)
    assert "1 day ago" in fresh.inner_text("#published")
    assert "old" not in fresh.inner_text("#ranking")
    assert "current" in fresh.inner_text("#sources")
    later = shown(at=VIEWED + timedelta(days=30))
    assert "31 days ago" in later.inner_text("#published")
    assert "An old page: write a new one before you rent." in later.inner_text("#published")
    later.evaluate("D.written_ms = Date.now(); showPublished()")
    assert "Old prices: refresh, then write the page again." in later.inner_text("#published")
    assert later.inner_text("#ranking").count("31 days, old") == 10
    assert "stale" in later.inner_text("#sources")
    earlier = shown(at=datetime(2026, 8, 1, tzinfo=UTC))
    assert "after today" in earlier.inner_text("#published")


def test_a_day_without_a_price_is_a_gap(opened: OpenPage, page_file: Path, tmp_path: Path) -> None:
    facts = facts_of(page_file)
    first = facts["history"]["days"] - 4
    facts["history"]["series"] = [["rtx-4090", "on_demand", "RunPod", first, [0.34, None, 0.36, 0.4]]]
    file = tmp_path / "history.html"
    file.write_text(page_of(facts), encoding="utf-8")
    page = opened(file, "#historyGpu=rtx-4090")
    page.click("#history summary")
    rows = page.eval_on_selector_all("#history tbody tr", CELLS)
    newest = date.fromisoformat(facts["history"]["first_day"]) + timedelta(days=first + 3)
    days = [str(newest - timedelta(days=age)) for age in range(4)]
    assert rows == [list(row) for row in zip(days, ["$0.400", "$0.360", "no price", "$0.340"], strict=True)]
    drawn = page.evaluate("drawn.get('history').plot.data[1]")
    assert drawn == [0.34, None, 0.36, 0.4]
    assert page.evaluate("drawn.get('history').plot.series[1].spanGaps") is False


def test_page_without_ranked_prices_reports_it(opened: OpenPage, few_jobs: Home, tmp_path: Path) -> None:
    """Every price is too old, as after weeks without a refresh."""
    with duckdb.connect(str(few_jobs.published)) as connection:
        for table in ("rentals", "price_list", "price_history"):
            connection.execute(f"DELETE FROM {table}")
    page = opened(write_report(few_jobs, tmp_path / "report", WRITTEN))
    assert "Nothing on offer runs this job" in page.inner_text("#answer")
    assert "There is nothing to rank" in page.inner_text("#ranking")
    assert "no source has a ranked price for it" in page.inner_text("#why-not")
