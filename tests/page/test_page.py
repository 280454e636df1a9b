"""The report in a real browser: its answers are SQL's for every choice, and it is accessible."""

import re
import shlex
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from pipeline.cli.job_options import job_of_work
from pipeline.cli.questions import cheapest
from pipeline.home.paths import Home
from pipeline.page.html import page as page_of
from pipeline.page.write import write_report
from pipeline.questions.session import Session
from pipeline.warehouse.query import ask, reader
from tests.conftest import WRITTEN, facts_of
from tests.page.conftest import PHONE, VIEWED, WIDE, OpenPage

HOSTILE = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 2'>"

CHOICES = (
    "#job=llama-3.1-8b-qlora-10m&kind=spot&place=us",
    "#job=8b-assistant-10k-examples&kind=any&tier=dedicated",
    "#job=mistral-7b-v0.3-full-100m-8192&kind=any&place=eu&tier=dedicated",
    "#job=llama-2-7b-lora-100b&kind=reserved",
    "#job=llama-3.1-8b-lora-100m&kind=serverless",
)
"""For each choice, one other than the first, together and alone."""


def cells(page: Page) -> list[list[str]]:
    """The texts of the ranking, row by row."""
    return page.eval_on_selector_all(
        ".ranking tbody tr", "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )


def rounded(amount: Decimal, places: int) -> str:
    """As SQL and people round: half a cent is a cent."""
    return f"{amount.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):,}"


def money(amount: Decimal) -> str:
    return f"${rounded(amount, 0 if amount >= 1000 else 2)}"


def digits(number: float) -> str:
    """Three significant digits, as `gpufare` and people write them."""
    rounded = float(f"{number:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:#.3g}"


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


def host(usd: Decimal) -> str:
    """The extra charge for CPU and memory."""
    return "" if usd == 0 else f" + {rate(usd) if usd < Decimal('0.1') else f'${rounded(usd, 2)}'} host"


def in_band(text: str, low: Decimal, high: Decimal) -> bool:
    """True if the ends shown are SQL's, rounded outward to two digits."""
    shown = [Decimal(end.strip("$").replace(",", "")) for end in text.split("\n")[0].split(" to ")]
    steps = [max(Decimal(1).scaleb(end.adjusted() - 1), Decimal("0.01")) for end in (low, high)]
    return 0 <= low - shown[0] < steps[0] and 0 <= shown[1] - high < steps[1]


@pytest.mark.parametrize("chosen", CHOICES)
def test_ranked_cells_and_the_command_are_those_of_sql(
    chosen: str, opened: OpenPage, sample_home: Home
) -> None:
    """The page's rows equal those of the command that it shows, cell by cell."""
    page = opened(chosen)
    found = cells(page)
    command = shlex.split(page.inner_text("#answer code"))
    assert command[:2] == ["gpufare", "cheapest"]
    context = cheapest.make_context("cheapest", command[2:])
    settings = {name: value for name, value in context.params.items() if name not in NO_SETTINGS}
    job, _, _ = job_of_work(settings)
    with reader(sample_home.published) as connection:
        rows = list(Session(connection).cheapest(job, 10).dicts())
    assert len(found) == len(rows) > 0
    for shown, row in zip(found, rows, strict=True):
        rank, gpu, total, band, provider, hours, fit, evidence, per_hour, age = shown
        assert [rank, gpu, total] == [str(row["rank"]), machine(row), money(row["total_usd"])]
        assert in_band(band, row["total_usd_low"], row["total_usd_high"])
        assert provider.startswith(row["provider"])
        assert (row["country"] or "") in provider
        assert row["price_kind"].replace("_", "-") in provider
        assert [hours, fit] == [digits(row["hours"]), percent(row["fit_probability"])]
        assert evidence == row["evidence"]
        assert one_line(per_hour) == rate(row["usd_per_hour"]) + host(row["host_usd_per_hour"])
        assert age == "1 day"
    first = rows[0]
    answer = page.inner_text("#answer")
    price = rate(first["usd_per_hour"]) + host(first["host_usd_per_hour"])
    for part in (money(first["total_usd"]), machine(first), first["provider"], digits(first["hours"]), price):
        assert part in answer


def test_one_offer_has_one_price_everywhere(opened: OpenPage) -> None:
    """Modal charges CPU and memory besides the card: the price is that of the command, the host is said."""
    page = opened("#job=llama-3.1-8b-lora-100m&kind=serverless")
    (price,) = re.findall(r"\$\S+ \+ \$\S+ host", page.inner_text("#answer"))
    assert price in one_line(page.inner_text(".ranking tbody tr:first-child"))
    assert price in one_line(page.inner_text("#compare"))


PAPER = 720
"""The width in CSS pixels of A4 within usual margins."""

NO_SETTINGS = ("day", "form", "limit")


def test_every_ranked_number_of_the_grid_is_sqls(opened: OpenPage, sample_home: Home) -> None:
    """All workloads and price kinds, against the published table."""
    page = opened()
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
    assert len(found) > 9_000
    assert sorted(found) == sorted(wanted)


def test_the_best_of_each_gpu_is_sqls(opened: OpenPage, sample_home: Home) -> None:
    """Rank, total and reason of every GPU."""
    page = opened("#job=llama-3.1-8b-lora-100m&kind=any")
    page.click("#why-not .more")
    rows = page.eval_on_selector_all(
        "#why-not tbody tr", "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )
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


def test_choices_change_the_answer_and_stand_in_the_address(opened: OpenPage) -> None:
    page = opened()
    before = cells(page)
    page.select_option("#kind", "spot")
    page.select_option("#model", "model:llama-3.1-70b")
    page.select_option("#method", "qlora")
    after = cells(page)
    assert after != before
    assert "job=llama-3.1-70b-qlora-100m" in page.url
    assert "kind=spot" in page.url
    assert cells(opened(page.url[page.url.index("#") :])) == after
    page.evaluate("location.hash = '#job=llama-3.1-8b-lora-100m'")
    page.wait_for_function("document.title.includes('llama-3.1-8b-lora-100m')")
    assert cells(page) == before


def test_impossible_deadline_is_reported(opened: OpenPage) -> None:
    page = opened()
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


def test_an_address_of_another_page_is_not_an_error(opened: OpenPage) -> None:
    page = opened("#job=gone&kind=barter&place=moon&one=none&verdict=who")
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


def test_a_place_of_the_answer_is_not_one_of_the_reasons(opened: OpenPage) -> None:
    """The table of reasons is for machines anywhere, and calls nothing the answer under a filter."""
    page = opened("#job=llama-3.1-8b-lora-100m&place=eu")
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
    only = page.evaluate("rankedText([{}], { inTime: 1 })")
    assert only == "The only way"


@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "light"), (PHONE, "dark")])
def test_everybody_can_read_it(scheme: str, width: int, opened: OpenPage) -> None:
    page = opened(width=width, scheme=scheme)
    for table in ("#history", "#pareto"):  # those of thousands of rows are built alike
        page.click(f"{table} summary")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.emulate_media(color_scheme="light" if scheme == "dark" else "dark")
    colours = Axe().run(page, options={"runOnly": ["color-contrast"], "resultTypes": ["violations"]})
    assert colours.violations_count == 0, colours.generate_report()
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    found = Axe().run(page, options={"resultTypes": ["violations"]})
    assert found.violations_count == 0, found.generate_report()


