"""gpufare trace: a user's own step, what it prints, and what it says of a step that cannot be traced."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeline.cli.main import main
from tests.shapes import tiny

MY_TRAINING = """
import torch

WIDTH = 1024

def make(micro_batch=1, seq_len=128):
    model = torch.nn.Linear(WIDTH, 4 * WIDTH, bias=False, device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    def loss():
        return model(torch.randn(micro_batch, seq_len, WIDTH, device="cuda")).sum()
    return model, optimizer, loss

def fixed():
    return make()

def branches_on_values():
    model, optimizer, _ = make()
    def loss():
        out = model(torch.randn(4, WIDTH, device="cuda"))
        return out[out > 0].sum()
    return model, optimizer, loss

def reads_values():
    model, optimizer, _ = make()
    def loss():
        out = model(torch.randn(4, WIDTH, device="cuda"))
        out.detach().cpu().numpy()
        return out.sum()
    return model, optimizer, loss

def misspelt():
    model, optimizer, _ = make()
    return model, optimizer, lambda: model(torch.randn(4, WIDTH + 1, device="cuda")).sum()

def returns_nothing():
    make()
"""


@pytest.fixture
def gpufare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "my_training.py").write_text(MY_TRAINING)
    monkeypatch.delitem(sys.modules, "my_training", raising=False)  # another test's
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return lambda *arguments: CliRunner().invoke(main, ["trace", *arguments])


def test_a_step_of_ones_own_is_counted_to_the_byte(gpufare) -> None:
    answer = gpufare("--step", "my_training:make", "--seq-len", "128", "--format", "json")
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.stdout)
    assert found["card"]["fits"] is True
    assert found["card"]["needed_gib"] < found["card"]["usable_gib"]
    assert found["largest_micro_batch"] is None
    traced = found["trace"]
    weights = 4 * 1024 * 4096
    phases = {phase["phase"]: phase for phase in traced["phases"]}
    assert traced["trainable_parameters"] == 1024 * 4096
    assert phases["optimizer"]["by_category"]["weights"] == weights
    assert phases["optimizer"]["by_category"]["gradients"] == weights
    # Two moments, and the step counter, which fused AdamW keeps on the card: one block of 512 bytes.
    assert phases["optimizer"]["by_category"]["optimizer"] == 2 * weights + 512
    # The input, for the gradient of the weights, and the loss.
    assert phases["forward"]["by_category"]["stored_activations"] == 4 * 128 * 1024 + 512


def test_the_table_names_the_line_that_made_the_largest_tensors(gpufare) -> None:
    answer = gpufare("--step", "my_training:make")
    assert answer.exit_code == 0, answer.output
    line = 1 + MY_TRAINING[: MY_TRAINING.index("model = torch.nn.Linear")].count("\n")
    assert f"my_training.py:{line}" in answer.stdout
    assert "fits a100-sxm-80gb" in answer.stdout


def test_the_largest_micro_batch_fits_and_one_more_does_not(gpufare) -> None:
    answer = gpufare("--step", "my_training:make", "--gpu", "t4", "--fit", "--seq-len", "65536")
    assert answer.exit_code == 0, answer.output
    largest = int(answer.stdout.splitlines()[-1].split(":")[-1])
    tried = {
        int(line.split()[1].rstrip(":")): float(line.split()[2]) <= float(line.split()[4])
        for line in answer.output.splitlines()
        if line.startswith("micro-batch ")
    }
    assert tried[largest]
    assert not tried[largest + 1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--step", "my_training:branches_on_values"], ["aten.nonzero", "my_training.py:", "values"]),
        (["--step", "my_training:reads_values"], ["values are read", "my_training.py:"]),
        (["--step", "my_training:misspelt"], ["failed (at", "my_training.py:", "RuntimeError"]),
        (["--step", "my_training:returns_nothing"], ["returned NoneType", "(model, optimizer, loss)"]),
        (["--step", "my_training:nowhere"], ["has no function 'nowhere'"]),
        (["--step", "no_such_module:make"], ["no module 'no_such_module'"]),
        (["--step", "my_training"], ["not like my_training:make_step"]),
        (["--step", "my_training:fixed", "--fit"], ["takes no micro_batch"]),
        (["--set", "lora_rnk=1"], ["lora_rnk=1", "lora_rank"]),
        (["--set", "method=qlora"], ["method=qlora with quantization=none", "set quantization=nf4"]),
        (["--set", "gpu_count=8"], ["gpu_count=8 with sharding=none", "set sharding="]),
        (["--step", "my_training:make", "--model", "llama-3.1-8b"], ["--model has no effect with --step"]),
        (["--step", "my_training:make", "--recipe", "hf-lora"], ["--recipe has no effect with --step"]),
        (["--step", "my_training:make", "--layers", "1"], ["--layers has no effect with --step"]),
        (["--step", "my_training:make", "--set", "lora_rank=4"], ["no effect", "gradient_accumulation"]),
        (["--layers", "1", "--fit"], ["--fit with --layers 1", "leave out one"]),
        (["--set", "lora_rank=0"], ["lora_rank", "greater than or equal to 1"]),
        (["--gpu", "mi300x"], ["CDNA3 cards do not run"]),
        (["--gpu", "h9000"], ["'h9000' is not in the catalogue"]),
    ],
)  # fmt: skip
def test_untraceable_step_is_one_line_with_the_reason(gpufare, arguments, words) -> None:
    answer = gpufare(*arguments)
    assert answer.exit_code in (1, 2)
    (line,) = [line for line in answer.output.splitlines() if line.startswith("Error:")]
    for word in words:
        assert word in line


def test_a_cut_model_gets_no_verdict_and_a_note_is_shown(gpufare) -> None:
    cut = ("--model", "chatglm3-6b", "--layers", "1", "--seq-len", "16")
    table = gpufare(*cut)
    assert table.exit_code == 0, table.output
    assert "no verdict on a100-sxm-80gb: the model is cut to 1 layers" in table.stdout
    assert "fits" not in table.stdout
    assert "note: GLM-4's code for ChatGLM3" in table.stdout
    Path("tiny.json").write_text(json.dumps(tiny().config), encoding="utf-8")
    cut = ("--config", "tiny.json", "--layers", "1", "--seq-len", "16", "--format", "json")
    assert json.loads(gpufare(*cut).stdout)["card"] is None


def test_a_sharded_step_names_its_gpus(gpufare) -> None:
    Path("tiny.json").write_text(json.dumps(tiny().config), encoding="utf-8")
    sharded = gpufare("--recipe", "hf-lora-ddp", "--config", "tiny.json", "--seq-len", "16")
    assert sharded.exit_code == 0, sharded.output
    assert "memory of one of 2 GPUs, sharding ddp" in sharded.stdout
    assert "fits 2 x a100-sxm-80gb" in sharded.stdout


def test_json_has_the_largest_micro_batch(gpufare) -> None:
    answer = gpufare(
        "--step", "my_training:make", "--gpu", "t4", "--fit", "--seq-len", "65536", "--format", "json"
    )
    assert json.loads(answer.stdout)["largest_micro_batch"] > 1
