"""deploy/compose: files that parse, name what exists, and agree with each other."""

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
from pipeline.orchestration.keys import enabled_sources

PROJECT = Path(__file__).parents[3]
COMPOSE = PROJECT / "deploy" / "compose"
PROGRAMS = Path(sys.executable).parent


def read(name: str) -> dict[str, Any]:
    return yaml.safe_load((COMPOSE / name).read_text(encoding="utf-8"))


def services() -> dict[str, dict[str, Any]]:
    return read("compose.yaml")["services"]


def test_the_instance_is_one_that_dagster_accepts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its queue, its pools and its limits; the storage is used in test_code_server."""
    config = read("dagster.yaml")
    assert config.pop("storage") == {"postgres": {"postgres_url": {"env": "DAGSTER_POSTGRES_URL"}}}
    monkeypatch.setenv("DAGSTER_LOGS", str(tmp_path / "logs"))
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(config))
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        settings = instance.get_concurrency_config()
        assert settings.pool_config.default_pool_limit == 1
        assert settings.run_queue_config.max_concurrent_runs == 8


def test_it_differs_from_the_one_without_containers_in_the_storage_and_the_queue_only() -> None:
    one, many = yaml.safe_load((PROJECT / "dagster.yaml").read_text(encoding="utf-8")), read("dagster.yaml")
    assert {name for name in one | many if one.get(name) != many.get(name)} == {
        "storage",
        "compute_logs",
        "local_artifact_storage",
        "concurrency",
    }
    assert one["concurrency"]["pools"] == many["concurrency"]["pools"]


def test_every_service_has_the_home_and_a_program_that_exists() -> None:
    volumes = read("compose.yaml")["volumes"]
    for name, service in services().items():
        assert all(volume.split(":")[0] in volumes for volume in service["volumes"]), name
        if name != "postgres":
            assert "home:/var/lib/gpufare" in service["volumes"]
            assert shutil.which(service["command"][0], path=str(PROGRAMS)), service["command"]
            assert set(service["depends_on"]) <= set(services())
    assert all(port.startswith("127.0.0.1:") for port in services()["webserver"]["ports"])


def test_no_password_is_written_down() -> None:
    for path in COMPOSE.iterdir():
        for found in re.findall(r"://\w+:([^@]+)@", path.read_text(encoding="utf-8")):
            assert found.startswith("${POSTGRES_PASSWORD") or found == "PASSWORD", (path.name, found)


def test_the_image_is_built_from_existing_files() -> None:
    parser = DockerfileParser(path=str(COMPOSE / "Dockerfile"))
    steps = [(step["instruction"], step["value"]) for step in parser.structure]
    assert parser.baseimage == "python:3.12-slim"
    kept = re.findall(r"^!(.+)$", (COMPOSE / "Dockerfile.dockerignore").read_text(), re.MULTILINE)
    for name, value in steps:
        if name == "COPY" and not value.startswith("--from"):
            *sources, _ = (part.removeprefix("./") for part in value.split())
            assert all((PROJECT / source).exists() for source in sources), value
            assert all(source in kept or source.startswith("deploy/compose/") for source in sources), value
    assert dict(steps)["USER"] != "root"


def test_no_two_sources_share_a_host() -> None:
    """So that they can be asked side by side."""
    assert len(sharing_hosts(enabled_sources())) == len(enabled_sources())
