"""One open file for all questions of a worker: its plans are kept, so that a job is planned once."""

from collections.abc import Iterator
from typing import Any

import pytest

import gpufare
from pipeline.home.paths import Home

QLORA: dict[str, Any] = {"model": "llama-3.1-8b", "method": "qlora", "tokens": 100e6}
"""A job with published plans."""

OPTIONS = ("--model", "llama-3.1-8b", "--method", "qlora", "--tokens", "100M")


@pytest.fixture(scope="session")
def prices(sample_home: Home) -> Iterator[gpufare.Prices]:
    with gpufare.open(sample_home.root) as opened:
        yield opened
