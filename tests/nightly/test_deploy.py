"""The files of deploy/ are what their schedulers accept, and run commands that exist."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
import yaml

from pipeline.export.layouts import forbidden
from pipeline.health.webhook import WEBHOOK_VARIABLE
from pipeline.home.paths import HOME_VARIABLE
from pipeline.orchestration.resources import PAGES_VARIABLE
from tests.documentation.test_commands import problem_of

PROJECT = Path(__file__).parents[2]
DEPLOY = PROJECT / "deploy"
UNITS = sorted((DEPLOY / "systemd").iterdir())
HOW_TO = PROJECT / "docs" / "how-to"
DOCS = "".join((HOW_TO / f"{page}.md").read_text(encoding="utf-8") for page in ("cron", "dagster", "deploy"))


def cron_lines() -> list[tuple[str, str]]:
    lines = (DEPLOY / "crontab").read_text(encoding="utf-8").splitlines()
    jobs = [line for line in lines if line and not re.match(r"#|\w+=", line)]
    return [(" ".join(job.split()[:5]), job.split(maxsplit=5)[5]) for job in jobs]


def unit_commands() -> list[str]:
    return [
        command
        for unit in UNITS
        for command in re.findall(r"^Exec\w+=/opt/gpufare/.venv/bin/(.+)$", unit.read_text(), re.MULTILINE)
    ]


def workflow() -> dict[str, object]:
    return yaml.safe_load((DEPLOY / "hosted-workflow.yml").read_text(encoding="utf-8"))


def workflow_steps() -> list[dict[str, str]]:
    return workflow()["jobs"]["refresh"]["steps"]


def commands(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"[;\n]", text) if part.strip().startswith("gpufare")]


def check(command: str) -> None:
    """Parse the command as gpufare does, without running it."""
    assert problem_of(command) is None, command


def test_the_crontab_runs_a_refresh_and_the_digest_even_when_it_failed() -> None:
    found = [command for _, line in cron_lines() for command in commands(line)]
    assert found[:2] == ["gpufare refresh", "gpufare digest"]
    assert "gpufare refresh; gpufare digest" in cron_lines()[0][1]
    for command in found:
        check(command)


@dg.job
def nothing() -> None:
    """For a cron schedule to be checked."""


def test_the_times_are_those_of_a_crontab() -> None:
    (schedule,) = workflow()[True]["schedule"]  # YAML 1.1 reads the key `on` as true
    for cron in [schedule["cron"], *(cron for cron, _ in cron_lines())]:
        dg.ScheduleDefinition(job=nothing, cron_schedule=cron)


def test_the_units_run_commands_that_exist() -> None:
    found = unit_commands()
    assert found[-2:] == ["gpufare refresh", "gpufare digest"]
    for command in found:
        check(command)
    assert {unit.stem for unit in UNITS if unit.suffix == ".timer"} == {
        unit.stem for unit in UNITS if unit.suffix == ".service"
    }


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd on this machine")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    """With this machine's own gpufare: systemd checks that commands exist."""
    for unit in UNITS:
        here = unit.read_text().replace("/opt/gpufare/.venv/bin", str(Path(sys.executable).parent))
        (tmp_path / unit.name).write_text(here)
    run = subprocess.run(
        ["systemd-analyze", "verify", *map(str, tmp_path.iterdir())],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    ours = [line for line in run.stderr.splitlines() if "gpufare" in line]
    assert ours == []
    timers = [
        line for unit in UNITS for line in re.findall(r"^OnCalendar=(.+)$", unit.read_text(), re.MULTILINE)
    ]
    subprocess.run(["systemd-analyze", "calendar", *timers], capture_output=True, timeout=60, check=True)


def test_the_workflow_keeps_the_home_and_runs_commands_that_exist() -> None:
    steps = workflow_steps()
    found = [command for step in steps for command in commands(step.get("run", ""))]
    assert found == ["gpufare refresh", "gpufare digest"]
    for command in found:
        check(command)
    (digest,) = [step for step in steps if "gpufare digest" in step.get("run", "")]
    assert digest["if"] == "always()"
    caches = [step for step in steps if "cache" in step.get("uses", "")]
    assert [step["uses"].split("@")[0] for step in caches] == ["actions/cache/restore", "actions/cache/save"]
    assert caches[0]["with"]["key"] == caches[1]["with"]["key"]
    assert caches[0]["with"]["key"].startswith(caches[0]["with"]["restore-keys"])
    for step in steps:
        for file in re.findall(r"-r (\S+)", step.get("run", "")):
            assert (PROJECT / file).exists()


def published_by_the_workflow() -> tuple[list[str], dict[str, object]]:
    jobs = yaml.safe_load((DEPLOY / "hosted-publish.yml").read_text(encoding="utf-8"))["jobs"]
    steps = jobs["export"]["steps"]
    return [command for step in steps for command in commands(step.get("run", ""))], jobs


def test_the_publishing_workflow_runs_commands_that_exist_and_publishes_what_it_writes() -> None:
    found, jobs = published_by_the_workflow()
    for command in found:
        check(command)
    steps = jobs["export"]["steps"]
    caches = [step for step in steps if "cache" in step.get("uses", "")]
    assert caches[0]["with"]["key"] == caches[1]["with"]["key"]
    assert caches[0]["with"]["key"].startswith(caches[0]["with"]["restore-keys"])
    assert not caches[0]["with"]["restore-keys"].startswith(workflow_steps()[3]["with"]["restore-keys"])
    (upload,) = [step for step in steps if "upload-pages-artifact" in step.get("uses", "")]
    folders = [command.split()[2] for command in found if command.split()[1] == "export"]
    assert {folder.split("/")[0] for folder in folders} == {upload["with"]["path"]}
    assert len(set(folders)) == len(folders) == 4
    assert found[-1] == f"gpufare report {upload['with']['path']}"  # the page of the site's own address
    assert all(
        step.get("run", "").strip().startswith("gpufare") for step in steps if step.get("name") == "Report"
    )
    assert jobs["publish"]["needs"] == "export"
    assert jobs["publish"]["permissions"] == {"pages": "write", "id-token": "write"}


def test_the_publishing_workflow_leaves_out_what_may_not_be_published() -> None:
    found, jobs = published_by_the_workflow()
    assert found[:2] == [f"gpufare sources disable {' '.join(forbidden())}", "gpufare refresh"]
    assert all("--republishable" in command for command in found if command.startswith("gpufare export"))
    assert set(jobs["export"]["env"]) == {HOME_VARIABLE}  # no key, which would turn a source on
    scripts = [step.get("run", "") for step in jobs["export"]["steps"]]
    assert not any(".duckdb" in script for script in scripts)  # it has rows of the sources' pages


def test_no_file_has_a_secret_in_it() -> None:
    for file in [DEPLOY / "crontab", *DEPLOY.glob("hosted-*.yml"), *UNITS]:
        assert "https://hooks" not in file.read_text(encoding="utf-8")
    variable = workflow()["jobs"]["refresh"]["env"][WEBHOOK_VARIABLE]
    assert variable == f"${{{{ secrets.{WEBHOOK_VARIABLE} }}}}"


def test_the_documentation_names_files_commands_and_variables_that_exist() -> None:
    for link in re.findall(r"\]\(../../([^)]+)\)", DOCS):
        assert (PROJECT / link).exists()
    for command in re.findall(r"`(gpufare [a-z]+)`", DOCS):
        check(command)
    assert {WEBHOOK_VARIABLE, PAGES_VARIABLE} <= set(re.findall(r"GPUFARE_\w+", DOCS))
