"""Takes the picture of a morning for docs/how-to/dagster.md: python -m tests.orchestration.picture FOLDER

FOLDER must be new; it gets a data home and a Dagster home. Every source that needs no key is read from sample
pages on two days; on the second one, which is today, three sources break in three ways. This takes minutes.
"""

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

from playwright.sync_api import sync_playwright

from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.orchestration.keys import enabled_sources
from pipeline.orchestration.resources import PAGES_VARIABLE
from pipeline.refresh.refresh import refresh
from tests.homes import PAGES
from tests.nightly.lake.test_code_server import free_port, listens, running, wait_for
from tests.orchestration.conftest import TODAY, three_that_break
from tests.page.conftest import WIDE, browser_path

REPOSITORY = Path(__file__).parents[2]
PICTURE = REPOSITORY / "docs" / "images" / "morning.png"
HEIGHT = 900
JOBS = ("capture", "publish_tables", "morning_digest")


def live_through(folder: Path) -> dict[str, str]:
    """Fill the folder with a good day and a bad one. Return the environment for Dagster."""
    yesterday = TODAY - timedelta(days=1)
    at = datetime.combine(yesterday, time(7), UTC)
    home = Home(folder / "home")
    names = [config.name for config in enabled_sources() if not config.needs_key]
    assert refresh(home, day=yesterday, sources=names, pages=str(PAGES), environment={}, now=at).published
    (folder / "dagster").mkdir()
    shutil.copy(REPOSITORY / "dagster.yaml", folder / "dagster")
    with three_that_break(folder / "pages", names) as server:
        environment = os.environ | {HOME_VARIABLE: str(home.root), "DAGSTER_HOME": str(folder / "dagster")}
        environment |= {PAGES_VARIABLE: server.base_url}
        for job in JOBS:  # the run of `capture` fails, since sources failed
            program = str(Path(sys.executable).with_name("dagster"))
            command = [program, "job", "execute", "-m", "pipeline.definitions", "-j", job]
            subprocess.run(command, env=environment, check=job != "capture", timeout=1_800)
    return environment


if __name__ == "__main__":
    folder, port = Path(sys.argv[1]).absolute(), free_port()
    environment = live_through(folder)
    server = ["dagster-webserver", "-m", "pipeline.definitions", "-h", "127.0.0.1", "-p", str(port)]
    with running(server, environment), sync_playwright() as playwright:
        wait_for(lambda: listens(port), 60)
        browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDE, "height": HEIGHT}, color_scheme="light")
        page.goto(f"http://127.0.0.1:{port}/assets/morning?view=checks")
        page.get_by_text("What changed").wait_for(timeout=60_000)
        page.screenshot(path=PICTURE)
        browser.close()
