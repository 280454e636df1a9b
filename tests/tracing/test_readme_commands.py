"""The commands of the README that trace are run as written."""

import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeline.cli.main import main
from tests.test_readme import COMMANDS, README

TRACING = [command for command in COMMANDS if command.startswith("gpufare trace ")]
MY_TRAINING = next(
    code for code in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "def make_step" in code
)


def test_the_readme_shows_how_to_trace() -> None:
    assert TRACING


@pytest.mark.parametrize("command", TRACING)
def test_the_commands_answer(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_training.py").write_text(MY_TRAINING)
    monkeypatch.delitem(sys.modules, "my_training", raising=False)  # another test's
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(os.fspath(tmp_path))
    answer = CliRunner().invoke(main, shlex.split(command)[1:])
    assert answer.exit_code == 0, answer.output
    assert "fits" in answer.stdout
    assert ("largest micro-batch on" in answer.stdout) == ("--fit" in command)
