"""The same step on a real GPU and traced: peak allocated by phase, side by side.

For a machine with a GPU; nothing depends on it. A process that traces cannot compute, so the trace is made in
another process.
"""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.phase_peaks import PhasePeaks
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import Trace, TraceShape
from gpufare_tracer.steps import Step, build_step, load_transformers
from gpufare_tracer.timeline import Phase
from gpufare_tracer.trace import STEPS

TRACE_IN_ANOTHER_PROCESS = """
import sys
from gpufare_tracer.phase_peaks import PhasePeaks
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import TraceShape
from gpufare_tracer.trace import trace
recipe, shape = sys.argv[1:]
found = trace(Recipe.model_validate_json(recipe), TraceShape.model_validate_json(shape))
sys.stdout.write(found.model_dump_json())
"""


@dataclass(frozen=True, slots=True)
class PhaseParity:
    """Peak allocated of one phase, bytes; ``reserved`` counts from the start of the process."""

    phase: Phase
    measured_bytes: int
    traced_bytes: int
    measured_reserved_bytes: int
    traced_reserved_bytes: int

    @property
    def error(self) -> float:
        """Traced over measured, minus 1."""
        return self.traced_bytes / self.measured_bytes - 1


def parity(recipe: Recipe, shape: TraceShape) -> list[PhaseParity]:
    """Run a step on this machine's GPU and trace it.

    Raises ``CannotTraceError`` where there is no GPU and where the trace fails.
    """
    measured = _measured(recipe, shape)
    traced = _traced(recipe, shape.model_copy(update={"compute_capability": _compute_capability()}))
    return [
        PhaseParity(
            phase.phase, *measured[phase.phase][:1], phase.block_bytes, measured[phase.phase][1],
            phase.reserved_bytes,
        )
        for phase in traced.phases
    ]  # fmt: skip


def _compute_capability() -> tuple[int, int]:
    import torch

    return torch.cuda.get_device_capability()  # type: ignore[no-any-return]


def _measured(recipe: Recipe, shape: TraceShape) -> dict[Phase, tuple[int, int]]:
    """Peak allocated and reserved of each phase on the GPU, the most over the steps."""
    import torch

    if not torch.cuda.is_available():
        raise CannotTraceError("parity compares a trace with a real GPU, and torch sees none here")
    load_transformers()
    from gpufare_tracer.frameworks.surroundings import on_a_real_device

    with on_a_real_device(recipe):
        return _peaks(build_step(recipe, shape))


def _peaks(step: Step) -> dict[Phase, tuple[int, int]]:
    peaks = PhasePeaks()
    for _ in range(STEPS):
        step.run(peaks.begin)
    peaks.begin(None)
    return peaks.peaks


def _traced(recipe: Recipe, shape: TraceShape) -> Trace:
    arguments = recipe.model_dump_json(), shape.model_dump_json()
    return Trace.model_validate_json(_run([sys.executable, "-c", TRACE_IN_ANOTHER_PROCESS, *arguments]))


def _run(command: Sequence[str]) -> str:
    answer = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (our own code)
    if answer.returncode:
        last = (answer.stderr.strip().splitlines() or ["no output"])[-1]
        raise CannotTraceError(f"the trace failed: {last}")
    return answer.stdout
