"""Takes the picture of the report that the README shows: python -m tests.page.picture PAGE.html

PAGE is what `gpufare report` wrote of the demo's home; it is looked at on the morning after its prices.
"""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.page.conftest import VIEWED, WIDE, browser_path

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "report.png"

if __name__ == "__main__":
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDE, "height": 960}, color_scheme="light")
        page.clock.set_fixed_time(VIEWED)
        page.goto(Path(sys.argv[1]).absolute().as_uri())
        page.wait_for_selector("html[data-ready]")
        page.screenshot(path=PICTURE)
        browser.close()
