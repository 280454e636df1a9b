"""The files of deploy/ are what their schedulers accept, and run commands that exist."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from pipeline.export.folder import DESCRIPTOR
from pipeline.export.layouts import forbidden
from pipeline.health.webhook import WEBHOOK_VARIABLE
from pipeline.home.paths import HOME_VARIABLE, Home
from pipeline.orchestration.resources import PAGES_VARIABLE
from tests.conftest import gpufare, with_plans
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


def workflow(name: str) -> Any:
    return yaml.safe_load((DEPLOY / f"hosted-{name}.yml").read_text(encoding="utf-8"))


def commands(text: str) -> list[str]:
    """The commands of gpufare in a text, each of which is parsed as gpufare does, without running it."""
    found = [part.strip() for part in re.split(r"[;\n]", text) if part.strip().startswith("gpufare")]
    assert [f"{command}: {problem}" for command in found if (problem := problem_of(command))] == []
    return found


def run_by(steps: list[dict[str, Any]]) -> list[str]:
    """The commands of a job, whose cache is saved under the key by which it is restored."""
    restored, saved = (step["with"] for step in steps if "cache" in step.get("uses", ""))
    assert restored["key"] == saved["key"]
    assert restored["key"].startswith(restored["restore-keys"])
    return [command for step in steps for command in commands(step.get("run", ""))]


def test_the_crontab_runs_a_refresh_and_the_digest_even_when_it_failed() -> None:
    lines = [line for _, line in cron_lines()]
    assert commands("\n".join(lines))[:2] == ["gpufare refresh", "gpufare digest"]
    assert "gpufare refresh; gpufare digest" in lines[0]


@dg.job
def nothing() -> None:
    """For a cron schedule to be checked."""


def test_the_times_are_those_of_a_crontab() -> None:
    (schedule,) = workflow("workflow")[True]["schedule"]  # YAML 1.1 reads the key `on` as true
    for cron in [schedule["cron"], *(cron for cron, _ in cron_lines())]:
        dg.ScheduleDefinition(job=nothing, cron_schedule=cron)


def test_the_units_run_commands_that_exist() -> None:
    texts = [unit.read_text() for unit in UNITS]
    found = re.findall(r"^Exec\w+=/opt/gpufare/.venv/bin/(gpufare.+)$", "\n".join(texts), re.MULTILINE)
    assert commands("\n".join(found))[-2:] == ["gpufare refresh", "gpufare digest"]
    timers, services = (
        {unit.stem for unit in UNITS if unit.suffix == f".{kind}"} for kind in ("timer", "service")
    )
    assert timers == services


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd on this machine")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    """With this machine's own gpufare: systemd checks that commands exist."""
    for unit in UNITS:
        here = unit.read_text().replace("/opt/gpufare/.venv/bin", str(Path(sys.executable).parent))
        (tmp_path / unit.name).write_text(here)
    verify = ["systemd-analyze", "verify", *map(str, tmp_path.iterdir())]
    run = subprocess.run(verify, capture_output=True, text=True, timeout=60, check=False)
    assert [line for line in run.stderr.splitlines() if "gpufare" in line] == []
    texts = "\n".join(unit.read_text() for unit in UNITS)
    timers = re.findall(r"^OnCalendar=(.+)$", texts, re.MULTILINE)
    subprocess.run(["systemd-analyze", "calendar", *timers], capture_output=True, timeout=60, check=True)


def test_the_workflow_keeps_the_home_and_runs_commands_that_exist() -> None:
    steps = workflow("workflow")["jobs"]["refresh"]["steps"]
    assert run_by(steps) == ["gpufare refresh", "gpufare digest"]
    (digest,) = [step for step in steps if "gpufare digest" in step.get("run", "")]
    assert digest["if"] == "always()"
    files = [file for step in steps for file in re.findall(r"-r (\S+)", step.get("run", ""))]
    assert [file for file in files if not (PROJECT / file).exists()] == []


