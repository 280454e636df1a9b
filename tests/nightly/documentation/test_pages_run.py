"""Every command of the pages answers that no other test is named for, every Python example runs, and the site
is built from them."""

import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.home.paths import HOME_VARIABLE, Home
from tests.conftest import gpufare
from tests.documentation.pages import PROJECT, blocks
from tests.documentation.test_commands import BLOCKS_ELSEWHERE, HERE
from tests.nightly.processes import output_of
from tests.page.conftest import PHONE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LABELS = "provider,raw_label,kind,context,gpu_count\nrunpod,NVIDIA L40S,gpu_name,,1\n"
RUNS = "run_id,model,gpu,method,micro_batch,seq_len\nmine,llama-3-8b,rtx-4090,qlora,1,2048\n"
PRICES = (
    "day,gpu,provider,price_kind,usd_per_gpu_hour,source\n"
    "2026-03-01,NVIDIA H100 SXM 80GB,Acme,on_demand,2.49,https://acme.example/prices\n"
)
TOOLS = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
PYTHON = sorted({block.page for block in blocks("python") if not block.is_not_run} - set(BLOCKS_ELSEWHERE))


@pytest.fixture
def place(tmp_path: Path, sample_home: Home, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of a reader of the pages: files of the clone, a home, and CSV files."""
    shutil.copytree(sample_home.root, tmp_path / "home")
    for name in ("tests", "sql"):
        (tmp_path / name).symlink_to(PROJECT / name)
    (tmp_path / "gpufare.duckdb").symlink_to(sample_home.published)
    for name, text in (("labels.csv", LABELS), ("runs.csv", RUNS), ("prices.csv", PRICES)):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    return tmp_path


def test_every_command_answers(place: Path) -> None:
    wrong = []
    for command in HERE:
        answer = gpufare(*shlex.split(command)[1:])
        if answer.returncode != 0 or not answer.stdout.strip():
            wrong.append(f"{command}: {answer.stdout}{answer.stderr}")
    assert not wrong


@pytest.mark.parametrize("page", PYTHON)
def test_the_python_of_a_page_runs(page: str, place: Path) -> None:
    code = "\n".join(block.text for block in blocks("python") if block.page == page)
    assert output_of([sys.executable, "-c", code], cwd=place).strip()


def test_bash_completes_commands_options_and_values(place: Path) -> None:
    page = (PROJECT / "docs" / "how-to" / "ask.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"`(eval \"[^`]+)`", page)
    for typed, completed in (
        ("gpufare che", "cheapest"),
        ("gpufare cheapest --min-f", "--min-fit-probability"),
        ("gpufare sql --format rec", "record"),
    ):
        asked = f"COMP_WORDS=({typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _gpufare_completion gpufare"
        command = ["bash", "-c", f'{line}; {asked}; echo "${{COMPREPLY[@]}}"']
        assert output_of(command, env=os.environ | TOOLS).split() == [completed]


def test_a_capture_of_the_archive_is_a_folder_of_saved_pages(sample_home: Home, tmp_path: Path) -> None:
    """docs/how-to/source-broke.md: what a source answered is taken from the archive as it says, and read."""
    (block,) = (each for each in blocks("console") if each.text.startswith("mkdir -p saved\n"))
    variables = os.environ | TOOLS | {HOME_VARIABLE: str(sample_home.root)}
    said = output_of(["bash", "-e", "-c", block.text], cwd=tmp_path, env=variables)
    offers = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert {offer["source"] for offer in offers} == {"runpod"}
    accepted = int(re.findall(r"^runpod  accepted  (\d+) offers", said, re.MULTILINE)[0])
    held = int(re.findall(r"^runpod: prices held until they are confirmed: (\d+)$", said, re.MULTILINE)[0])
    assert accepted + held == len(offers)


@pytest.fixture(scope="module")
def site(sample_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site with the examples' results. Sphinx warns of links and anchors that lead nowhere, and of pages
    that no menu has, and fails."""
    built = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", built.with_name("cache")]
    output_of([*command, "-D", f"demo_home={sample_home.root}", PROJECT / "docs", built])
    return built


def test_the_site_has_each_option_and_the_results_of_the_examples(site: Path) -> None:
    reference = site / "reference"
    assert "At most this many GPUs" in (reference / "commands.html").read_text(encoding="utf-8")
    table = (reference / "tables" / "offers.html").read_text(encoding="utf-8")
    assert "<svg" in table
    assert re.search(r"the table has [\d,]+ rows, and this query returns [\d,]+ rows", table)


def test_the_site_is_searched_from_disk_and_fits_a_phone(site: Path, browser: "Browser") -> None:
    page = browser.new_page(viewport={"width": PHONE, "height": 900})
    troubles: list[str] = []
    page.on("console", lambda said: troubles.append(said.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(f"{(site / 'search.html').as_uri()}?q=total_usd")
    page.wait_for_selector("#search-results a:has-text('cheapest_gpu_per_workload')")
    assert troubles == []
    wide = []
    for file in sorted(site.rglob("*.html")):
        page.goto(file.as_uri())
        if page.evaluate("document.documentElement.scrollWidth") > PHONE:
            wide.append(file.name)
    assert wide == []
