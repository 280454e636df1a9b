"""The wheel carries everything: installed outside the clone, the command answers on a published file."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pipeline.contracts.paths import HOME_VARIABLE, Home

PROJECT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, built and unpacked outside the clone."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=PROJECT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


def run(site: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the installed package: -P and -S keep the clone's editable install out of the way."""
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    code = (
        f"import sys; sys.path[:0] = [{str(site)!r}]; sys.path += {libraries!r}\n"
        "import gpufare, pipeline\n"
        "for package in (gpufare, pipeline):\n"
        "    assert package.__file__.startswith(sys.path[0]), package.__file__\n"
        "from pipeline.cli.main import main; main()"
    )
    return subprocess.run(
        [sys.executable, "-S", "-P", "-c", code, *arguments],
        cwd=home,
        env={HOME_VARIABLE: str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_wheel_carries_sql_and_catalog(installed: Path) -> None:
    bundled = installed / "pipeline" / "bundled"
    for room in ("sql", "catalog"):
        inside = {path.relative_to(bundled / room) for path in (bundled / room).rglob("*.*")}
        outside = {path.relative_to(PROJECT / room) for path in (PROJECT / room).rglob("*.*")}
        assert outside <= inside


def test_cheapest_answers_outside_the_clone(installed: Path, sample_home: Home) -> None:
    asked = ("cheapest", "--model", "llama-3.1-8b", "--method", "qlora", "--tokens", "100M")
    answer = run(installed, sample_home.root, *asked)
    assert answer.returncode == 0, answer.stderr
    assert "for the finished job" in answer.stdout


def test_sources_are_found_outside_the_clone(installed: Path, sample_home: Home) -> None:
    answer = run(installed, sample_home.root, "sources", "--format", "csv")
    assert answer.returncode == 0, answer.stderr
    assert "runpod" in answer.stdout
