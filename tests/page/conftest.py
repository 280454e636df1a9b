"""One browser for each module, and pages opened in it. Playwright is imported when a browser is asked for."""

import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSER_VARIABLE = "GPUFARE_BROWSER"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

VIEWED = datetime(2026, 8, 23, 12, tzinfo=UTC)
"""The day after the sample prices."""

WIDE, PHONE = 1440, 390


def browser_path() -> str:
    """The browser of GPUFARE_BROWSER, or one of the usual names. Skips the test where there is none."""
    chosen = os.environ.get(BROWSER_VARIABLE)
    found = chosen or next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser found; {BROWSER_VARIABLE} names one: {', '.join(BROWSERS)} were looked for")
    return found


# Of one module: Playwright keeps an event loop in this thread, beside which others' tests cannot have theirs.
@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        yield running
        running.close()


OpenPage = Callable[..., "Page"]


@pytest.fixture
def opened(browser: "Browser") -> Iterator[OpenPage]:
    """Opens a page from disk without a network; fails the test where it wrote an error to the console or
    asked for anything but itself."""
    troubles: list[str] = []
    contexts = []

    def open_page(
        file: Path, hash_text: str = "", width: int = WIDE, scheme: str = "light", at: datetime = VIEWED
    ) -> "Page":
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
            offline=True,
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        page.clock.set_fixed_time(at)
        page.on("console", lambda said: troubles.append(said.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        ours = (file.as_uri(), "data:")
        page.on("request", lambda asked: None if asked.url.startswith(ours) else troubles.append(asked.url))
        page.goto(f"{file.as_uri()}{hash_text}")
        page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not troubles
