"""A timeline's peaks, against a recount of what is alive after every single event."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gpufare_tracer.timeline import ALLOCATION_BYTES, Allocation, Category, Phase, Timeline, rounded

PHASES = [Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER]

allocations = st.builds(
    Allocation,
    size_bytes=st.integers(1, 40).map(lambda n: n * ALLOCATION_BYTES),
    phase=st.just(Phase.BUILD),
    operation=st.sampled_from(["mm", "add", "cat"]),
    owner=st.sampled_from([None, None, Category.WEIGHTS, Category.GRADIENTS, Category.LOGITS]),
    is_recompute=st.booleans(),
)
orders = st.lists(
    st.one_of(allocations, st.integers(0, 50), st.sampled_from(PHASES)), min_size=1, max_size=60
)
"""Allocate this, free the nth of those alive, or begin a phase."""


def played(orders: list[Allocation | int | Phase]) -> Timeline:
    timeline = Timeline()
    alive: list[int] = []
    for order in orders:
        if isinstance(order, Phase):
            timeline.begin(order)
        elif isinstance(order, int):
            if alive:
                timeline.free(alive.pop(order % len(alive)))
        else:
            order.phase = timeline.phase
            alive.append(timeline.allocate(order))
    return timeline


def alive_after(timeline: Timeline, event: int) -> set[int]:
    made = {index for index in timeline.events[: event + 1] if index >= 0}
    return made - {~index for index in timeline.events[: event + 1] if index < 0}


def bytes_after(timeline: Timeline, event: int) -> int:
    return sum(timeline.allocations[index].size_bytes for index in alive_after(timeline, event))


@settings(max_examples=200, deadline=None)
@given(orders)
def test_peaks_are_the_most_alive_in_each_phase(orders: list[Allocation | int | Phase]) -> None:
    timeline = played(orders)
    expected: dict[Phase, int] = {}
    for phase, start, end in timeline.spans():
        # A phase begins with what the last one left.
        most = max(bytes_after(timeline, event) for event in range(start - 1, max(start, end)))
        if phase is not Phase.BUILD and most:
            expected[phase] = max(expected.get(phase, 0), most)
    peaks = timeline.peaks()
    assert {phase: peak.allocated_bytes for phase, peak in peaks.items()} == expected
    for peak in peaks.values():
        assert set(peak.alive) == alive_after(timeline, peak.event)


@settings(max_examples=200, deadline=None)
@given(orders)
def test_categories_add_up_to_the_peak(orders: list[Allocation | int | Phase]) -> None:
    timeline = played(orders)
    for peak in timeline.peaks().values():
        sizes = timeline.by_category(peak)
        assert sum(sizes.values()) == peak.allocated_bytes
        for index in peak.alive:
            allocation = timeline.allocations[index]
            assert allocation.owner in (None, timeline.category(allocation, peak))
    assert timeline.alive_bytes() == bytes_after(timeline, len(timeline.events))


def test_what_a_tensor_is_for_follows_from_when_it_came_and_went() -> None:
    timeline = Timeline()

    def made(operation: str, is_recompute: bool = False) -> int:
        return timeline.allocate(Allocation(512, timeline.phase, operation, is_recompute=is_recompute))

    made("load")
    timeline.begin(Phase.FORWARD)
    stored = made("linear")
    scratch = made("cast")
    at_forward = timeline.peaks()[Phase.FORWARD]
    timeline.free(scratch)
    timeline.begin(Phase.BACKWARD)
    made("again", is_recompute=True)
    made("gradient")
    timeline.free(stored)
    assert timeline.by_category(at_forward) == {
        Category.WEIGHTS: 512, Category.STORED_ACTIVATIONS: 512, Category.WORKING_SET: 512,
    }  # fmt: skip
    assert timeline.by_category(timeline.peaks()[Phase.BACKWARD]) == {
        Category.WEIGHTS: 512, Category.STORED_ACTIVATIONS: 512, Category.WORKING_SET: 512,
        Category.TEMPORARIES: 512,
    }  # fmt: skip


def test_sizes_are_rounded_as_the_allocator_does() -> None:
    assert [rounded(size) for size in (0, 1, 512, 513)] == [0, 512, 512, 1024]
