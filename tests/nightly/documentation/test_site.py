"""The site is built from all pages without a warning."""

import subprocess
import sys
from pathlib import Path

from docs.generate import DOCS


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Sphinx warns of links and anchors that lead nowhere, and of pages that no menu has."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", tmp_path / "cache"]
    built = subprocess.run(
        [*command, DOCS, tmp_path], capture_output=True, text=True, timeout=300, check=False
    )
    assert built.returncode == 0, built.stderr
    assert "At most this many GPUs" in (tmp_path / "reference" / "commands.html").read_text(encoding="utf-8")
