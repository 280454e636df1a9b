"""Real answers beside the checkout, which are no part of the project."""

from pathlib import Path

import pytest

CAPTURES = next(
    (folder for parent in Path(__file__).parents if (folder := parent / "shared" / "captures").is_dir()), None
)


def capture(name: str) -> str:
    """A captured answer as text; the test is skipped where there is none."""
    if CAPTURES is None or not (CAPTURES / name).is_file():
        pytest.skip("no captures beside the checkout")
    return (CAPTURES / name).read_text(encoding="utf-8")
