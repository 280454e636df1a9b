"""Every command of the pages exists with its options, and a test that runs it is named or runs it here.

tests/nightly/documentation runs all commands that no other test is named for.
"""

import shlex
import subprocess
from pathlib import Path

import click
import yaml

from pipeline.cli.main import main
from tests.documentation.pages import PROJECT, Block, blocks

_TABLES = yaml.safe_load(Path(__file__).with_name("commands.yaml").read_text(encoding="utf-8"))
SETS_UP: dict[str, str] = _TABLES["sets_up"]
ELSEWHERE: dict[str, str] = _TABLES["commands_run_elsewhere"]
BLOCKS_ELSEWHERE: dict[str, str] = _TABLES["pages_run_elsewhere"]


def commands_of(console: list[Block]) -> list[str]:
    return list(dict.fromkeys(command for block in console for command in block.commands))


ALL = commands_of([block for block in blocks("console") if not block.is_not_run])
NOT_RUN = commands_of([block for block in blocks("console") if block.is_not_run])
HERE = [command for command in ALL if not command.startswith((*SETS_UP, *ELSEWHERE))]
"""The commands that tests/nightly/documentation runs."""


def problem_of(command: str) -> str | None:
    """Return gpufare's complaint about a command, which is parsed and not run; None if it has none."""
    found: click.Command = main
    words = shlex.split(command, comments=True)[1:]
    try:
        while (
            isinstance(found, click.Group)
            and words
            and not (found.invoke_without_command and words[0][0] == "-")
        ):
            named = found.get_command(click.Context(found), words[0])
            if named is None:
                return f"no command {words[0]}"
            found, words = named, words[1:]
        found.make_context("gpufare", words)
    except click.BadParameter as error:
        return None if "does not exist" in error.message else error.message  # a file of the line before
    except click.ClickException as error:
        return error.message
    return None


def test_every_command_exists_with_its_options() -> None:
    """But those of the tracer, and of the source "acme" that the reader of a page makes up."""
    parts = [part for line in [*ALL, *NOT_RUN] for part in line.split(" && ") if part.startswith("gpufare ")]
    others = ("gpufare measure", "gpufare trace")
    checked = [part for part in parts if "acme" not in part and not part.startswith(others)]
    assert len(checked) > 50
    assert [f"{part}: {problem}" for part in checked if (problem := problem_of(part))] == []
    assert problem_of("gpufare publish") == "no command publish"
    assert "--sources" in str(problem_of("gpufare refresh --sources vast"))
    assert "--page" in str(problem_of("gpufare store --page"))


def test_a_shell_and_make_understand_the_other_lines() -> None:
    lines = [command for command in [*NOT_RUN, *ALL] if not command.startswith("gpufare ")]
    subprocess.run(["bash", "-n"], input="\n".join(lines), text=True, check=True, timeout=30)
    targets = {word for line in lines if line.startswith("make ") for word in shlex.split(line)[1:]}
    assert targets
    subprocess.run(["make", "-n", *sorted(targets)], cwd=PROJECT, check=True, capture_output=True)


def test_every_command_is_one_of_gpufare_or_its_test_is_named() -> None:
    assert [command for command in HERE if not command.startswith("gpufare ")] == []
    named = {*ELSEWHERE.values(), *BLOCKS_ELSEWHERE.values()}
    assert [file for file in sorted(named) if not (PROJECT / file).exists()] == []
    everything = [*ALL, *NOT_RUN]
    assert [s for s in (*SETS_UP, *ELSEWHERE) if not any(c.startswith(s) for c in everything)] == []
    assert {block.page for block in blocks("sql") if not block.is_not_run} <= set(BLOCKS_ELSEWHERE)
