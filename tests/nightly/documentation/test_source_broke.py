"""docs/how-to/source-broke.md: what a source answered is taken from the archive as it says, and read."""

import json
import os
import subprocess
import sys
from pathlib import Path

from pipeline.home.paths import HOME_VARIABLE, Home
from tests.documentation.pages import blocks


def test_a_capture_of_the_archive_is_a_folder_of_saved_pages(sample_home: Home, tmp_path: Path) -> None:
    (block,) = (each for each in blocks("console") if each.text.startswith("mkdir -p saved\n"))
    tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", block.text],
        cwd=tmp_path,
        env=os.environ | {"PATH": tools, HOME_VARIABLE: str(sample_home.root)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    offers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert {offer["source"] for offer in offers} == {"runpod"}
    assert f"runpod  accepted  {len(offers)} offers" in done.stdout
