"""The generated pages are up to date, and the site is built from all pages without a warning."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from docs.generate import DOCS, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "run `make docs`"


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Sphinx warns of links and anchors that lead nowhere, and of pages that no menu has."""
    built = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-q",
            "-W",
            "--keep-going",
            "-d",
            tmp_path / "cache",
            DOCS,
            tmp_path,
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert "At most this many GPUs" in (tmp_path / "reference" / "commands.html").read_text(encoding="utf-8")


def test_the_page_of_environment_variables_has_all_and_no_others() -> None:
    page = (DOCS / "reference" / "environment.md").read_text(encoding="utf-8")
    code = " ".join(path.read_text(encoding="utf-8") for path in (DOCS.parent / "pipeline").rglob("*.py"))
    variables = set(re.findall(r"\bGPUFARE_[A-Z_]+\b", code))
    assert set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE)) == variables


def test_the_table_of_rooms_has_each_in_the_order_of_their_layers() -> None:
    settings = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (each["layers"] for each in settings["tool"]["importlinter"]["contracts"] if "layers" in each)
    ranks = {room: rank for rank, layer in enumerate(layers) for room in layer.split(" | ")}
    page = (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8")
    found = [
        name.removesuffix(".py").replace("/", ".") for name in re.findall(r"^\| `([\w/.]+)` \|", page, re.M)
    ]
    rooms = [room for room in found if room in ranks]
    assert set(rooms) == set(ranks)
    assert [ranks[room] for room in rooms] == sorted(ranks.values())