def test_the_publishing_workflow_publishes_what_it_writes_and_leaves_out_what_it_may_not() -> None:
    jobs = workflow("publish")["jobs"]
    steps = jobs["export"]["steps"]
    found = run_by(steps)
    (upload,) = [step for step in steps if "upload-pages-artifact" in step.get("uses", "")]
    exports = [command for command in found if command.startswith("gpufare export")]
    folders = [command.split()[2] for command in exports]
    assert {folder.split("/")[0] for folder in folders} == {upload["with"]["path"]}
    assert len(set(folders)) == len(folders) == 4
    assert found[-1] == f"gpufare report {upload['with']['path']}"  # the page of the site's own address
    assert jobs["publish"]["needs"] == "export"
    assert jobs["publish"]["permissions"] == {"pages": "write", "id-token": "write"}
    assert found[:2] == [f"gpufare sources disable {' '.join(forbidden())}", "gpufare refresh"]
    assert [command for command in exports if "--republishable" not in command] == []
    assert set(jobs["export"]["env"]) == {HOME_VARIABLE}  # no key, which would turn a source on
    assert not any(".duckdb" in step.get("run", "") for step in steps)  # it has rows of the sources' pages
    own, other = (
        next(step["with"]["restore-keys"] for step in each if "restore" in step.get("uses", ""))
        for each in (steps, workflow("workflow")["jobs"]["refresh"]["steps"])
    )
    assert not own.startswith(other)


def test_the_publishing_workflow_exports_what_the_pages_say(
    sample_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the demo's home, in which the sources whose terms forbid it were not asked, either."""
    monkeypatch.chdir(tmp_path)
    home = with_plans(tmp_path / "home", sample_home)
    written = gpufare("demo", home=home)
    assert written.returncode == 0, written.stderr
    steps = workflow("publish")["jobs"]["export"]["steps"]
    for step in steps:
        for command in commands(step.get("run", "")):
            words = shlex.split(command)[1:]
            if words[0] in ("export", "report"):
                answer = gpufare(*words, home=home)
                assert answer.returncode == 0, answer.stderr
    (upload,) = [step for step in steps if "upload-pages-artifact" in step.get("uses", "")]
    site = tmp_path / upload["with"]["path"]
    for file in (
        *("index.html", "tables/latest/cheapest.csv", "tables/offers/2026-08-22.parquet"),
        *("api/v1/index.json", "api/v1/cheapest/llama-3.1-8b-lora-100m.json"),
    ):
        assert (site / file).stat().st_size > 0, file
    exported = {path.name for path in site.iterdir() if (path / DESCRIPTOR).exists()}
    page = (HOW_TO / "export.md").read_text(encoding="utf-8")
    (told,) = re.findall(r"beside the report are ([^.]+?), each with a", " ".join(page.split()))
    assert set(re.findall(r"`(\w+)/`", told)) == exported


def test_no_file_has_a_secret_in_it() -> None:
    for file in [DEPLOY / "crontab", *DEPLOY.glob("hosted-*.yml"), *UNITS]:
        assert "https://hooks" not in file.read_text(encoding="utf-8")
    variable = workflow("workflow")["jobs"]["refresh"]["env"][WEBHOOK_VARIABLE]
    assert variable == f"${{{{ secrets.{WEBHOOK_VARIABLE} }}}}"


def test_the_documentation_names_files_commands_and_variables_that_exist() -> None:
    for link in re.findall(r"\]\(../../([^)]+)\)", DOCS):
        assert (PROJECT / link).exists()
    assert commands("\n".join(re.findall(r"`(gpufare [a-z]+)`", DOCS)))
    assert {WEBHOOK_VARIABLE, PAGES_VARIABLE} <= set(re.findall(r"GPUFARE_\w+", DOCS))


def test_a_wheel_is_told_the_packages_of_the_lakes_lock() -> None:
    named = (PROJECT / "requirements-lake.in").read_text(encoding="utf-8")
    page = (HOW_TO / "scaling.md").read_text(encoding="utf-8")
    (command,) = re.findall(r'^pip install --no-deps --target "\$VIRTUAL_ENV/lake" (.+)$', page, re.MULTILINE)
    assert shlex.split(command) == [line for line in named.splitlines() if not line.startswith("#")]
