"""The moments of a step's phases, on timelines written by hand."""

from itertools import pairwise

from gpufare_tracer.timeline import Allocation, Category, Moment, Phase, Timeline


def step_of(layers: int) -> Timeline:
    """A step whose layers each store 512 B, with logits of 2,048 B and gradients of 1,024 B a layer."""
    timeline = Timeline()

    def allocate(size_bytes: int, owner: Category | None = None) -> int:
        return timeline.allocate(Allocation(size_bytes, timeline.phase, "made", owner=owner))

    allocate(4096)
    timeline.begin(Phase.FORWARD)
    stored = [allocate(512) for _ in range(layers)]
    timeline.enter(Moment.LOSS)
    logits = allocate(2048, Category.LOGITS)
    timeline.begin(Phase.BACKWARD)
    timeline.free(logits)
    for index in reversed(range(layers)):
        if index == 0:
            timeline.enter(Moment.FIRST_LAYER_BACKWARD)
        else:
            timeline.enter(Moment.LAST_LAYER_BACKWARD if index == layers - 1 else None)
        timeline.free(stored[index])
        allocate(1024, Category.GRADIENTS)
    timeline.begin(Phase.OPTIMIZER)
    timeline.free(allocate(512))
    return timeline


def test_each_moment_of_a_step_grows_evenly_with_depth_though_its_phases_do_not() -> None:
    peaks = {depth: step_of(depth) for depth in (2, 4, 6, 8)}

    def growth(sizes: list[int]) -> list[int]:
        return [later - earlier for earlier, later in pairwise(sizes)]

    for moment in Moment:
        sizes = [timeline.moment_peaks()[moment].allocated_bytes for timeline in peaks.values()]
        assert len(set(growth(sizes))) == 1, moment
    backward = [timeline.peaks()[Phase.BACKWARD].allocated_bytes for timeline in peaks.values()]
    assert len(set(growth(backward))) > 1


def test_the_highest_moment_of_a_phase_is_the_phases_peak() -> None:
    timeline = step_of(8)
    moments = {moment: peak.allocated_bytes for moment, peak in timeline.moment_peaks().items()}
    assert moments[Moment.LOSS] == timeline.peaks()[Phase.FORWARD].allocated_bytes == 4096 + 8 * 512 + 2048
    assert moments[Moment.FIRST_LAYER_BACKWARD] == timeline.peaks()[Phase.BACKWARD].allocated_bytes
    assert timeline.by_category(timeline.moment_peaks()[Moment.LOSS]) == {
        Category.WEIGHTS: 4096, Category.STORED_ACTIVATIONS: 8 * 512, Category.LOGITS: 2048
    }  # fmt: skip
