"""The commands of the pages that trace are run as written."""

import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeline.cli.main import main

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [(DOCS / page).read_text(encoding="utf-8") for page in ("how-to/trace.md", "explanation/tracing.md")]
TRACING = sorted({line for page in PAGES for line in re.findall(r"^gpufare trace .+", page, re.MULTILINE)})
(MY_TRAINING,) = (text for page in PAGES for text in re.findall(r"^```python\n(.+?)^```", page, re.M | re.S))


@pytest.mark.parametrize(
    "command",
    [pytest.param(each, marks=[pytest.mark.slow] if "--fit" in each else []) for each in TRACING],
)
def test_the_commands_answer(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_training.py").write_text(MY_TRAINING)
    monkeypatch.delitem(sys.modules, "my_training", raising=False)  # another test's
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(os.fspath(tmp_path))
    answer = CliRunner().invoke(main, shlex.split(command)[1:])
    assert answer.exit_code == 0, answer.output
    assert "fits" in answer.stdout
    assert ("largest micro-batch on" in answer.stdout) == ("--fit" in command)
