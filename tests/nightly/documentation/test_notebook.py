"""The notebook of the tutorial runs from top to bottom, and a notebook can show what each cell gives."""

import ast
import json
from typing import Any

import pytest

from pipeline.home.paths import HOME_VARIABLE, Home
from tests.documentation.pages import PROJECT

NOTEBOOK = PROJECT / "docs" / "tutorial" / "notebook.ipynb"


def test_every_cell_runs(sample_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(sample_home.root))
    book = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    shown = [_last_value(cell, names) for cell in cells]
    assert len(cells) == 8
    tables = [value._repr_html_() for value in shown if hasattr(value, "_repr_html_")]
    assert len(tables) == 4
    assert all("<table" in table for table in tables)


def _last_value(cell: str, names: dict[str, Any]) -> Any:
    """The value of a cell's last expression, as a notebook shows it; None if its last line is a statement."""
    *before, last = ast.parse(cell).body
    exec(compile(ast.Module(before, []), "cell", "exec"), names)
    if not isinstance(last, ast.Expr):
        exec(compile(ast.Module([last], []), "cell", "exec"), names)
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)
