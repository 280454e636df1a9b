"""The command for assistants: mcp."""

import sys

import click

from pipeline.cli.terminal import say
from pipeline.home import paths


@click.command()
def mcp() -> None:
    """Answer an assistant's questions over the Model Context Protocol, on stdin and stdout.

    An assistant starts this command itself. Its tools read what is published, change nothing, and ask no
    network.
    """
    import anyio

    from pipeline.assistant.server import serve

    if sys.stdin.isatty():
        say("waiting for an assistant on stdin; assistants start this command themselves (Ctrl-C ends it)")
    anyio.run(serve, paths.home())
