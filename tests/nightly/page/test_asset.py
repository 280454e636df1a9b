"""The report as an asset of Dagster: apart from the browser, whose event loop stays in its thread."""

import shutil
from pathlib import Path

import pytest

from pipeline.home.paths import HOME_VARIABLE, Home


def test_the_asset_writes_into_the_home_and_fails_alone(
    sample_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dagster as dg

    from pipeline.orchestration.resources import GpufareHome
    from pipeline.orchestration.tables import report

    home = Home(tmp_path)
    home.published.parent.mkdir()
    shutil.copyfile(sample_home.published, home.published)
    monkeypatch.setenv(HOME_VARIABLE, str(home.root))
    resources = {"home": GpufareHome()}
    assert dg.materialize([report], resources=resources).success
    assert (home.report / "index.html").stat().st_size > 50_000
    home.published.write_bytes(b"damaged")
    assert not dg.materialize([report], resources=resources, raise_on_error=False).success
    assert home.published.read_bytes() == b"damaged"
