"""deploy/machines: files that parse, name what exists, and agree with each other."""

import importlib.util
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dockerfile_parse import DockerfileParser

from pipeline.capture.visit import sharing_hosts
from pipeline.home.publishing_lock import LOCK_VARIABLE
from pipeline.orchestration.keys import SHARE_VARIABLE, enabled_sources, share, sources_here
from pipeline.orchestration.source_assets import capture_pool

PROJECT = Path(__file__).parents[2]
MACHINES = PROJECT / "deploy" / "machines"
PROGRAMS = Path(sys.executable).parent


def read(name: str) -> dict[str, Any]:
    return yaml.safe_load((MACHINES / name).read_text(encoding="utf-8"))


def services() -> dict[str, dict[str, Any]]:
    return read("compose.yaml")["services"]


def test_the_instance_is_one_that_dagster_accepts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its queue and its pools; the storage is used in test_several_machines."""
    config = read("dagster.yaml")
    assert config.pop("storage") == {"postgres": {"postgres_url": {"env": "DAGSTER_POSTGRES_URL"}}}
    monkeypatch.setenv("DAGSTER_LOGS", str(tmp_path / "logs"))
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(config))
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        settings = instance.get_concurrency_config()
        assert settings.pool_config.default_pool_limit == 1
        assert settings.run_queue_config.max_concurrent_runs == 8


def test_it_differs_from_that_of_one_machine_in_the_storage_and_the_queue_only() -> None:
    one, many = yaml.safe_load((PROJECT / "dagster.yaml").read_text(encoding="utf-8")), read("dagster.yaml")
    assert {name for name in one | many if one.get(name) != many.get(name)} == {
        "storage",
        "compute_logs",
        "local_artifact_storage",
        "concurrency",
    }
    assert one["concurrency"]["pools"] == many["concurrency"]["pools"]


def test_a_code_server_for_each_entry_of_the_workspace() -> None:
    servers = [entry["grpc_server"] for entry in read("workspace.yaml")["load_from"]]
    codes = {name: service for name, service in services().items() if name.startswith("code-")}
    assert [server["location_name"] for server in servers] == ["gpufare-1", "gpufare-2"]
    for server, (name, service) in zip(servers, codes.items(), strict=True):
        assert service["environment"][server["host"]["env"]] == name
        assert str(server["port"]) == service["command"][-1]
    assert [service["environment"][SHARE_VARIABLE] for service in codes.values()] == ["1/2", "2/2"]


def test_every_service_has_the_lock_the_home_and_a_program_that_exists() -> None:
    volumes = read("compose.yaml")["volumes"]
    for name, service in services().items():
        assert all(volume.split(":")[0] in volumes for volume in service["volumes"]), name
        if name != "postgres":
            assert LOCK_VARIABLE in service["environment"]
            assert "home:/var/lib/gpufare" in service["volumes"]
            assert shutil.which(service["command"][0], path=str(PROGRAMS)), service["command"]
            assert set(service["depends_on"]) <= set(services())
    assert all(port.startswith("127.0.0.1:") for port in services()["webserver"]["ports"])


def test_no_password_is_written_down() -> None:
    for path in MACHINES.iterdir():
        for found in re.findall(r"://\w+:([^@]+)@", path.read_text(encoding="utf-8")):
            assert found.startswith("${POSTGRES_PASSWORD") or found == "PASSWORD", (path.name, found)


def test_the_image_is_built_from_what_is_there() -> None:
    parser = DockerfileParser(path=str(MACHINES / "Dockerfile"))
    steps = [(step["instruction"], step["value"]) for step in parser.structure]
    known = {"FROM", "WORKDIR", "RUN", "COPY", "ARG", "USER", "ENV", "EXPOSE", "CMD", "COMMENT"}
    assert {name for name, _ in steps} <= known
    assert parser.baseimage == "python:3.12-slim"
    kept = re.findall(r"^!(.+)$", (MACHINES / "Dockerfile.dockerignore").read_text(), re.MULTILINE)
    for name, value in steps:
        if name == "COPY" and not value.startswith("--from"):
            *sources, _ = (part.removeprefix("./") for part in value.split())
            assert all((PROJECT / source).exists() for source in sources), value
            assert all(source in kept or source.startswith("deploy/machines/") for source in sources), value
    user = next(value for name, value in steps if name == "USER")
    assert user != "root"


def test_kubernetes_runs_one_code_server_and_gives_runs_the_same_home() -> None:
    values = read("kubernetes-values.yaml")
    (code,) = values["dagster-user-deployments"]["deployments"]
    module = code["dagsterApiGrpcArgs"][1]
    assert importlib.util.find_spec(module)
    assert code["includeConfigInLaunchedRuns"]["enabled"]
    mounted = {mount["name"]: mount["mountPath"] for mount in code["volumeMounts"]}
    assert mounted == {"home": code["env"]["GPUFARE_HOME"]}


CHART = {
    "": "dagsterWebserver dagster-user-deployments postgresql generatePostgresqlPasswordSecret runLauncher"
    " dagsterDaemon telemetry retention additionalInstanceConfig",
    "dagsterWebserver": "image",
    "dagsterDaemon": "image runCoordinator runMonitoring runRetries",
    "dagster-user-deployments": "enabled deployments",
    "postgresql": "enabled postgresqlHost postgresqlUsername postgresqlDatabase postgresqlScheme",
    "runLauncher": "type config",
    "telemetry": "enabled",
    "retention": "enabled",
}
"""Of what values may have. From the classes of helm/dagster/schema in dagster-io/dagster, read 2026-11-23:
values.py at 0f2d9d8, daemon.py at 0070107, postgresql.py at 3f2daa0, run_launcher.py at 969d726."""

CODE_SERVER = {
    "name",
    "image",
    "dagsterApiGrpcArgs",
    "port",
    "env",
    "envSecrets",
    "volumes",
    "volumeMounts",
    "includeConfigInLaunchedRuns",
    "resources",
}
"""Of user_deployments.py at 58b0565."""


def test_kubernetes_sets_what_the_chart_has() -> None:
    values = read("kubernetes-values.yaml")
    for place, known in CHART.items():
        assert set(values[place] if place else values) <= set(known.split()), place
    (code,) = values["dagster-user-deployments"]["deployments"]
    assert set(code) <= CODE_SERVER
    assert values["runLauncher"]["type"] == "K8sRunLauncher"
    assert set(values["runLauncher"]["config"]) == {"k8sRunLauncher"}


def test_kubernetes_has_the_instance_of_the_other_machines() -> None:
    """The chart writes storage, logs and telemetry; the rest it may not write, or Dagster sees it twice."""
    values, instance = read("kubernetes-values.yaml"), read("dagster.yaml")
    written = {"storage", "compute_logs", "telemetry"}
    assert values["additionalInstanceConfig"] == {
        name: block for name, block in instance.items() if name not in written
    }
    blocks = ("runCoordinator", "runMonitoring", "runRetries")
    assert all(values["dagsterDaemon"][block] == {"enabled": False} for block in blocks)
    assert values["retention"] == {"enabled": False}


def test_the_shares_of_all_code_servers_are_all_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for number in (1, 2, 3):
        monkeypatch.setenv(SHARE_VARIABLE, f"{number}/3")
        found += [config.name for config in sources_here()]
    assert sorted(found) == [config.name for config in enabled_sources()]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "a/b", "1/2/3"])
def test_a_share_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(SHARE_VARIABLE, text)
    with pytest.raises(Exception, match=f"{SHARE_VARIABLE} must be like 2/3"):
        share()


def test_captures_of_two_code_servers_share_no_pool_and_no_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pools = set[str]()
    for number in (1, 2, 3):
        monkeypatch.setenv(SHARE_VARIABLE, f"{number}/3")
        pools.add(capture_pool())
    assert len(pools) == 3
    sources = enabled_sources()
    assert len(sharing_hosts(sources)) == len(sources)
