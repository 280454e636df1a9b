"""Marks the phases of a framework's own training loop."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch

from gpufare_tracer.timeline import Phase

Begin = Callable[[Phase], None]

STEPS_OF_A_LOOP = 2
"""Optimizer steps that a loop runs by itself: the first makes the optimizer's state, the second meets it.

A loop keeps tensors of one step into the next (its last logits, its running loss), so both are in one call.
"""


class OwnLoop:
    """What the steps of frameworks' own loops share; each adds its ``run``."""

    model: Any
    steps_in_run: int = STEPS_OF_A_LOOP

    @property
    def parameters(self) -> Iterable[Any]:
        """All parameters of the model."""
        return self.model.parameters()  # type: ignore[no-any-return]


@contextmanager
def phases_marked(begin: Begin, model: Any, optimizer: Any) -> Iterator[None]:
    """Begin a phase when the model is called, a loss goes backward, and gradients are clipped or applied.

    ``optimizer`` is None where the optimizer runs within the backward pass.
    """
    backward, clip = torch.Tensor.backward, torch.nn.utils.clip_grad_norm_

    def marked_backward(*args: Any, **kwargs: Any) -> Any:
        begin(Phase.BACKWARD)
        return backward(*args, **kwargs)

    def marked_clip(*args: Any, **kwargs: Any) -> Any:
        begin(Phase.OPTIMIZER)
        return clip(*args, **kwargs)

    with ExitStack() as stack:
        handle = model.register_forward_pre_hook(lambda *_: begin(Phase.FORWARD))
        stack.callback(handle.remove)
        if optimizer is not None:
            stack.callback(optimizer.register_step_pre_hook(lambda *_: begin(Phase.OPTIMIZER)).remove)
        stack.enter_context(patch.object(torch.Tensor, "backward", marked_backward))
        stack.enter_context(patch.object(torch.nn.utils, "clip_grad_norm_", marked_clip))
        yield
