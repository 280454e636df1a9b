"""The replay of torch's caching allocator, against a slow one that only knows a map of bytes."""

import random
import time
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from gpufare_tracer.caching_allocator import MIB, CachingAllocator, replay
from gpufare_tracer.timeline import Allocation, Phase, Timeline

KIB = 1 << 10


@dataclass
class SlowAllocator:
    """Segments as lists of used ranges; free ranges are searched anew each time."""

    segments: list[tuple[int, int, bool]] = field(default_factory=list)
    used: dict[int, int] = field(default_factory=dict)

    def holes(self, is_small: bool) -> list[tuple[int, int]]:
        """Size and address of all free ranges of a pool."""
        found = []
        for start, end, small in self.segments:
            if small is not is_small:
                continue
            at = start
            for address in sorted(a for a in self.used if start <= a < end):
                found.append((address - at, at))
                at = address + self.used[address]
            found.append((end - at, at))
        return [hole for hole in found if hole[0]]

    def allocate(self, size: int) -> int:
        is_small = size <= MIB
        fitting = [hole for hole in self.holes(is_small) if hole[0] >= size]
        if not fitting:
            length = (
                2 * MIB
                if is_small
                else 20 * MIB
                if size < 10 * MIB
                else (size + 2 * MIB - 1) // (2 * MIB) * 2 * MIB
            )
            self.segments.append((self.reserved, self.reserved + length, is_small))
            fitting = [(length, self.segments[-1][0])]
        room, address = min(fitting)
        is_split = room - size >= 512 if is_small else room - size > MIB
        self.used[address] = size if is_split else room
        return address

    @property
    def reserved(self) -> int:
        return self.segments[-1][1] if self.segments else 0


sizes = st.one_of(
    st.integers(1, 20).map(lambda n: n * 512),
    st.integers(1, 4096).map(lambda n: n * 512),
    st.integers(2, 80).map(lambda n: n * 512 * KIB),
    st.sampled_from(
        [MIB, MIB + 512, 2 * MIB, 9 * MIB, 10 * MIB - 512, 10 * MIB, 19 * MIB, 19 * MIB - 512, 20 * MIB]
    ),
)
orders = st.lists(st.tuples(sizes, st.integers(0, 5)), max_size=60)


@settings(max_examples=150, deadline=None)
@given(orders)
def test_the_replay_does_as_the_slow_allocator(orders: list[tuple[int, int]]) -> None:
    """Each order allocates, and frees up to three of what is alive: addresses, blocks and segments agree."""
    fast, slow = CachingAllocator(), SlowAllocator()
    alive: list[int] = []
    for size, frees in orders:
        address = fast.allocate(size)
        assert address == slow.allocate(size)
        alive.append(address)
        for turn in range(min(frees - 2, len(alive))):
            gone = alive.pop((size // 512 + turn) % len(alive))
            fast.free(gone)
            del slow.used[gone]
        assert fast.reserved_bytes == slow.reserved
        assert fast.allocated_bytes == sum(slow.used.values()) <= fast.reserved_bytes


@settings(max_examples=100, deadline=None)
@given(orders)
def test_what_is_allocated_does_not_overlap_and_all_comes_back(orders: list[tuple[int, int]]) -> None:
    allocator = CachingAllocator()
    alive = {allocator.allocate(size): size for size, _ in orders}
    ends = 0
    for address in sorted(alive):
        assert address >= ends
        ends = address + alive[address]
    assert ends <= allocator.reserved_bytes
    for address in alive:
        allocator.free(address)
    assert allocator.allocated_bytes == 0
    # Every segment is one free block again.
    assert all(block.is_free and block.next is None for block in allocator._blocks.values())
    assert sum(block.size for block in allocator._blocks.values()) == allocator.reserved_bytes


def test_the_rules_of_torch_one_by_one() -> None:
    """c10/cuda/CUDACachingAllocator.cpp: get_allocation_size and should_split."""

    def reserved(*sizes: int) -> int:
        allocator = CachingAllocator()
        for size in sizes:
            allocator.allocate(size)
        return allocator.reserved_bytes

    assert reserved(512) == reserved(MIB, MIB) == 2 * MIB
    assert reserved(MIB + 512) == reserved(10 * MIB - 512, 10 * MIB - 512) == 20 * MIB
    assert reserved(10 * MIB) == 10 * MIB
    assert reserved(11 * MIB) == 12 * MIB
    # A rest of 1 MiB stays with its block, a larger one is split off.
    assert reserved(9 * MIB, 9 * MIB, MIB + 512) == 20 * MIB
    assert reserved(9 * MIB, 10 * MIB - 1024, MIB + 1024) == 20 * MIB
    assert reserved(9 * MIB + 512, 10 * MIB - 512, MIB + 512) == 40 * MIB
    # The pools are apart.
    assert reserved(9 * MIB, 512) == 22 * MIB


def test_freed_neighbours_are_one_block_again() -> None:
    allocator = CachingAllocator()
    first, second, third = (allocator.allocate(6 * MIB) for _ in range(3))
    allocator.free(first)
    allocator.free(third)
    allocator.free(second)
    assert allocator.allocate(18 * MIB) == first
    assert allocator.reserved_bytes == 20 * MIB


def test_a_replay_gives_peaks_by_phase() -> None:
    timeline = Timeline()

    def made(size: int) -> int:
        return timeline.allocate(Allocation(size, timeline.phase, "op"))

    made(20 * MIB)
    timeline.begin(Phase.FORWARD)
    kept = made(40 * MIB)
    timeline.begin(Phase.BACKWARD)
    timeline.free(kept)
    made(10 * MIB)
    peaks = replay(timeline)
    assert (peaks[Phase.BUILD].block_bytes, peaks[Phase.BUILD].reserved_bytes) == (20 * MIB, 20 * MIB)
    assert (peaks[Phase.FORWARD].block_bytes, peaks[Phase.FORWARD].reserved_bytes) == (60 * MIB, 60 * MIB)
    # The phase begins with what is alive; the freed segment is split, not given back.
    assert (peaks[Phase.BACKWARD].block_bytes, peaks[Phase.BACKWARD].reserved_bytes) == (60 * MIB, 60 * MIB)


def test_a_long_step_is_replayed_in_seconds() -> None:
    """300,000 events, as many as a deep model's step has; about 0.5 s of one core."""
    draw = random.Random(7)
    timeline = Timeline()
    alive: list[int] = []
    while len(timeline.events) < 300_000:
        if alive and (len(alive) > 3000 or draw.random() < 0.48):
            timeline.free(alive.pop(draw.randrange(len(alive))))
        else:
            size = 512 * draw.randint(1, 2000) if draw.random() < 0.5 else MIB * draw.randint(2, 60)
            alive.append(timeline.allocate(Allocation(size, Phase.BUILD, "op")))
    started = time.process_time()
    replay(timeline)
    assert time.process_time() - started < 2
