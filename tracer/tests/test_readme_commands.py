"""The commands of the pages that trace are run as written."""

import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpufare_tracer.kept import read_table
from pipeline.cli.main import main
from pipeline.home import paths

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [(DOCS / page).read_text(encoding="utf-8") for page in ("how-to/trace.md", "explanation/tracing.md")]
TRACING = sorted({line for page in PAGES for line in re.findall(r"^gpufare trace .+", page, re.MULTILINE)})
CODE = (
    text for page in PAGES for text in re.findall(r"^```python\n(.+?)^```", page, re.MULTILINE | re.DOTALL)
)
MODULES = dict(zip(("my_training", "my_trainer"), CODE, strict=True))


@pytest.mark.parametrize("command", TRACING)
def test_the_commands_answer(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, code in MODULES.items():
        (tmp_path / f"{module}.py").write_text(code)
        monkeypatch.delitem(sys.modules, module, raising=False)  # another test's
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(os.fspath(tmp_path))
    answer = CliRunner().invoke(main, shlex.split(command)[1:])
    assert answer.exit_code == 0, answer.output
    assert "fits" in answer.stdout
    assert ("largest micro-batch on" in answer.stdout) == ("--fit" in command)


def test_the_page_names_the_recipes_that_measured_runs_confirm() -> None:
    stated = re.findall(r"^\| `([\w-]+)` \| (\d+) \|$", PAGES[1], re.MULTILINE)
    rows = read_table(paths.CATALOG_DIR / "recipe_settings.csv")
    assert dict(stated) == {
        row["recipe"]: row["agreeing_runs"] for row in rows if row["agreeing_runs"] != "0"
    }
