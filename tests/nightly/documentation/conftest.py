"""The browser of tests/page."""

from tests.page.conftest import browser  # noqa: F401 - the same
