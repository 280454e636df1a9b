"""Values that a shell completes, from the published file and then from the user's cache."""

import json
import os
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from pipeline.cli.main import main
from pipeline.home.paths import HOME_VARIABLE, Home


@pytest.fixture
def cache(tmp_path: Path, sample_home: Home, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(HOME_VARIABLE, str(sample_home.root))
    return tmp_path / "gpufare" / "names.json"


def completed(*words: str) -> list[str]:
    *before, last = words
    shell = BashComplete(main, {}, "gpufare", "_GPUFARE_COMPLETE")
    return [item.value for item in shell.get_completions(list(before), last)]


def test_values_are_completed_by_what_they_name(cache: Path) -> None:
    assert completed("cheapest", "--model", "qwen3-3") == ["qwen3-30b-a3b", "qwen3-32b"]
    assert "h200-sxm-141gb" in completed("prices", "H200")
    assert completed("cheapest", "--gpu", "a100,rtx-4090-4") == ["a100,rtx-4090-48gb"]
    assert completed("cheapest", "--provider", "volt") == ["voltage-park"]
    assert completed("cheapest", "--country", "norw") == ["norway"]
    assert completed("cheapest", "--kind", "res") == ["reserved"]
    assert completed("cheapest", "--method", "ql") == ["qlora"]
    assert completed("refresh", "--source", "runp") == completed("confirm", "runp") == ["runpod"]
    assert completed("ex") == ["explain", "export"]


def test_names_are_read_again_once_another_file_is_published(cache: Path, sample_home: Home) -> None:
    assert completed("cheapest", "--model", "qwen3-32") == ["qwen3-32b"]
    kept = json.loads(cache.read_text())
    cache.write_text(json.dumps(kept | {"names": {"model": ["kept"]}}))
    assert completed("cheapest", "--model", "k") == ["kept"]
    cache.write_text(json.dumps(kept | {"version": ["another"], "names": {"model": ["kept"]}}))
    assert completed("cheapest", "--model", "k") != ["kept"]
    cache.write_text("damaged")
    assert completed("cheapest", "--model", "qwen3-32") == ["qwen3-32b"]
    assert json.loads(cache.read_text()) == kept


def test_own_models_are_completed_as_soon_as_they_are_added(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    home.root.mkdir()
    monkeypatch.setenv(HOME_VARIABLE, str(home.root))
    assert completed("cheapest", "--model", "mine") == []
    home.models.write_text("model,layers\nmine-1b,24\n")
    assert completed("cheapest", "--model", "mine") == ["mine-1b"]
    assert completed("cheapest", "--gpu", "mine") == []
    home.models.write_text("layers,layers\n")
    assert completed("cheapest", "--model", "mine") == []


def test_nothing_is_said_where_nothing_is_published(cache: Path, tmp_path: Path) -> None:
    os.environ[HOME_VARIABLE] = str(tmp_path / "empty")  # restored by the fixture
    assert completed("cheapest", "--model", "qwen") == []
    assert not cache.exists()
