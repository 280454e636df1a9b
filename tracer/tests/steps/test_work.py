"""The work of a step, counted by hand."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch

from gpufare_tracer import fake_cuda
from gpufare_tracer.timeline import Phase

TOKENS, HIDDEN, RANK = 640, 512, 8
Work = dict[Phase, Counter[str]]
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
        return recorder.work.work

    return run


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
    assert work[Phase.FORWARD]["flops_16bit"] == forward
    assert work[Phase.BACKWARD]["flops_16bit"] == 2 * forward
    assert work[Phase.FORWARD]["flops_fp32"] == 0


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
    assert work[Phase.FORWARD]["flops_16bit"] == 2 * layer + 2 * adapter
    # The second layer's input gradient; of the adapter the gradients of up, of what lies between and of down.
    assert work[Phase.BACKWARD]["flops_16bit"] == layer + 3 * adapter
    narrow = 3 * (TOKENS * RANK + TOKENS * HIDDEN + HIDDEN * RANK)
    assert 2 * narrow <= work[Phase.BACKWARD]["moved_bytes"] < 2 * (narrow + 4 * TOKENS * HIDDEN)


def test_kernels_are_counted_and_views_are_none(counted: Counted) -> None:
    def step(begin: Callable[[Phase], None]) -> None:
        tokens = weight(TOKENS, HIDDEN)
        begin(Phase.FORWARD)
        flat = tokens.view(-1).reshape(HIDDEN, TOKENS).t()[: TOKENS // 2].detach()
        torch.relu(flat).to(torch.float32)

    work = counted(step)
    assert work[Phase.FORWARD]["kernels"] == 2
    half = TOKENS // 2 * HIDDEN
    assert work[Phase.FORWARD]["moved_bytes"] == 2 * 2 * half + (2 + 4) * half
    assert work[Phase.FORWARD]["python_operations"] > 2


def test_a_recomputed_forward_pass_is_driven_by_python_and_the_rest_by_autograd(counted: Counted) -> None:
    from torch.utils.checkpoint import checkpoint

    def step(begin: Callable[[Phase], None]) -> None:
        matrix, tokens = weight(HIDDEN, HIDDEN), weight(TOKENS, HIDDEN)
        begin(Phase.FORWARD)
        loss = checkpoint(lambda x: (x @ matrix).tanh(), tokens, use_reentrant=False).sum()
        begin(Phase.BACKWARD)
        loss.backward()

    work = counted(step)
    forward, backward = work[Phase.FORWARD], work[Phase.BACKWARD]
    assert backward["flops_16bit"] == 3 * forward["flops_16bit"]
    assert forward["autograd_operations"] == 0
    assert backward["python_operations"] >= 2
    assert backward["autograd_operations"] >= 4


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

    work = counted(step)
    for phase, counter in zip((Phase.FORWARD, Phase.BACKWARD), counters, strict=True):
        ours = work[phase]["flops_16bit"] + work[phase]["attention_flops_16bit"]
        assert ours == counter.get_total_flops()


def test_only_the_last_micro_batch_counts_and_no_optimizer_step(counted: Counted) -> None:
    def step(begin: Callable[[Phase], None]) -> None:
        parameter = weight(HIDDEN, HIDDEN)
        optimizer = torch.optim.AdamW([parameter], fused=True)
        for _ in range(2):
            begin(Phase.FORWARD)
            torch.relu(parameter)
            begin(Phase.BACKWARD)
            parameter.grad = torch.empty_like(parameter)
            begin(Phase.OPTIMIZER)
            optimizer.step()

    work = counted(step)
    assert work.keys() == {Phase.FORWARD, Phase.BACKWARD}
    assert (work[Phase.FORWARD]["kernels"], work[Phase.BACKWARD]["kernels"]) == (1, 0)


def test_a_triton_kernel_counts_by_its_tensors(counted: Counted) -> None:
    from gpufare_tracer.work import count_launch

    def step(begin: Callable[[Phase], None]) -> None:
        begin(Phase.FORWARD)
        tokens = torch.empty(TOKENS, HIDDEN, device="cuda", dtype=torch.bfloat16)
        count_launch(tokens, tokens, HIDDEN, BLOCK_SIZE=1024, out=torch.empty_like(tokens))

    work = counted(step)
    assert work[Phase.FORWARD]["kernels"] == 1
    assert work[Phase.FORWARD]["moved_bytes"] == 2 * 2 * TOKENS * HIDDEN
