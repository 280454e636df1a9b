"""Questions in people's words are answered by one command, with the facts that one needs.

All of them are asked of every face in ``tests/nightly/test_asked.py``.
"""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

import gpufare as python
from pipeline.home.paths import Home
from tests.cli.terminals import on_terminal

Asked = dict[str, Any]

ASKED: list[Asked] = yaml.safe_load(Path(__file__).with_name("asked.yaml").read_text(encoding="utf-8"))

COLUMNS, LINES = 80, 24

IN_ONE_STEP = 37

FIRST = 18
"""The first entries, which each run asks; the nightly asks all."""


def on_screen(asked: Asked, home: Home) -> str:
    """What the command lines leave on a screen, above the next prompt; all of a file."""
    commands = [asked["command"]] if isinstance(asked["command"], str) else asked["command"]
    texts = []
    for command in commands:
        program, *words = shlex.split(command)
        assert program == "gpufare"
        result = on_terminal(*words, home=home.root, columns=COLUMNS, lines=LINES)
        assert result.exception is None or isinstance(result.exception, SystemExit), command
        assert "Traceback" not in result.output
        if "exit_code" in asked:
            assert result.exit_code == asked["exit_code"]
        lines = result.output.splitlines()
        texts += lines if "--format" in words else lines[1 - LINES :]
    return "\n".join(texts)


def facts_of(asked: Asked, prices: python.Prices) -> dict[str, str]:
    """The values of an entry's queries on the published tables."""
    facts = {
        name: next(iter(prices.sql(query)[0].values())) for name, query in asked.get("facts", {}).items()
    }
    assert None not in facts.values(), facts
    return {name: str(value) for name, value in facts.items()}


def wrong_in(text: str, asked: Asked, face: str, facts: dict[str, str]) -> list[str]:
    """What a text lacks of the facts that an entry expects, and what it must not have."""
    text = " ".join(text.split())

    def filled(expression: str) -> str:
        for name, value in facts.items():
            expression = expression.replace(f"<{name}>", value)
        return expression

    wrong = [
        expression
        for expression in map(filled, (*asked.get("expects", ()), *asked.get(f"in_{face}", ())))
        if not re.search(expression, text)
    ]
    wrong += [f"never {each}" for each in map(filled, asked.get("never", ())) if re.search(each, text)]
    if rising := asked.get("rising"):
        found = re.search(rising, text)
        numbers = [float(number.replace(",", "")) for number in found.groups()] if found else []
        wrong += [] if numbers and numbers == sorted(numbers) else [f"{rising}: {numbers}"]
    return [*wrong, text] if wrong else []


@pytest.mark.parametrize("asked", ASKED[:FIRST], ids=lambda asked: asked["question"][:50])
def test_a_question_is_answered_by_the_command(
    asked: Asked, sample_home: Home, prices: python.Prices
) -> None:
    facts = facts_of(asked, prices)
    assert wrong_in(on_screen(asked, sample_home), asked, "command", facts) == []


def test_nearly_every_question_takes_one_command() -> None:
    assert len(ASKED) >= 40
    assert sum(asked.get("steps", 1) == 1 for asked in ASKED) >= IN_ONE_STEP


def test_each_entry_says_what_is_missing_and_expects_something() -> None:
    for asked in ASKED:
        question = asked["question"]
        assert ("missing" in asked) == (asked.get("steps", 1) != 1), question
        assert isinstance(asked["command"], str) == (asked.get("steps", 1) == 1), question
        for face in ("python", "tool"):
            assert (asked[face] is None) == (f"no_{face}" in asked), question
        for face in ("command", "python", "tool"):
            assert asked.get(f"in_{face}") or asked.get("expects"), question
