"""Runs real training steps, reads torch's own memory counters, and times each step.

    python -m gpufare_tracer.measuring.run_steps REQUEST RESULT

This command runs in a separate process, so that it starts on a clean card, and nothing else ends if it dies.
"""

import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.measuring import card
from gpufare_tracer.measuring.result import Failure, Measured, PhasePeak, Request
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import TraceShape
from gpufare_tracer.steps import Step, build_step, load_transformers
from gpufare_tracer.timeline import Phase
from gpufare_tracer.trace import STEPS

SEED = 20
MIB = 1 << 20

Say = Callable[[str], None]


class PhasePeaks:
    """Peaks of allocated and reserved bytes in each phase, the highest over all steps.

    ``begin`` marks the start of a phase, and resets torch's peak counters. torch counts memory when the host
    asks for it, so nothing waits for the GPU.
    """

    def __init__(self, *, is_counted: bool = True) -> None:
        """``is_counted`` is False on a CPU, where only the current phase is tracked."""
        self.peaks: dict[Phase, tuple[int, int]] = {}
        self.phase: Phase | None = None
        """The current phase."""
        self._is_counted = is_counted

    def begin(self, phase: Phase | None) -> None:
        """End the current phase, and begin ``phase`` unless ``phase`` is None."""
        if self._is_counted:
            self._count()
        self.phase = phase

    def _count(self) -> None:
        import torch

        if self.phase is not None:
            seen = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
            before = self.peaks.get(self.phase, (0, 0))
            self.peaks[self.phase] = max(before[0], seen[0]), max(before[1], seen[1])
        torch.cuda.reset_peak_memory_stats()


def run_steps(
    request: Request, say: Say, build: Callable[[Recipe, TraceShape], Step] = build_step
) -> Measured:
    """Run the steps and measure them. Running out of memory is a result, not an error.

    ``say`` receives progress messages. Raises ``CannotTraceError`` if the recipe cannot be run here.
    """
    import torch

    torch.manual_seed(SEED)
    recipe, device = request.recipe, "cpu" if request.on_cpu else "cuda"
    if not request.on_cpu and not torch.cuda.is_available():
        raise CannotTraceError(
            "torch sees no GPU here; --cpu tries the command on the CPU, which says nothing about a GPU"
        )
    load_transformers()
    from gpufare_tracer.frameworks.surroundings import on_a_real_device

    seen: dict[str, Any] = _device(device)
    peaks = PhasePeaks(is_counted=not request.on_cpu)
    with _running_out_of_memory(seen, peaks), on_a_real_device(recipe, device):
        say(f"building {request.shape.model} with random weights")
        peaks.begin(Phase.BUILD)
        try:
            step = build(recipe, request.shape)
        except ImportError as error:
            raise CannotTraceError(f"recipe {recipe.name!r}: {error}") from error
        seen["versions"] = {name: version(name) for name in ("torch", *step.packages)}
        seen["trainable_parameters"] = sum(p.numel() for p in step.parameters if p.requires_grad)
        seen["note"] = step.note
        peaks.begin(None)
        _forget_building(device)
        for _ in range(STEPS):
            step.run(peaks.begin)
        peaks.begin(None)
        say(f"{request.warm_up} steps to warm up, then {request.steps} that are timed")
        for _ in range(request.warm_up):
            step.run(_nothing)
        seen["step_seconds"] = tuple(_seconds_of_steps(step, request.steps, device))
    seen["phases"] = tuple(
        PhasePeak(phase=phase, allocated_bytes=allocated, reserved_bytes=reserved)
        for phase, (allocated, reserved) in peaks.peaks.items()
        if phase is not Phase.BUILD
    )
    seen |= _memory(peaks, seen["card_uuid"]) if device == "cuda" else {}
    unit = 1 if sys.platform == "darwin" else 1024
    seen["host_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return Measured.model_validate(seen)


@contextmanager
def _running_out_of_memory(seen: dict[str, Any], peaks: PhasePeaks) -> Iterator[None]:
    """End the steps when an error says that memory is exhausted, and note the current phase."""
    import torch

    try:
        yield
    except (torch.OutOfMemoryError, RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        first = (str(error).splitlines() or [type(error).__name__])[0]
        where = {Phase.BUILD: "while the model was made", None: "in a later step"}
        seen["out_of_memory"] = f"{where.get(peaks.phase, f'in the {peaks.phase} phase of a step')}: {first}"
        peaks.begin(None)


def is_out_of_memory(error: BaseException) -> bool:
    """Return True if an error from torch, its CPU allocator or bitsandbytes reports exhausted memory."""
    import torch

    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    words = ("out of memory", "can't allocate memory", "not enough memory", "CUBLAS_STATUS_ALLOC_FAILED")
    return any(each in str(error) for each in words)


def _nothing(_: Phase) -> None:
    """Ignore the phase: warm-up steps and timed steps do not count memory by phase."""


def _device(device: str) -> dict[str, Any]:
    import torch

    if device == "cpu":
        return {"device": "cpu", "card_uuid": ""}
    properties = torch.cuda.get_device_properties(0)
    return {
        "device": torch.cuda.get_device_name(0),
        "card_uuid": str(getattr(properties, "uuid", "")).removeprefix("GPU-"),
        "memory_bytes": properties.total_memory,
    }


def _forget_building(device: str) -> None:
    """Free memory used only to create the weights: loading real weights needs a different amount."""
    import gc

    import torch

    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()


def _seconds_of_steps(step: Step, steps: int, device: str) -> Iterator[float]:
    """Yield the time of each step; on a GPU, events measure it, so that the host waits only at the end."""
    import torch

    if device == "cpu":
        for _ in range(steps):
            start = perf_counter()
            step.run(_nothing)
            yield perf_counter() - start
        return
    events = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    torch.cuda.synchronize()
    events[0].record()
    for event in events[1:]:
        step.run(_nothing)
        event.record()
    torch.cuda.synchronize()
    for before, after in pairwise(events):
        yield before.elapsed_time(after) / 1000


def _memory(peaks: PhasePeaks, uuid: str) -> dict[str, int]:
    """Return the peaks over all steps, and the memory in use on the whole card at the end."""
    import torch

    counted = [peak for phase, peak in peaks.peaks.items() if phase is not Phase.BUILD] or [(0, 0)]
    found = {
        "allocated_bytes": max(torch.cuda.max_memory_allocated(), *(each for each, _ in counted)),
        "reserved_bytes": max(torch.cuda.max_memory_reserved(), *(each for _, each in counted)),
    }
    try:
        used = card.cards()[uuid].used_mib
    except (card.NoCardsError, KeyError):
        return found
    given_back = found["reserved_bytes"] - torch.cuda.memory_reserved()
    return found | {"used_at_end_bytes": int(used * MIB) + given_back}


def main(request: Path, result: Path) -> None:
    """Run the steps in a request file, and write the measurement, or the reason for its absence, as JSON."""
    found: Measured | Failure
    try:
        found = run_steps(
            Request.model_validate_json(request.read_text(encoding="utf-8")),
            lambda line: print(line, file=sys.stderr, flush=True),
        )
    except CannotTraceError as error:
        found = Failure(problem=str(error))
    result.write_text(found.model_dump_json(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
