"""Questions in people's words are answered in one step by every face, with the facts that one needs."""

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp_types import CallToolResult

import gpufare as python
from gpufare.questions import Answer
from pipeline.assistant.published import Published
from pipeline.assistant.server import server
from pipeline.contracts.errors import GpufareError
from pipeline.home.paths import Home
from pipeline.questions.fit import Fit
from pipeline.questions.session import Session
from pipeline.questions.why import Explanation, why_not_sentences
from tests.assistant.conftest import text_of
from tests.cli.terminals import on_terminal

Asked = dict[str, Any]
Tool = Callable[[str, dict[str, Any]], CallToolResult]

ASKED: list[Asked] = yaml.safe_load(Path(__file__).with_name("asked.yaml").read_text(encoding="utf-8"))

COLUMNS, LINES = 80, 24

ROWS_READ = 60
"""The first rows of an answer in Python whose values are read."""

IN_ONE_STEP = 36


class OpenInPython(Published):
    """The file that Python has open: a job is planned once for both faces."""

    def __init__(self, home: Home, prices: python.Prices) -> None:
        super().__init__(home)
        self._session = prices._session()

    def session(self) -> Session:
        """Return the session of Python."""
        assert self._session is not None
        return self._session


@pytest.fixture(scope="module")
def tool(sample_home: Home, prices: python.Prices) -> Iterator[Tool]:
    """Calls a tool through one client in this process."""
    with start_blocking_portal() as portal:
        opened = Client(server(OpenInPython(sample_home, prices)), read_timeout_seconds=120)
        with portal.wrap_async_context_manager(opened) as client:
            yield lambda name, arguments: portal.call(client.call_tool, name, arguments)


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


def in_python(asked: Asked, prices: python.Prices) -> str:
    """What an expression tells at the prompt: the answer's text, its notes and rows, or why it is refused."""
    known = {name: getattr(prices, name) for name in dir(prices) if not name.startswith("_")}
    try:
        answer = eval(asked["python"], {"__builtins__": {}}, known)
    except GpufareError as refused:
        return str(refused)
    if isinstance(answer, Fit):
        return "\n".join([*answer.sentences(), *map(str, answer.memory.rows)])
    if isinstance(answer, Explanation):
        return "\n".join([*why_not_sentences(answer), str(answer.row)])
    assert isinstance(answer, Answer)
    return "\n".join([repr(answer), *answer.notes, *map(str, answer[:ROWS_READ])])


def told_by_tool(asked: Asked, tool: Tool) -> str:
    """The text and the values that a tool sends."""
    result = tool(asked["tool"]["name"], asked["tool"]["arguments"])
    return f"{text_of(result)}\n{json.dumps(result.structured_content)}"


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


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked["question"][:50])
def test_a_question_is_answered_by_every_face(
    asked: Asked, sample_home: Home, prices: python.Prices, tool: Tool
) -> None:
    facts = facts_of(asked, prices)
    texts = {"command": on_screen(asked, sample_home)}
    if asked["python"]:
        texts["python"] = in_python(asked, prices)
    if asked["tool"]:
        texts["tool"] = told_by_tool(asked, tool)
    assert {
        face: wrong for face, text in texts.items() if (wrong := wrong_in(text, asked, face, facts))
    } == {}


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
