"""The peak memory of each phase of a step on a real GPU, by torch's own counters."""

from gpufare_tracer.timeline import Phase


class PhasePeaks:
    """Peak allocated and reserved of each phase, bytes, the most over the steps.

    ``begin`` says when a phase begins, and resets torch's counters of peaks. Torch counts when the host asks
    for memory, so nothing waits for the GPU.
    """

    def __init__(self, *, is_counted: bool = True) -> None:
        """``is_counted`` False, for a CPU: only the phase is known."""
        self.peaks: dict[Phase, tuple[int, int]] = {}
        self.phase: Phase | None = None
        """The phase under way."""
        self._is_counted = is_counted

    def begin(self, phase: Phase | None) -> None:
        """End the phase under way, and begin this one; None: no other."""
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
