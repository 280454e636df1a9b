"""The commands of the pages that trace are run as written."""

import os
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeline.cli.main import main
from tests.documentation.pages import blocks, commands

TRACING = commands("gpufare trace ")
MY_TRAINING = next(block.text for block in blocks("python") if "def make_step" in block.text)


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
