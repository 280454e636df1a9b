"""Runs the command line in a real terminal of a given width, and gives the lines that it shows."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import click.testing
import pytest
from click.testing import CliRunner, Result

from pipeline.cli.main import main
from pipeline.home.paths import HOME_VARIABLE

_ERASED = re.compile(r"(?:\n(?:\x1b\[\?25h)?\r?\x1b\[1A)?\x1b\[2K")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]")


def screen(*arguments: str, columns: int, home: Path, raw: bool = False, lines: int = 50) -> list[str]:
    """Return the lines of both streams that ``gpufare`` writes to a terminal of ``columns`` columns and
    ``lines`` lines; ``raw`` keeps control sequences."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    plain = {name: text for name, text in os.environ.items() if name not in {"COLUMNS", "LINES", "NO_COLOR"}}
    started = subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", *arguments],
        env={**plain, "TERM": "xterm", HOME_VARIABLE: str(home)},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        close_fds=True,
    )
    os.close(theirs)
    written = b""
    with contextlib.suppress(OSError):  # Linux says so when the last writer has closed
        while piece := os.read(ours, 65536):
            written += piece
    started.wait(timeout=60)
    os.close(ours)
    text = written.decode().replace("\r\n", "\n")
    if raw:
        return text.split("\n")
    # If a line is rewritten or erased, the last text stays.
    text = _ERASED.sub("\r", text)
    return [line.rpartition("\r")[2] for line in _CONTROL.sub("", text).rstrip("\n").split("\n")]


def on_terminal(*arguments: str, home: Path, columns: int = 80, lines: int = 24) -> Result:
    """Run the command line in this process as if on a terminal, which is faster than in a real one; both
    streams are in ``output``, without styles."""
    size = {"COLUMNS": str(columns), "LINES": str(lines), "NO_COLOR": "1"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(click.testing._NamedTextIOWrapper, "isatty", lambda _: True)
        return CliRunner().invoke(main, arguments, env={**size, HOME_VARIABLE: str(home)})
