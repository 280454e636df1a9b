"""The allocations of a traced step, in order, and the allocations alive at the peak of each phase.

torch is not needed here: a timeline lists allocations, and the order in which they were made and freed.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

Name = TypeVar("Name")

ALLOCATION_BYTES = 512
"""The caching allocator's unit of allocation: kMinBlockSize in c10/cuda/CUDACachingAllocator.cpp."""


def rounded(size_bytes: int) -> int:
    """Return the bytes that the caching allocator takes for a tensor; 0 for an empty tensor."""
    return (size_bytes + ALLOCATION_BYTES - 1) // ALLOCATION_BYTES * ALLOCATION_BYTES


class Phase(StrEnum):
    """The phases of a training step; ``build`` comes before the first step."""

    BUILD = "build"
    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"


class Moment(StrEnum):
    """Stretches of a phase within which memory grows by the same amount with every layer.

    Depth and shape decide at which moment a phase peaks. No moment covers the backward passes of the layers
    between the last and the first, during which memory changes evenly.
    """

    FORWARD = "forward_layers"
    LOSS = "loss"
    """From the last layer's output to the end of the forward pass."""
    LOSS_BACKWARD = "loss_backward"
    """The backward pass from the loss to the last layer's output."""
    LAST_LAYER_BACKWARD = "last_layer_backward"
    FIRST_LAYER_BACKWARD = "first_layer_backward"
    """The backward pass of the first layer and the embedding."""
    OPTIMIZER = "optimizer_step"


_FIRST_MOMENT = {
    Phase.FORWARD: Moment.FORWARD, Phase.BACKWARD: Moment.LOSS_BACKWARD, Phase.OPTIMIZER: Moment.OPTIMIZER,
}  # fmt: skip


class Category(StrEnum):
    """The purpose of a tensor."""

    WEIGHTS = "weights"
    ADAPTERS = "adapters"
    GRADIENTS = "gradients"
    OPTIMIZER = "optimizer"
    STORED_ACTIVATIONS = "stored_activations"
    """Made in the forward pass and still alive when the forward pass ends."""
    WORKING_SET = "working_set"
    """Made and freed within the forward pass, or made again when a checkpointed layer is recomputed."""
    LOGITS = "logits"
    """One row per token and one column per vocabulary entry."""
    TEMPORARIES = "temporaries"
    """Made in the backward pass or the optimizer step and freed there."""
    HIDDEN_TEMPORARIES = "hidden_temporaries"
    """Made inside a CUDA kernel's own code, where no framework sees the allocation."""
    WORKSPACE = "workspace"
    """The cuBLAS workspaces, one per thread."""
    COMMUNICATION = "communication"
    """Buffers of collectives: DDP's buckets, gathered weights, and gradients in transit."""


@dataclass(slots=True)
class Allocation:
    """One storage: its origin, and when it was made and freed."""

    size_bytes: int
    """The size as rounded by the caching allocator."""
    phase: Phase
    operation: str
    tensor: str = ""
    """Type and shape of the first tensor in the storage."""
    line: str = ""
    """file:line of the code outside torch that made the storage."""
    owner: Category | None = None
    is_recompute: bool = False
    freed_at: int | None = None
    """Index of the event that freed the storage."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The point in a phase or moment at which the most memory was allocated."""

    allocated_bytes: int
    operation: str
    event: int
    alive: tuple[int, ...]
    """Indices of the live allocations."""


