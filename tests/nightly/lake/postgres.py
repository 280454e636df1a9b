"""A PostgreSQL server for tests, with its data in a temporary folder, on a free port of loopback."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

_numbers = count(1)


def programs() -> Path | None:
    """The folder with initdb and pg_ctl: on the path, or where Debian's packages put it."""
    found = shutil.which("pg_ctl")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


def _as_another_user(folder: Path) -> list[str]:
    """PostgreSQL refuses to be run by root: how to run it as nobody, who gets the folder."""
    if os.getuid() != 0:
        return []
    if not shutil.which("setpriv"):
        pytest.skip("PostgreSQL does not run as root, and there is no setpriv to become somebody else")
    shutil.chown(folder, "nobody")
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]


@contextmanager
def server() -> Iterator[str]:
    """The address of a running server, without a trailing database's name. Skips where there is none."""
    bin_folder = programs()
    if bin_folder is None:
        pytest.skip("PostgreSQL (initdb and pg_ctl) is not installed here")
    with tempfile.TemporaryDirectory(prefix="gpufare-pg-") as place:
        prefix = _as_another_user(Path(place))
        data = f"{place}/data"

        def run(*command: str) -> None:
            subprocess.run([*prefix, *command], cwd="/", check=True, capture_output=True, timeout=60)

        run(f"{bin_folder}/initdb", "-D", data, "-A", "trust", "-U", "gpufare", "--no-sync")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        options = f"-p {port} -k {place} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=60"
        run(f"{bin_folder}/pg_ctl", "-D", data, "-w", "-l", f"{place}/log", "-o", options, "start")
        try:
            yield f"postgresql://gpufare@127.0.0.1:{port}"
        finally:
            run(f"{bin_folder}/pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")


def new_database(server: str, *, of: str | None = None) -> str:
    """The address of a new database, a copy of another if one is given."""
    name = f"test_{next(_numbers)}"
    copied = ["--template", of.rpartition("/")[2]] if of else []
    command = [f"{programs()}/createdb", "--maintenance-db", f"{server}/postgres", *copied, name]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return f"{server}/{name}"
