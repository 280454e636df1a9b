"""One published file for all tests here, and the SDK's client in this process."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import CallToolResult

from pipeline.assistant.published import Published
from pipeline.assistant.server import server
from pipeline.home.paths import Home

Called = Callable[..., CallToolResult]


async def _call(published: Published, name: str, arguments: dict[str, Any]) -> CallToolResult:
    async with Client(server(published), read_timeout_seconds=120) as client:
        result = await client.call_tool(name, arguments)
        assert isinstance(result, CallToolResult)
        return result


def called(published: Published, name: str, **arguments: Any) -> CallToolResult:
    """The result of a tool, asked by the SDK's client, which checks it against the tool's schema."""
    return anyio.run(_call, published, name, arguments)


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert block.type == "text"
    return block.text


@pytest.fixture(scope="session")
def published(sample_home: Home) -> Iterator[Published]:
    opened = Published(sample_home)
    yield opened
    opened.close()


@pytest.fixture
def call(published: Published) -> Called:
    return partial(called, published)