def test_a_phone_shows_a_ranked_row_in_two_lines(opened: OpenPage) -> None:
    page = opened(width=PHONE)
    heights = page.eval_on_selector_all(
        ".ranking tbody tr", "rows => rows.map(row => row.getBoundingClientRect().height)"
    )
    assert max(heights) < 66
    places = page.eval_on_selector_all("*", "all => all.map(each => getComputedStyle(each).position)")
    assert not {"sticky", "fixed"} & set(places)


def test_it_prints(opened: OpenPage) -> None:
    page = opened()
    page.emulate_media(media="print")
    hidden = page.eval_on_selector_all(
        "nav, .controls, .command button", "all => all.map(e => e.offsetParent)"
    )
    assert not any(hidden)
    assert page.is_visible(".money")
    page.set_viewport_size({"width": PAPER, "height": 1000})
    widths = page.eval_on_selector_all("table", "all => all.map(each => each.getBoundingClientRect().width)")
    assert 0 < max(widths) <= PAPER
    assert page.pdf().startswith(b"%PDF")


def test_the_keyboard_reaches_the_choices_and_the_answer_is_announced(opened: OpenPage) -> None:
    page = opened()
    reached = []
    for _ in range(9):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert reached == ["skip", "model", "method", "tokens", "seq", "kind", "place", "tier", ""]
    assert page.get_attribute("#answer-body", "aria-live") == "polite"


def test_a_table_stands_behind_every_chart(opened: OpenPage) -> None:
    page = opened("#job=llama-3.1-8b-lora-100m&kind=any")
    charts = page.query_selector_all("figure.chart [role=img]")
    assert len(charts) == 4
    for chart in charts:
        assert chart.get_attribute("aria-label")
        section = chart.evaluate_handle(
            "chart => chart.closest('.two > div') || chart.closest('section')"
        ).as_element()
        assert section is not None
        summary = section.query_selector("summary")
        assert summary is not None
        summary.click()
        said = re.search(r"\(([\d,]+) rows?\)", summary.inner_text())
        assert said is not None
        section.wait_for_selector("details[open] tbody tr")
        rows = section.query_selector_all("details[open] tbody tr")
        assert len(rows) == int(said[1].replace(",", "")) > 0


