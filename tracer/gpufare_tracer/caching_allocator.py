"""A replay of torch's CUDA caching allocator: the memory that a process reserves for a step's allocations.

Modelled on c10/cuda/CUDACachingAllocator.cpp with default settings (round_size, get_allocation_size,
should_split, get_free_block, free_block): two pools (up to 1 MiB and above), segments of 2 MiB, 20 MiB or the
next multiple of 2 MiB, best fit, splitting and coalescing. Segments are returned only when memory runs out,
which never happens in a replay, so on a nearly full card, less is reserved than the replay says.
"""

import bisect
from dataclasses import dataclass, field

from gpufare_tracer.timeline import ALLOCATION_BYTES, Phase, Timeline

MIB = 1 << 20
SMALL_ALLOCATION_BYTES = MIB
SMALL_SEGMENT_BYTES = 2 * MIB
LARGE_SEGMENT_BYTES = 20 * MIB
LARGE_ALLOCATION_BYTES = 10 * MIB
SEGMENT_MULTIPLE_BYTES = 2 * MIB


@dataclass(slots=True)
class _Block:
    """A piece of a segment; neighbours within the segment are linked."""

    address: int
    size: int
    is_small: bool
    previous: "_Block | None" = None
    next: "_Block | None" = None
    is_free: bool = False


@dataclass
class CachingAllocator:
    """The allocator's state.

    ``reserved_bytes`` is the memory taken from the driver; ``allocated_bytes`` counts the blocks in use,
    each with any remainder that is too small to split off. Segments are laid out one after another, in the
    order in which they are made; among free blocks of equal size, the one at the lowest address is taken.
    """

    reserved_bytes: int = 0
    allocated_bytes: int = 0
    _free: dict[bool, list[tuple[int, int]]] = field(default_factory=lambda: {True: [], False: []})
    """Sizes and addresses of the free blocks in each pool, sorted."""
    _blocks: dict[int, _Block] = field(default_factory=dict)

    def allocate(self, size_bytes: int) -> int:
        """Take a block for ``size_bytes`` (a multiple of 512); return its address."""
        is_small = size_bytes <= SMALL_ALLOCATION_BYTES
        block = self._best_fit(size_bytes, is_small) or self._segment(size_bytes, is_small)
        rest = block.size - size_bytes
        if rest >= ALLOCATION_BYTES if is_small else rest > SMALL_ALLOCATION_BYTES:
            self._split(block, size_bytes)
        block.is_free = False
        self.allocated_bytes += block.size
        return block.address

    def free(self, address: int) -> None:
        """Return a block to its pool and merge it with any free neighbours."""
        block = self._blocks[address]
        self.allocated_bytes -= block.size
        for neighbour in (block.next, block.previous):
            if neighbour is not None and neighbour.is_free:
                self._forget(neighbour)
                block = self._join(block, neighbour)
        self._remember(block)

    def _best_fit(self, size_bytes: int, is_small: bool) -> _Block | None:
        free = self._free[is_small]
        place = bisect.bisect_left(free, (size_bytes, 0))
        return self._blocks[free.pop(place)[1]] if place < len(free) else None

    def _segment(self, size_bytes: int, is_small: bool) -> _Block:
        if is_small:
            size = SMALL_SEGMENT_BYTES
        elif size_bytes < LARGE_ALLOCATION_BYTES:
            size = LARGE_SEGMENT_BYTES
        else:
            size = -(-size_bytes // SEGMENT_MULTIPLE_BYTES) * SEGMENT_MULTIPLE_BYTES
        block = self._blocks[self.reserved_bytes] = _Block(self.reserved_bytes, size, is_small)
        self.reserved_bytes += size
        return block

    def _split(self, block: _Block, size_bytes: int) -> None:
        address = block.address + size_bytes
        rest = _Block(address, block.size - size_bytes, block.is_small, block, block.next)
        self._blocks[address] = rest
        if block.next is not None:
            block.next.previous = rest
        block.size, block.next = size_bytes, rest
        self._remember(rest)

    def _join(self, one: _Block, other: _Block) -> _Block:
        left, right = (one, other) if one.next is other else (other, one)
        left.size += right.size
        left.next = right.next
        if right.next is not None:
            right.next.previous = left
        del self._blocks[right.address]
        return left

    def _remember(self, block: _Block) -> None:
        block.is_free = True
        bisect.insort(self._free[block.is_small], (block.size, block.address))

    def _forget(self, block: _Block) -> None:
        free = self._free[block.is_small]
        del free[bisect.bisect_left(free, (block.size, block.address))]


@dataclass(slots=True)
class ReplayedPeak:
    """A phase's peak in blocks, as in torch.cuda.max_memory_allocated, and the bytes reserved by its end."""

    block_bytes: int = 0
    reserved_bytes: int = 0


def replay(timeline: Timeline) -> dict[Phase, ReplayedPeak]:
    """Return the allocator's peaks in each phase, the highest over all recorded steps."""
    allocator = CachingAllocator()
    handles: dict[int, int] = {}
    peaks: dict[Phase, ReplayedPeak] = {}
    for phase, start, end in timeline.spans():
        peak = peaks.setdefault(phase, ReplayedPeak())
        most = allocator.allocated_bytes
        for event in timeline.events[start:end]:
            if event >= 0:
                handles[event] = allocator.allocate(timeline.allocations[event].size_bytes)
                most = max(most, allocator.allocated_bytes)
            else:
                allocator.free(handles.pop(~event))
        peak.block_bytes = max(peak.block_bytes, most)
        peak.reserved_bytes = allocator.reserved_bytes
    return peaks
