"""The report in a browser, at one size. tests/nightly/page has all views at all sizes."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.home.paths import Home
from pipeline.page.html import page as page_of
from tests.conftest import facts_of, gpufare
from tests.page.conftest import OpenPage
from tests.page.shown import check_ranking, rows_of_command, table

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 2'>"

JOB = "#model=llama-3.1-8b&method=lora&tokens=100M"


def test_the_command_replaces_a_former_page(sample_home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "report"
    folder.mkdir(parents=True)
    (folder / "index.html").write_text("the page of before")
    (folder / "notes.txt").write_text("mine")
    answer = gpufare("report", str(folder), home=sample_home)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith(f"{folder / 'index.html'}: ")
    assert "published as of 2026-08-22" in answer.stderr
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "<!-- data -->" not in page
    assert len(page) < 1_000_000
    assert {path.name for path in folder.iterdir()} == {"index.html", "notes.txt"}


def test_it_answers_what_is_typed_as_the_command_does(
    opened: OpenPage, page_file: Path, sample_home: Home
) -> None:
    page = opened(page_file)
    page.fill("[name=tokens]", "30k x 812")
    page.fill("[name=epochs]", "3")
    page.select_option("[name=kind]", "any")
    check_ranking(page, sample_home)
    page.fill("[name=country]", "eu")
    page.fill("[name=max_hours]", "1 day")
    check_ranking(page, sample_home)
    assert {row["country"] for row in rows_of_command(page, sample_home)} >= {"FI", "FR"}


def test_the_address_has_the_job_and_back_undoes_a_change(opened: OpenPage, page_file: Path) -> None:
    page = opened(page_file, JOB)
    before = table(page, "#ranking")
    page.select_option("[name=kind]", "spot")
    page.fill("[name=max_usd]", "50")
    page.fill("[name=max_usd]", "500")
    changed = table(page, "#ranking")
    assert page.url.endswith(f"{JOB}&kind=spot&max_usd=500")
    assert table(opened(page_file, page.url[page.url.index("#") :]), "#ranking") == changed != before
    page.go_back()  # the amount, as one change
    assert page.url.endswith(f"{JOB}&kind=spot")
    page.go_back()
    assert page.url.endswith(JOB)
    assert page.input_value("[name=kind]") == ""
    assert table(page, "#ranking") == before


@pytest.mark.parametrize(
    ("changes", "said", "command"),
    [
        ("&seq_len=3000", "This page plans this recipe with sequences of", True),
        ("&stack=hf", "This page does not plan --stack", True),
        ("&lora_rank=5", "This page plans llama-3.1-8b with a rank of", True),
        ("&country=atlantis", "Country: no country atlantis", False),
        ("&tokens=many", "Tokens: 'many' is not a number such as 100M", False),
        ("&moon=1", "A job has no setting moon", False),
    ],
)
def test_another_job_is_never_answered(
    changes: str, said: str, command: bool, opened: OpenPage, page_file: Path
) -> None:
    page = opened(page_file, JOB + changes)
    assert said in page.inner_text("#refused")
    assert page.is_hidden("#ranking")
    assert "$" not in page.inner_text("#answer")
    assert page.locator("#answer code").count() == command


def test_a_job_without_an_answer_is_told_what_could_give(
    opened: OpenPage, page_file: Path, sample_home: Home
) -> None:
    page = opened(page_file, f"{JOB}&max_usd=1&gpus=1")
    assert "Nothing that is rented out runs this job" in page.inner_text("#answer")
    way = page.locator("#answer .ways li").first
    cost = way.inner_text().split("$")[-1].split(" ")[0]
    way.locator("button").click()
    assert cost in page.inner_text("#answer article >> nth=0")
    check_ranking(page, sample_home)


def test_tables_sort_filter_choose_columns_and_go_to_csv(opened: OpenPage, page_file: Path) -> None:
    page = opened(page_file, JOB)
    page.click("#ranking th.hours button")
    hours = [float(row["Hours"]) for row in table(page, "#ranking")]
    assert hours == sorted(hours)
    page.fill("#ranking [type=search]", "h100 nebius")
    found = table(page, "#ranking")
    assert found
    assert all("H100" in row["GPU"] and "Nebius" in row["Provider"] for row in found)
    page.click("#ranking .chooser summary")
    page.locator("#ranking .chooser").get_by_label("Region").check()
    page.locator("#ranking .chooser").get_by_label("Evidence").uncheck()
    assert "Region" in table(page, "#ranking")[0]
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").first.click()
    lines = Path(download.value.path()).read_text(encoding="utf-8-sig").splitlines()
    assert len(lines) == 1 + len(found)
    assert lines[0].startswith("rank,gpu_id,gpu_count,node_count,total_usd,total_usd_low,total_usd_high,")
    assert "region" in lines[0]
    assert "evidence" not in lines[0]
    again = opened(page_file, page.url[page.url.index("#") :])
    assert table(again, "#ranking") == table(page, "#ranking")


def test_scripts_ask_it_by_the_settings_of_the_command(
    opened: OpenPage, page_file: Path, sample_home: Home
) -> None:
    page = opened(page_file, f"{JOB}&kind=any&country=eu&gpus=4")
    rows = page.evaluate(
        """() => gpufare.ask({ model: "llama-3.1-8b", method: "lora", tokens: 1e8, kind: "any",
            country: ["eu"], gpus: 4 })"""
    )
    wanted = rows_of_command(page, sample_home)
    names = ("gpu_id", "gpu_count", "provider", "pick", "country")
    assert [[row[name] for name in names] for row in rows] == [
        [row[name] for name in names] for row in wanted
    ]
    assert [row["total_usd"] for row in rows] == [float(row["total_usd"]) for row in wanted]


def test_text_of_a_providers_page_stays_text(opened: OpenPage, page_file: Path, tmp_path: Path) -> None:
    facts, arrays = facts_of(page_file)
    for name in ("provider", "region", "instance_type", "tier"):
        facts["rentals"][name][0] = [HOSTILE for _ in facts["rentals"][name][0]]
    for table_name, column in (
        ("sources", "title"),
        ("sources", "last_error"),
        ("claims", "claim"),
        ("models", "title"),
    ):
        facts[table_name][column] = [HOSTILE for _ in facts[table_name][column]]
    facts["rentals"]["source_url"][0] = [
        "javascript:window.hit = 3" for _ in facts["rentals"]["source_url"][0]
    ]
    facts["sources"]["homepage"] = ["javascript:window.hit = 4" for _ in facts["sources"]["homepage"]]
    facts["sources"]["last_attempt_accepted"] = [False for _ in facts["sources"]["title"]]
    hostile = tmp_path / "hostile.html"
    hostile.write_text(page_of(facts, arrays), encoding="utf-8")
    page = opened(hostile, JOB)
    for section in ("#answer", "#ranking", "#job-text"):
        assert HOSTILE in page.inner_text(section)
    for view in ("sources", "audit"):
        page.click(f"nav [data-view={view}]")
        assert HOSTILE in page.inner_text(f"#{view}")
    assert page.evaluate("window.hit") is None
    assert page.query_selector_all("img, a[href^=javascript]") == []


def test_the_policy_forbids_markup_from_text(browser: "Browser", page_file: Path) -> None:
    with browser.new_context(offline=True) as context:
        page = context.new_page()
        page.goto(page_file.as_uri())
        policy = page.get_attribute("meta[http-equiv]", "content") or ""
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        tried = "() => { try { document.body.innerHTML = 'x'; } catch (error) { return error.name; } }"
        assert page.evaluate(tried) == "TypeError"