@dataclass
class Timeline:
    """Allocations, and the order in which they were made and freed.

    ``events`` contains ``i`` where allocation ``i`` was made, and ``~i`` where it was freed. ``marks`` and
    ``moments`` give the event index at which each phase and moment began; None marks a gap between moments.
    """

    allocations: list[Allocation] = field(default_factory=list)
    events: list[int] = field(default_factory=list)
    marks: list[tuple[int, Phase]] = field(default_factory=lambda: [(0, Phase.BUILD)])
    moments: list[tuple[int, Moment | None]] = field(default_factory=lambda: [(0, None)])

    @property
    def phase(self) -> Phase:
        """The current phase."""
        return self.marks[-1][1]

    def begin(self, phase: Phase) -> None:
        """Mark the start of a phase."""
        self.marks.append((len(self.events), phase))
        self.enter(_FIRST_MOMENT.get(phase))

    def enter(self, moment: Moment | None) -> None:
        """Mark the start of a moment within the phase."""
        self.moments.append((len(self.events), moment))

    def allocate(self, allocation: Allocation) -> int:
        """Append an allocation and return its index."""
        index = len(self.allocations)
        self.allocations.append(allocation)
        self.events.append(index)
        return index

    def free(self, index: int) -> None:
        """Record that an allocation was freed."""
        self.allocations[index].freed_at = len(self.events)
        self.events.append(~index)

    def spans(self) -> Iterator[tuple[Phase, int, int]]:
        """For each stretch of a phase, yield the phase, the first event, and the event after the last."""
        ends = [start for start, _ in self.marks[1:]] + [len(self.events)]
        for (start, phase), end in zip(self.marks, ends, strict=True):
            yield phase, start, end

    def peaks(self) -> dict[Phase, Peak]:
        """Return the highest point of each phase except ``build``, over all recorded steps."""
        return {
            phase: self._peak(*highest)
            for phase, highest in self._highest(self.marks).items()
            if phase is not Phase.BUILD
        }

    def moment_peaks(self) -> dict[Moment, Peak]:
        """Return the highest point of each moment that the steps entered, over all recorded steps."""
        return {
            moment: self._peak(*highest)
            for moment, highest in self._highest(self.moments).items()
            if moment is not None
        }

    def _highest(self, marks: Sequence[tuple[int, Name]]) -> dict[Name, tuple[int, int]]:
        """Return the peak of allocated bytes in each named stretch, and the event that reached the peak."""
        best: dict[Name, tuple[int, int]] = {}
        current = 0
        ends = [start for start, _ in marks[1:]] + [len(self.events)]
        for (start, name), end in zip(marks, ends, strict=True):
            if current > best.get(name, (0, 0))[0]:
                best[name] = (current, start - 1)
            for position in range(start, end):
                index = self.events[position]
                if index < 0:
                    current -= self.allocations[~index].size_bytes
                    continue
                current += self.allocations[index].size_bytes
                if current > best.get(name, (0, 0))[0]:
                    best[name] = (current, position)
        return best

    def _peak(self, allocated_bytes: int, event: int) -> Peak:
        alive: set[int] = set()
        for index in self.events[: event + 1]:
            if index >= 0:
                alive.add(index)
            else:
                alive.discard(~index)
        made = self.events[event]
        operation = self.allocations[made].operation if made >= 0 else ""
        return Peak(allocated_bytes, operation, event, tuple(sorted(alive)))

    def by_category(self, peak: Peak) -> dict[Category, int]:
        """Return the live bytes at a peak, by purpose."""
        forward_end = self._end_of_forward(peak.event)
        sizes: Counter[Category] = Counter()
        for index in peak.alive:
            allocation = self.allocations[index]
            sizes[self._category(allocation, forward_end)] += allocation.size_bytes
        return {category: sizes[category] for category in Category if sizes[category]}

    def category(self, allocation: Allocation, peak: Peak) -> Category:
        """Return the purpose of an allocation alive at a peak."""
        return self._category(allocation, self._end_of_forward(peak.event))

    def _end_of_forward(self, event: int) -> int:
        """Return the event at which the forward pass of the micro-batch at ``event`` ended or will end."""
        end = len(self.events)
        for phase, start, stop in self.spans():
            if phase is Phase.FORWARD and start <= event:
                end = stop
        return end

    @staticmethod
    def _category(allocation: Allocation, forward_end: int) -> Category:
        if allocation.owner is not None:
            return allocation.owner
        if allocation.phase is Phase.BUILD:
            return Category.WEIGHTS
        if allocation.phase is Phase.FORWARD:
            is_stored = allocation.freed_at is None or allocation.freed_at >= forward_end
            return Category.STORED_ACTIVATIONS if is_stored else Category.WORKING_SET
        return Category.WORKING_SET if allocation.is_recompute else Category.TEMPORARIES

    def alive_bytes(self, at: int | None = None) -> int:
        """Return the live bytes after the first ``at`` events, or after all events if ``at`` is None."""
        return sum(
            self.allocations[i].size_bytes if i >= 0 else -self.allocations[~i].size_bytes
            for i in self.events[:at]
        )
