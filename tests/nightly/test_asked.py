"""The questions of ``tests/questions/asked.yaml``, asked at a terminal, in Python and by an assistant."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
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
from tests.questions.test_asked import ASKED, Asked, facts_of, on_screen, wrong_in

Tool = Callable[[str, dict[str, Any]], CallToolResult]

ROWS_READ = 60
"""The first rows of an answer in Python whose values are read."""


@pytest.fixture(scope="module")
def prices(sample_home: Home) -> Iterator[python.Prices]:
    with python.open(sample_home.root) as opened:
        yield opened


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


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked["question"][:50])
def test_a_question_is_answered_by_every_face(
    asked: Asked, sample_home: Home, prices: python.Prices, tool: Tool
) -> None:
    facts, texts = facts_of(asked, prices), {"command": on_screen(asked, sample_home)}
    if asked["python"]:
        texts["python"] = in_python(asked, prices)
    if asked["tool"]:
        texts["tool"] = told_by_tool(asked, tool)
    wrong = {face: wrong_in(text, asked, face, facts) for face, text in texts.items()}
    assert {face: missing for face, missing in wrong.items() if missing} == {}
