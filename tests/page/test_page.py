"""The report of two jobs in a browser, at one size. tests/nightly/page has the whole page at all sizes."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.home.paths import Home
from pipeline.page.html import page as page_of
from tests.conftest import facts_of, gpufare
from tests.page.conftest import OpenPage, home_of_few_jobs
from tests.page.shown import cells, check_ranking

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 2'>"


@pytest.fixture(scope="module")
def home(sample_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home of few jobs. Read only."""
    return home_of_few_jobs(sample_home, tmp_path_factory.mktemp("few") / "home")


@pytest.fixture(scope="module")
def file(home: Home) -> Path:
    """The page that the command writes in place of a former one."""
    folder = home.root / "deep" / "report"
    folder.mkdir(parents=True)
    (folder / "index.html").write_text("the page of before")
    (folder / "notes.txt").write_text("mine")
    answer = gpufare("report", str(folder), home=home)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith(f"{folder / 'index.html'}: ")
    assert "published as of 2026-08-22" in answer.stderr
    return folder / "index.html"


def test_the_command_replaces_a_former_page(file: Path) -> None:
    page = file.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "<!-- data -->" not in page
    assert {path.name for path in file.parent.iterdir()} == {"index.html", "notes.txt"}


def test_its_answer_is_that_of_the_command_and_changes_with_a_choice(
    opened: OpenPage, file: Path, home: Home
) -> None:
    page = opened(file, "#job=llama-3.1-8b-lora-100m&kind=any")
    check_ranking(page, home)
    before = cells(page)
    page.select_option("#kind", "spot")
    assert cells(page) != before
    check_ranking(page, home)


def test_text_of_a_providers_page_stays_text(opened: OpenPage, file: Path, tmp_path: Path) -> None:
    facts = facts_of(file)
    for table, column in (
        *(("offers", name) for name in ("provider", "region", "instance_type", "tier")),
        *(("sources", "title"), ("sources", "last_error"), ("workloads", "title"), ("claims", "claim")),
    ):
        facts[table][column] = [HOSTILE for _ in facts[table][column]]
    facts["offers"]["source_url"] = ["javascript:window.hit = 3" for _ in facts["offers"]["source_url"]]
    facts["sources"]["last_attempt_accepted"] = [False for _ in facts["sources"]["title"]]
    hostile = tmp_path / "hostile.html"
    hostile.write_text(page_of(facts), encoding="utf-8")
    page = opened(hostile)
    for section in ("#answer", "#ranking", "#sources", "#audit"):
        assert HOSTILE in page.inner_text(section)
    assert page.evaluate("window.hit") is None
    assert page.query_selector_all("img, a[href^=javascript]") == []
    assert page.evaluate("document.scripts.length") == 8


def test_the_policy_forbids_markup_from_text(browser: "Browser", file: Path) -> None:
    with browser.new_context(offline=True) as context:
        page = context.new_page()
        page.goto(file.as_uri())
        policy = page.get_attribute("meta[http-equiv]", "content") or ""
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        tried = "() => { try { document.body.innerHTML = 'x'; } catch (error) { return error.name; } }"
        assert page.evaluate(tried) == "TypeError"
