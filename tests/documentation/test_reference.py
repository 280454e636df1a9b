"""The generated pages are up to date, and tables of hand-written ones name what exists."""

import re

from docs.generate import DOCS, PAGES


def test_the_generated_pages_are_up_to_date() -> None:
    stale = [name for name, made in PAGES.items() if (DOCS / name).read_text(encoding="utf-8") != made()]
    assert stale == [], "run `make docs`"


def test_the_page_of_environment_variables_has_all_and_no_others() -> None:
    page = (DOCS / "reference" / "environment.md").read_text(encoding="utf-8")
    code = " ".join(path.read_text(encoding="utf-8") for path in (DOCS.parent / "pipeline").rglob("*.py"))
    variables = set(re.findall(r"\bGPUFARE_[A-Z_]+\b", code))
    assert set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE)) == variables
