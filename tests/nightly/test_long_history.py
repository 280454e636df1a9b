"""Sixty random days, with offers kept for thirty of them: as tests/warehouse/test_history.py, but longer."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.home.paths import Home
from pipeline.warehouse import history
from tests.warehouse.test_history import compare_growing_with_whole, connections, empty

__all__ = ["connections", "empty"]  # fixtures


@pytest.mark.parametrize("chunk_days", [5, 31])
def test_sixty_days_one_by_one_equal_the_whole_record(
    chunk_days: int, tmp_path: Path, connections: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "KEPT_DAYS", 30)
    monkeypatch.setattr(history, "CHUNK_DAYS", chunk_days)
    compare_growing_with_whole(Home(tmp_path / "home"), connections, 60, (3, 40, 59))
