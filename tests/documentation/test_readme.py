"""The answer, the figures and the questions of the README, and the examples in sql/examples.

tests/nightly/documentation runs its other commands as they are written.
"""

import re
import shlex

import pytest

from pipeline.capture.permissions import Choices, why_off
from pipeline.catalog.schema import table_names
from pipeline.catalog.source_config import asked_configs
from pipeline.home.paths import SQL_DIR, Home
from pipeline.warehouse.query import ask, reader
from tests.conftest import gpufare
from tests.documentation.pages import PROJECT, WRITTEN, commands

README = (PROJECT / "README.md").read_text(encoding="utf-8")
EXAMPLES = sorted((SQL_DIR / "examples").glob("*.sql"))


def test_the_answer_that_it_shows_is_the_answer(sample_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tutorial shows its first lines, too. After a change of prices or the model, copy the new answer.

    It is that of the demo, which leaves out the sources that a first refresh does not ask.
    """
    monkeypatch.setenv("COLUMNS", "100")
    (asked,) = [line for line in commands("gpufare cheapest") if line.endswith("qlora --tokens 100M")]
    off = [name for name, config in asked_configs().items() if why_off(config, Choices(), {})]
    words = shlex.split(asked)[1:]
    title, *_ = gpufare(*words, home=sample_home).stdout.splitlines()
    answer = gpufare(*words, "--exclude-source", ",".join(off), home=sample_home).stdout.splitlines()
    answer.append(title)
    for page in (README, (PROJECT / "docs" / "tutorial" / "index.md").read_text(encoding="utf-8")):
        (shown,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
        assert [line for line in shown.splitlines() if line not in answer] == []


def test_each_example_has_an_answer_and_each_published_table_an_example(sample_home: Home) -> None:
    examples = {path.stem: path.read_text(encoding="utf-8") for path in EXAMPLES}
    with reader(sample_home.published) as connection:
        empty = [name for name, text in examples.items() if not ask(connection, text).columns]
    assert empty == []
    assert set(table_names()) - examples.keys() == set()


def test_every_link_to_a_file_leads_to_one() -> None:
    """`make docs` also checks the links within the site, and their anchors."""
    link_to_a_file = r"\]\((?!\w+:)([^)#\s]+)"
    links = [(page, link) for page in WRITTEN for link in re.findall(link_to_a_file, page.read_text())]
    assert len(links) > 50
    assert [f"{page}: {link}" for page, link in links if not (page.parent / link).exists()] == []
