"""Asks the engine, a process of its own, and says in plain words why it could not."""

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.lake.settings import LAKE_VARIABLE, Lake, LakeError
from pipeline.parsing.printable import printable

ENGINE = Path(__file__).with_name("engine.py")
ENGINE_SECONDS = 3600


def ask(lake: Lake, request: Mapping[str, Any]) -> Any:
    """What the engine answers. The address goes through standard input: other users see arguments."""
    run = subprocess.run(  # noqa: S603 - the interpreter that the user set
        [str(lake.python), "-I", str(ENGINE)],
        input=json.dumps({**request, "catalogue": lake.catalogue}),
        capture_output=True,
        text=True,
        timeout=ENGINE_SECONDS,
        check=False,
    )
    try:
        answer = json.loads(run.stdout)
    except ValueError:
        last = (run.stderr.strip().splitlines() or ["no answer"])[-1]
        raise LakeError(f"{lake.python} does not run the lake's engine: {printable(last)[:300]}") from None
    if run.returncode != 0:
        raise LakeError(f"the lake cannot be used: {_plain(answer['error'])}")
    return answer


def _plain(error: str) -> str:
    """What to do, in place of what DuckDB says to those who write its SQL."""
    if "creating a new DuckLake is explicitly disabled" in error:
        return f"there is none in the database of {LAKE_VARIABLE}; make one with `gpufare lake create`"
    if "extension httpfs" in error:
        return "its data are on S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    if found := re.search(r'does not match existing data path in the catalog "([^"]+)"', error):
        return f"there is one in this database already, with its data at {found[1]}"
    return error
