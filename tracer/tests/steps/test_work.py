"""The work of a step, counted by hand."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from gpufare_tracer import fake_cuda
from gpufare_tracer.result import Work
from gpufare_tracer.table import work_columns, work_values
from gpufare_tracer.timeline import Phase

TOKENS, HIDDEN, RANK = 640, 512, 8
Counted = Callable[[Callable[[Callable[[Phase], None]], None]], Work]


@pytest.fixture
def counted() -> Counted:
    """Runs a step on the fake device; the step gets the function that begins a phase."""
    fake_cuda.install()
    from torch._subclasses.fake_tensor import FakeTensorMode

    from gpufare_tracer import cuda_kernels, device
    from gpufare_tracer.recorder import Recorder

    def run(step: Callable[[Callable[[Phase], None]], None]) -> Work:
        recorder = Recorder(10**12, 0)
        with (
            device.answering((8, 0)),
            cuda_kernels.attention_as_on((8, 0)),
            FakeTensorMode(allow_non_fake_inputs=True),
            recorder,
        ):
            step(recorder.begin)
        return recorder.work.result()

    return run


def flops(work: Work, phase: Phase) -> int:
    return sum(2 * p.batch * p.m * p.n * p.k * p.count for p in work.matrix_products if p.phase is phase)


def weight(*shape: int, trains: bool = True, dtype: Any = None) -> Any:
    return torch.empty(*shape, device="cuda", dtype=dtype or torch.bfloat16, requires_grad=trains)


def test_products_of_a_trained_layer_count_once_forward_and_twice_backward(counted: Counted) -> None:
    def step(begin: Callable[[Phase], None]) -> None:
        first, second = weight(HIDDEN, HIDDEN), weight(HIDDEN, 2 * HIDDEN)
        tokens = weight(TOKENS, HIDDEN, trains=True)
        begin(Phase.FORWARD)
        loss = (tokens @ first @ second).sum()
        begin(Phase.BACKWARD)
        loss.backward()

    work = counted(step)
    forward = 2 * TOKENS * HIDDEN * HIDDEN + 2 * TOKENS * HIDDEN * 2 * HIDDEN
    assert flops(work, Phase.FORWARD) == forward
    assert flops(work, Phase.BACKWARD) == 2 * forward
    values = work_values(work)
    assert values["forward_flops_16bit"] == forward
    assert values["forward_flops_fp32"] == 0
    assert tuple(values) == work_columns()


def test_frozen_weights_need_no_weight_gradient(counted: Counted) -> None:
    def step(begin: Callable[[Phase], None]) -> None:
        frozen = [weight(HIDDEN, HIDDEN, trains=False) for _ in range(2)]
        down, up = weight(HIDDEN, RANK), weight(RANK, HIDDEN)
        tokens = weight(TOKENS, HIDDEN, trains=False)
        begin(Phase.FORWARD)
        loss = ((tokens @ frozen[0] + tokens @ down @ up) @ frozen[1]).sum()
        begin(Phase.BACKWARD)
        loss.backward()

    work = counted(step)
    layer, adapter = 2 * TOKENS * HIDDEN * HIDDEN, 2 * TOKENS * HIDDEN * RANK
    assert flops(work, Phase.FORWARD) == 2 * layer + 2 * adapter
    # The second layer's input gradient; of the adapter the gradients of up, of what lies between and of down.
    assert flops(work, Phase.BACKWARD) == layer + 3 * adapter
    values = work_values(work)
    assert values["backward_flops_16bit"] == layer + 3 * adapter
    between, outside = 2 * TOKENS * RANK, TOKENS * HIDDEN
    assert values["backward_narrow_bytes"] == 2 * 3 * (between // 2 + outside + HIDDEN * RANK)
    assert values["backward_wide_bytes"] == 2 * (2 * outside + HIDDEN * HIDDEN)


def test_a_fused_adam_step_reads_four_tensors_and_writes_three(counted: Counted) -> None:
    size = HIDDEN * HIDDEN

    def step(begin: Callable[[Phase], None]) -> None:
        parameter = weight(HIDDEN, HIDDEN)
        optimizer = torch.optim.AdamW([parameter], fused=True)
        for _ in range(2):
            begin(Phase.FORWARD)
            begin(Phase.BACKWARD)
            parameter.grad = torch.empty_like(parameter)
            begin(Phase.OPTIMIZER)
            optimizer.step()

    work = counted(step)
    step_counters = 4  # one fp32 number, read by the kernel and counted up before it
    assert work.bytes_by_kind["optimizer|optimizer"] == pytest.approx(7 * 2 * size, abs=8 * step_counters)
    # The state that the first step makes is not part of the second.
    assert "optimizer|copy" not in work.bytes_by_kind


def test_kernels_are_counted_and_views_are_none(counted: Counted) -> None:
    def step(begin: Callable[[Phase], None]) -> None:
        tokens = weight(TOKENS, HIDDEN)
        begin(Phase.FORWARD)
        flat = tokens.view(-1).reshape(HIDDEN, TOKENS).t()[: TOKENS // 2].detach()
        torch.relu(flat).to(torch.float32)

    work = counted(step)
    assert work.kernels == {"forward": 2}
    half = TOKENS // 2 * HIDDEN
    assert work.bytes_by_kind == {"forward|elementwise": 2 * 2 * half, "forward|cast": (2 + 4) * half}
    assert work.host_operations["forward|python"] > 2


def test_a_recomputed_forward_pass_is_driven_by_python_and_the_rest_by_autograd(counted: Counted) -> None:
    from torch.utils.checkpoint import checkpoint

    def step(begin: Callable[[Phase], None]) -> None:
        matrix, tokens = weight(HIDDEN, HIDDEN), weight(TOKENS, HIDDEN)
        begin(Phase.FORWARD)
        loss = checkpoint(lambda x: (x @ matrix).tanh(), tokens, use_reentrant=False).sum()
        begin(Phase.BACKWARD)
        loss.backward()

    work = counted(step)
    assert flops(work, Phase.BACKWARD) == 3 * flops(work, Phase.FORWARD)
    assert "forward|autograd" not in work.host_operations
    assert work.host_operations["backward|python"] >= 2
    assert work.host_operations["backward|autograd"] >= 4


def test_flops_agree_with_the_counter_of_torch(counted: Counted) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    counters = [FlopCounterMode(display=False), FlopCounterMode(display=False)]

    def step(begin: Callable[[Phase], None]) -> None:
        heads = weight(2, 4, TOKENS, 64)
        matrix = weight(64, 64)
        begin(Phase.FORWARD)
        with counters[0]:
            out = torch.nn.functional.scaled_dot_product_attention(
                heads, heads, heads @ matrix, is_causal=True
            )
            loss = torch.baddbmm(out[0], out[1], matrix.expand(4, 64, 64)).sum()
        begin(Phase.BACKWARD)
        with counters[1]:
            loss.backward()

    def product(x: Any) -> int:
        return int(2 * x.batch * x.m * x.n * x.k * x.count)

    work = counted(step)
    for phase, counter in zip((Phase.FORWARD, Phase.BACKWARD), counters, strict=True):
        values = work_values(work)
        ours = sum(product(p) for p in work.matrix_products if p.phase is phase)
        assert ours + values[f"{phase}_flops_attention_flash"] == counter.get_total_flops()
    assert {(call.kernel, call.is_causal) for call in work.attention} == {("flash", True)}


def test_clipping_takes_multi_tensor_kernels_as_on_a_card(counted: Counted) -> None:
    def step(begin: Callable[[Phase], None]) -> None:
        parameters = [weight(HIDDEN, RANK) for _ in range(30)]
        for parameter in parameters:
            parameter.grad = torch.empty_like(parameter)
        begin(Phase.OPTIMIZER)
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)

    assert counted(step).kernels["optimizer"] < 30


def test_a_value_that_the_host_reads_is_a_synchronization(counted: Counted) -> None:
    def step(begin: Callable[[Phase], None]) -> None:
        begin(Phase.FORWARD)
        weight(4, trains=False).sum().item()

    assert counted(step).synchronizations == 1


def test_a_kernel_without_a_column_is_an_error_not_a_gap() -> None:
    with pytest.raises(ValueError, match="forward_moved_teleport_bytes"):
        work_values(Work(bytes_by_kind={"forward|teleport": 1}))


def test_every_kind_has_a_column() -> None:
    from gpufare_tracer.table import WORK_KINDS
    from gpufare_tracer.work import KINDS

    assert {*KINDS, "cast", "elementwise", "triton"} == set(WORK_KINDS)


def test_a_triton_kernel_counts_by_its_tensors(counted: Counted) -> None:
    from gpufare_tracer.work import count_launch

    def step(begin: Callable[[Phase], None]) -> None:
        begin(Phase.FORWARD)
        tokens = torch.empty(TOKENS, HIDDEN, device="cuda", dtype=torch.bfloat16)
        count_launch(tokens, tokens, HIDDEN, BLOCK_SIZE=1024, out=torch.empty_like(tokens))

    work = counted(step)
    assert work.kernels == {"forward": 1}
    assert work.bytes_by_kind == {"forward|triton": 2 * 2 * TOKENS * HIDDEN}
