"""The browser of tests/page, with the page of the whole sample day."""

from functools import partial
from pathlib import Path

import pytest

from pipeline.home.paths import Home
from tests.page.conftest import OpenPage, browser, home_of_few_jobs, opened  # noqa: F401 - the same


@pytest.fixture
def shown(opened: OpenPage, page_file: Path) -> OpenPage:  # noqa: F811
    """Opens the page of the sample day."""
    return partial(opened, page_file)


@pytest.fixture
def few_jobs(sample_home: Home, tmp_path: Path) -> Home:
    """A home of few jobs for one test."""
    return home_of_few_jobs(sample_home, tmp_path / "few")
