"""Decides whether a traced step fits on a card, and finds the largest micro-batch that does."""

from collections.abc import Callable
from dataclasses import dataclass

import duckdb

from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.result import PhaseTrace, Trace
from gpufare_tracer.timeline import Category, Phase

GIB = 1 << 30
LARGE_TRANSIENTS = (Category.LOGITS, Category.WORKING_SET, Category.TEMPORARIES, Category.HIDDEN_TEMPORARIES)
"""Categories of large tensors; the caching allocator loses memory to fragmentation between them."""


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU's memory, and how much of it must be free beyond what a trace sees.

    The margins are taken from the SQL model's fit verdict (``needed_gib`` in sql/model/30_memory.sql).
    """

    gpu: str
    compute_capability: tuple[int, int]
    """Decides which attention kernel torch uses."""
    usable_gib: float
    process_gib: float
    reserved_ratio: float
    transient_share: float
    margin_gib: float

    def needed_gib(self, trace: Trace) -> float:
        """GiB that must be free for the step."""
        return max(map(self._needed_gib, trace.phases)) + self.process_gib + self.margin_gib

    def _needed_gib(self, phase: PhaseTrace) -> float:
        if phase.phase is Phase.OPTIMIZER:
            return phase.block_bytes / GIB
        transient = sum(phase.by_category.get(category, 0) for category in LARGE_TRANSIENTS)
        return (phase.block_bytes + self.transient_share * transient) * self.reserved_ratio / GIB

    def holds(self, trace: Trace) -> bool:
        """True if the step fits on the card."""
        return self.needed_gib(trace) <= self.usable_gib


COMPUTE_CAPABILITIES = {
    "Pascal": (6, 0), "Volta": (7, 0), "Turing": (7, 5), "Ampere": (8, 0), "Ada": (8, 9), "Hopper": (9, 0),
    "Blackwell": (10, 0), "Blackwell Ultra": (10, 3),
}  # fmt: skip
"""The compute capability of each generation's data-centre cards, from NVIDIA's CUDA C++ Programming Guide."""


def read_card(connection: duckdb.DuckDBPyConnection, gpu: str) -> Card:
    """Return a catalogue card. Raises ``CannotTraceError`` for an unknown id or a card without CUDA."""
    row = connection.execute(
        "SELECT g.gpu_id, g.architecture, g.usable_memory_gib, k.context_gib, k.fit_reserved_ratio, "
        "k.fit_transient, k.fit_margin_gib FROM main.gpus AS g, constants() AS c "
        "WHERE g.gpu_id = $gpu AND c.calibration = 'all' AND g.usable_memory_gib IS NOT NULL",
        {"gpu": gpu},
    ).fetchone()
    if row is None:
        raise CannotTraceError(f"--gpu {gpu!r} is not in the catalogue; see: gpufare sql 'FROM gpus'")
    name, architecture, *numbers = row
    if architecture not in COMPUTE_CAPABILITIES:
        raise CannotTraceError(
            f"--gpu {gpu}: a trace is of CUDA kernels, which {architecture} cards do not run"
        )
    return Card(name, COMPUTE_CAPABILITIES[architecture], *numbers)


def largest_micro_batch(
    trace_of: Callable[[int], Trace],
    card: Card,
    say: Callable[[str], None],
    limit: int = 65_536,
    *,
    first: Trace | None = None,
) -> int:
    """Return the largest micro-batch, up to ``limit``, whose step fits the card; 0 if no micro-batch fits.

    ``trace_of`` traces a micro-batch; ``first`` is an earlier trace. Memory grows almost linearly with the
    micro-batch, so the search next tries the size where the line through two tried sizes meets the card's
    memory (at least twice the last size while all fit); after ``MISSES`` misses, it bisects what remains.
    """
    needed: dict[int, float] = {}
    low, high, misses = 0, limit + 1, 0
    size = min(first.shape.micro_batch, limit) if first else 1
    while high - low > 1:
        is_made = first is not None and size == first.shape.micro_batch
        needed[size] = card.needed_gib(first if first is not None and is_made else trace_of(size))
        say(f"micro-batch {size}: {needed[size]:.2f} of {card.usable_gib:.2f} GiB")
        width = high - low
        low, high = (size, high) if needed[size] <= card.usable_gib else (low, size)
        misses += high <= limit and 2 * (high - low) > width
        guess = (low + high) // 2
        if high > limit:
            guess = max(2 * low, _on_the_line(needed, sorted(needed)[-2:], card.usable_gib))
        elif misses < MISSES and low in needed:
            guess = _on_the_line(needed, [low, high], card.usable_gib)
        size = min(max(guess, low + 1), high - 1)
    return low


MISSES = 4
"""Number of tries that may leave more than half of the candidate sizes before the search starts to bisect."""


def _on_the_line(needed: dict[int, float], sizes: list[int], usable_gib: float) -> int:
    """Return the point where the line through two sizes meets the limit; 0 if the line does not rise."""
    one, other = sizes[0], sizes[-1]
    rise = needed[other] - needed[one]
    return int(one + (usable_gib - needed[one]) * (other - one) / rise) if rise > 0 else 0
