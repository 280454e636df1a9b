"""Dagster, imported by the first test that needs it, and runs of its assets in this process."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.home.paths import Home
from tests.homes import PAGES
from tests.refresh.faulty_server import FaultyServer, says
from tests.scenario import HOSTILE, times

if TYPE_CHECKING:
    import dagster as dg

TODAY = datetime.now(UTC).date()

THREE = ("lambda", "linode", "verda")


def three_that_break(folder: Path, names: Iterable[str]) -> FaultyServer:
    """Serve the pages of sources, of which THREE break: a page has no prices, prices are a hundred times as
    high as they were, and a host has an error."""
    for name in names:
        shutil.copytree(PAGES / name, folder / name)
    for page in (folder / "lambda").glob("*.html"):
        page.write_text(f"<html><body>{HOSTILE}</body></html>", encoding="utf-8")
    list_of_prices = folder / "linode" / "types.json"
    times_a_hundred = times(r'("hourly": )(\d+\.?\d*)', "100")
    list_of_prices.write_text(times_a_hundred(list_of_prices.read_text(encoding="utf-8")), encoding="utf-8")
    return FaultyServer(folder, {"verda": says(503)})


@pytest.fixture(scope="session")
def defs() -> "dg.Definitions":
    """What Dagster loads."""
    from pipeline.definitions import defs

    return defs


@dataclass(frozen=True)
class Run:
    """A run that has ended."""

    result: "dg.ExecuteInProcessResult"
    instance: "dg.DagsterInstance"

    def _events(self, kind: str) -> list[Any]:
        return [event for event in self.result.all_events if event.event_type_value == kind]

    @property
    def success(self) -> bool:
        return self.result.success

    @property
    def failures(self) -> list[str]:
        found = [event.step_failure_data for event in self._events("STEP_FAILURE")]
        return [str(data.user_failure_data or data.error) for data in found]

    @property
    def made(self) -> set[tuple[str, ...]]:
        """The keys of the materialized assets."""
        return {tuple(event.asset_key.path) for event in self._events("ASSET_MATERIALIZATION")}

    @property
    def checked(self) -> dict[str, "dg.AssetCheckEvaluation"]:
        """The checks of sources, by source, or else by their names."""
        evaluated = self.result.get_asset_check_evaluations()
        names = [e.check_name if e.check_name != "expectations" else e.asset_key.path[-1] for e in evaluated]
        return dict(zip(names, evaluated, strict=True))

    def metadata(self, *key: str) -> dict[str, Any]:
        """The metadata of a materialized asset."""
        (found,) = [
            event for event in self._events("ASSET_MATERIALIZATION") if event.asset_key.path == [*key]
        ]
        return {name: value.value for name, value in found.materialization.metadata.items()}

    def skipped(self) -> dict[tuple[str, ...], str]:
        """Why assets were skipped."""
        events = self._events("ASSET_OBSERVATION")
        seen = [event.asset_observation_data.asset_observation for event in events]
        return {tuple(each.asset_key.path): each.metadata["skipped"].value for each in seen}

    def notice_failure(self, home: Home) -> None:
        """Let the sensor of failed runs see that the run failed."""
        import dagster as dg

        from pipeline.orchestration.failures import failed_runs
        from pipeline.orchestration.resources import GpufareHome

        (event,) = self._events("PIPELINE_FAILURE")
        context = dg.build_run_status_sensor_context("sensor", event, self.instance, self.result.dagster_run)
        failed_runs(context.for_run_failure(), home=GpufareHome(root=f"{home.root}"))


@dataclass(frozen=True)
class Dagster:
    """Materializes assets in this process."""

    instance: "dg.DagsterInstance"

    def run(self, assets: Sequence[Any], home: Home, pages: str = "", **options: Any) -> Run:
        import dagster as dg

        from pipeline.orchestration.resources import GpufareHome

        options |= {"resources": {"home": GpufareHome(root=f"{home.root}", pages=pages)}}
        ran = dg.materialize(assets, instance=self.instance, raise_on_error=False, **options)
        return Run(ran, self.instance)

    def sources(self, names: str, home: Home, pages: str = "", day: date = TODAY) -> Run:
        """One run of sources, whose names have spaces between."""
        from pipeline.catalog.source_config import source_config
        from pipeline.orchestration.keys import CAPTURE_STEP, offers_key
        from pipeline.orchestration.source_assets import source_assets

        return self.run(
            [source_assets([source_config(name) for name in names.split()])],
            home,
            pages,
            selection=[offers_key(name) for name in names.split()],
            run_config={"ops": {CAPTURE_STEP: {"config": {"day": str(day)}}}},
        )

    def publish(self, home: Home) -> Run:
        from pipeline.orchestration.tables import published_tables

        return self.run([published_tables], home, str(PAGES))  # no minutes for the plans of every model


@pytest.fixture
def dagster() -> Iterator[Dagster]:
    import dagster as dg

    with dg.DagsterInstance.ephemeral() as instance:
        yield Dagster(instance)
