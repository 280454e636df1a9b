"""The browser of tests/page, with the page of the whole sample day."""

from functools import partial
from pathlib import Path

import pytest

from tests.page.conftest import OpenPage, browser, opened  # noqa: F401 - the same


@pytest.fixture
def shown(opened: OpenPage, page_file: Path) -> OpenPage:  # noqa: F811
    """Opens the page of the sample day."""
    return partial(opened, page_file)
