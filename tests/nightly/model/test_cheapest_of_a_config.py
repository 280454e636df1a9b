"""The cheapest GPU for a model that only a config.json describes."""

import json
from pathlib import Path

from pipeline.home.paths import Home
from tests.conftest import gpufare
from tests.model.test_own_models import config_file


def test_the_cheapest_gpu_of_a_config(tmp_path: Path, sample_home: Home) -> None:
    job = ("--method", "qlora", "--tokens", "1M", "--limit", "1", "--format", "jsonl")
    config = config_file(tmp_path, quantization_config={"quant_method": "fp8"})
    given = gpufare("cheapest", "--config", str(config), *job, home=sample_home)
    assert given.returncode == 0, given.stderr
    assert "mine-1b.json: its weights are published quantized ('fp8')" in given.stderr
    best = json.loads(given.stdout.splitlines()[0])
    assert best["model"] == "mine-1b"
    neither = gpufare("cheapest", *job, home=sample_home)
    assert "give either --model or --config" in neither.stderr
