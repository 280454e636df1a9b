"""The report as an asset of Dagster: apart from the browser, whose event loop stays in its thread."""

import pytest

from pipeline.home.paths import HOME_VARIABLE, Home


def test_the_asset_writes_into_the_home_and_fails_alone(
    few_jobs: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dagster as dg

    from pipeline.orchestration.resources import GpufareHome
    from pipeline.orchestration.tables import report

    monkeypatch.setenv(HOME_VARIABLE, str(few_jobs.root))
    resources = {"home": GpufareHome()}
    assert dg.materialize([report], resources=resources).success
    assert (few_jobs.report / "index.html").stat().st_size > 50_000
    few_jobs.published.write_bytes(b"damaged")
    assert not dg.materialize([report], resources=resources, raise_on_error=False).success
    assert few_jobs.published.read_bytes() == b"damaged"
