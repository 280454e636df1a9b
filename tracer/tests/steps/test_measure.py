"""`gpufare measure` on the CPU: a real model of two layers, real steps, and memory that really runs out."""

import json
import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result

from gpufare_tracer.measuring.measure import MeasureError, measure, run_in_another_process
from gpufare_tracer.measuring.result import Request
from gpufare_tracer.measuring.run_steps import is_out_of_memory, run_steps
from gpufare_tracer.recipes import read_recipes
from gpufare_tracer.steps import Step, build_step
from gpufare_tracer.timeline import Phase
from pipeline.cli.main import main
from pipeline.home import paths
from pipeline.model.own_runs import read_own_runs
from tests.shapes import tiny

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "measure.md"
NOW = datetime(2026, 8, 22, 12, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that wait for each other take seconds per step of a tiny model on a busy machine."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def request_of(recipe: str = "hf-lora", steps: int = 3, **changes: Any) -> Request:
    mine = read_recipes()[recipe].model_copy(update=changes.pop("switches", {}))
    return Request(recipe=mine, shape=tiny(seq_len=16, **changes), steps=steps, warm_up=1, on_cpu=True)


def gpufare(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_a_qlora_step_is_measured_and_its_row_kept() -> None:
    request = request_of("hf-qlora", switches={"optimizer": "adamw_fused"})
    done = measure(request, paths.home(), NOW)
    assert len(done.measured.step_seconds) == 3
    assert min(done.measured.step_seconds) > 0
    assert done.tokens_per_second == pytest.approx(16 / sorted(done.measured.step_seconds)[1])
    assert {"torch", "transformers", "peft", "bitsandbytes"} <= set(done.measured.versions)
    assert done.measured.host_bytes is not None
    assert done.measured.host_bytes > 50 << 20
    assert done.not_ready == ["the steps ran on the CPU", "the model is not one of the catalogue"]
    (kept,) = read_own_runs(paths.home()).runs
    assert (kept.values["run_id"], kept.values["quantization"]) == ("own-20260822T123000Z", "nf4dq")
    assert float(kept.values["measured_tokens_per_second_per_gpu"]) == pytest.approx(
        done.tokens_per_second, rel=1e-4
    )


def test_memory_that_really_runs_out_is_a_result() -> None:
    done = measure(request_of(micro_batch=1 << 48), paths.home(), NOW)
    assert "in the forward phase of a step: " in done.measured.out_of_memory
    assert "can't allocate memory" in done.measured.out_of_memory
    (kept,) = read_own_runs(paths.home()).runs
    assert (kept.values["out_of_memory"], kept.values["measured_tokens_per_second_per_gpu"]) == ("1", "")


@dataclass
class Dying:
    """A step that runs out of memory in a phase of one of its runs."""

    step: Step
    dies_in: int
    phase: Phase
    packages: tuple[str, ...] = ()
    note: str = ""
    runs: int = 0

    @property
    def parameters(self) -> Iterable[Any]:
        return self.step.parameters

    optimizer: Any = None
    steps_in_run: int = 1

    def run(self, begin: Callable[[Phase], None]) -> None:
        self.runs += 1

        def beginning(phase: Phase) -> None:
            begin(phase)
            if self.runs == self.dies_in and phase is self.phase:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nGPU 0 has ...")

        self.step.run(beginning)


@pytest.mark.parametrize(
    ("dies_in", "phase", "where"),
    [
        (1, Phase.BACKWARD, "in the backward phase of a step"),
        (2, Phase.OPTIMIZER, "in the optimizer phase of a step"),
        (3, Phase.FORWARD, "in a later step"),
        (5, Phase.FORWARD, "in a later step"),
    ],
)
def test_phase_of_running_out_of_memory_is_named(dies_in: int, phase: Phase, where: str) -> None:
    request = request_of(switches={"autocast": None})
    found = run_steps(request, lambda _: None, lambda *what: Dying(build_step(*what), dies_in, phase))
    assert found.out_of_memory == f"{where}: CUDA out of memory. Tried to allocate 2.00 GiB."
    assert found.step_seconds == ()
    assert found.trainable_parameters is not None


def test_running_out_of_memory_during_setup_is_reported() -> None:
    def too_large(*_: Any) -> Step:
        raise RuntimeError("CUDA error: out of memory")

    found = run_steps(request_of(), lambda _: None, too_large)
    assert found.out_of_memory == "while the model was made: CUDA error: out of memory"


def test_other_errors_are_not_a_lack_of_memory() -> None:
    def broken(*_: Any) -> Step:
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes do not match"):
        run_steps(request_of(), lambda _: None, broken)
    assert not is_out_of_memory(RuntimeError("shapes do not match"))


def test_steps_that_die_of_something_else_are_an_error() -> None:
    request = request_of(switches={"optimizer": "nothing"})
    with pytest.raises(MeasureError, match="the steps' process ended with code 1; what it said is above"):
        run_in_another_process(request)


def test_the_command_prints_the_row_and_no_file_of_the_folder_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("torch.py").write_text("raise SystemExit('the wrong torch')")
    Path("tiny.json").write_text(json.dumps(tiny().config))
    arguments = ("--recipe", "hf-full", "--seq-len", "16", "--steps", "2", "--warm-up", "0", "--cpu")
    answer = gpufare("measure", "--config", "tiny.json", *arguments, "--home", "here")
    assert answer.exit_code == 0, answer.output
    assert "hf-full on tiny, 1 x 16 tokens, on cpu" in answer.stdout
    assert re.search(r"step: \d+\.\d{4} s, the median of 2; half of them within", answer.stdout)
    assert "not ready for the catalogue: the steps ran on the CPU" in answer.stdout
    assert f"added to {tmp_path / 'here' / 'measured_runs.csv'}" in answer.stdout
    heading, row = (line for line in answer.stdout.splitlines() if line.count(",") > 30)
    assert len(row.split(",")) == len(heading.split(","))
    assert not paths.home().own_runs.exists()


def test_the_command_of_the_page_is_understood() -> None:
    (command,) = re.findall(r"^gpufare measure .+", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert (
        "torch sees no GPU here; --cpu tries the command on the CPU"
        in gpufare(*shlex.split(command)[1:]).stderr
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("recipe", ["hf-full", "hf-lora", "hf-qlora", "hf-lora-liger", "hf-qlora-liger"])
def test_on_a_gpu_memory_is_counted_by_phase(recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)  # set where a test traced before
    found = run_in_another_process(request_of(recipe).model_copy(update={"on_cpu": False}))
    peaks = {peak.phase: peak for peak in found.phases}
    assert list(peaks) == [Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER]
    assert found.allocated_bytes is not None
    assert found.reserved_bytes is not None
    assert found.allocated_bytes >= max(peak.allocated_bytes for peak in peaks.values()) > 0
    assert found.reserved_bytes >= found.allocated_bytes
    assert len(found.step_seconds) == 3
