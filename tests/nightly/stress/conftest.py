"""A lab for each test."""

from pathlib import Path

import pytest

from pipeline.home import paths
from tests.homes import shared_folder
from tests.nightly.stress.homes import SEED, Lab
from tests.nightly.stress.market import Market


@pytest.fixture
def lab(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A folder to work in; this process, too, has the small catalogue."""
    lab = Lab(tmp_path, shared_folder(tmp_path_factory), Market(SEED))
    monkeypatch.setattr(paths, "CATALOG_DIR", lab.catalogue)
    return lab