def test_text_of_a_providers_page_stays_text(opened: OpenPage, page_file: Path, tmp_path: Path) -> None:
    facts = facts_of(page_file)
    for name in ("provider", "region", "instance_type", "tier"):
        facts["offers"][name] = [HOSTILE for _ in facts["offers"][name]]
    facts["offers"]["source_url"] = ["javascript:window.hit = 3" for _ in facts["offers"]["source_url"]]
    facts["sources"]["title"] = [HOSTILE for _ in facts["sources"]["title"]]
    facts["sources"]["last_error"] = [HOSTILE for _ in facts["sources"]["title"]]
    facts["sources"]["last_attempt_accepted"] = [False for _ in facts["sources"]["title"]]
    facts["workloads"]["title"] = [HOSTILE for _ in facts["workloads"]["title"]]
    facts["claims"]["claim"] = [HOSTILE for _ in facts["claims"]["claim"]]
    file = tmp_path / "hostile.html"
    file.write_text(page_of(facts), encoding="utf-8")
    page = opened(file=file)
    for section in ("#answer", "#ranking", "#sources", "#audit"):
        assert HOSTILE in page.inner_text(section)
    assert page.evaluate("window.hit") is None
    assert page.query_selector_all("img, a[href^=javascript]") == []
    assert page.evaluate("document.scripts.length") == 8


def test_prices_have_their_age_on_the_day_of_viewing(opened: OpenPage) -> None:
    fresh = opened(at=VIEWED)
    assert "1 day ago" in fresh.inner_text("#published")
    assert "old" not in fresh.inner_text("#ranking")
    assert "current" in fresh.inner_text("#sources")
    later = opened(at=VIEWED + timedelta(days=30))
    assert "31 days ago" in later.inner_text("#published")
    assert "An old page: write a new one before you rent." in later.inner_text("#published")
    later.evaluate("D.written_ms = Date.now(); showPublished()")
    assert "Old prices: refresh, then write the page again." in later.inner_text("#published")
    assert later.inner_text("#ranking").count("31 days, old") == 10
    assert "stale" in later.inner_text("#sources")
    earlier = opened(at=datetime(2026, 8, 1, tzinfo=UTC))
    assert "after today" in earlier.inner_text("#published")


def test_a_day_without_a_price_is_a_gap(opened: OpenPage, page_file: Path, tmp_path: Path) -> None:
    facts = facts_of(page_file)
    first = facts["history"]["days"] - 4
    facts["history"]["series"] = [["rtx-4090", "on_demand", "RunPod", first, [0.34, None, 0.36, 0.4]]]
    file = tmp_path / "history.html"
    file.write_text(page_of(facts), encoding="utf-8")
    page = opened("#historyGpu=rtx-4090", file=file)
    page.click("#history summary")
    rows = page.eval_on_selector_all(
        "#history tbody tr", "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )
    newest = date.fromisoformat(facts["history"]["first_day"]) + timedelta(days=first + 3)
    days = [str(newest - timedelta(days=age)) for age in range(4)]
    assert rows == [list(row) for row in zip(days, ["$0.400", "$0.360", "no price", "$0.340"], strict=True)]
    drawn = page.evaluate("drawn.get('history').plot.data[1]")
    assert drawn == [0.34, None, 0.36, 0.4]
    assert page.evaluate("drawn.get('history').plot.series[1].spanGaps") is False


def test_page_without_ranked_prices_reports_it(opened: OpenPage, few_jobs: Home, tmp_path: Path) -> None:
    """Every price is too old, as after weeks without a refresh."""
    with duckdb.connect(str(few_jobs.published)) as connection:
        for table in ("rentals", "cost_hours_pareto", "price_list", "price_history"):
            connection.execute(f"DELETE FROM {table}")
    page = opened(file=write_report(few_jobs, tmp_path / "report", WRITTEN))
    assert "Nothing on offer runs this job" in page.inner_text("#answer")
    assert "There is nothing to rank" in page.inner_text("#ranking")
    assert "no source has a ranked price for it" in page.inner_text("#why-not")


def test_the_policy_forbids_markup_from_text(browser: Browser, page_file: Path) -> None:
    with browser.new_context(offline=True) as context:
        page = context.new_page()
        page.goto(page_file.as_uri())
        policy = page.get_attribute("meta[http-equiv]", "content") or ""
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        tried = "() => { try { document.body.innerHTML = 'x'; } catch (error) { return error.name; } }"
        assert page.evaluate(tried) == "TypeError"
