"""A training step that can be traced, and how a recipe's step is found."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.recipes import Framework, Recipe
from gpufare_tracer.result import TraceShape
from gpufare_tracer.timeline import Phase


class Step(Protocol):
    """A model with its optimizer on the fake device, ready to train."""

    @property
    def parameters(self) -> Iterable[Any]:
        """All parameters; those that train require a gradient."""

    @property
    def optimizer(self) -> Any:
        """The torch optimizer, for its state; None where nothing of it is on the GPU."""

    @property
    def packages(self) -> tuple[str, ...]:
        """Packages whose code runs, for the trace's versions."""

    @property
    def steps_in_run(self) -> int:
        """Optimizer steps of one ``run``: 1, or 2 for a loop that keeps tensors of one step into the next."""

    def run(self, begin: Callable[[Phase], None]) -> None:
        """``steps_in_run`` optimizer steps, saying when each phase begins."""


@dataclass
class PlainStep:
    """A step that is nothing but loss, backward and optimizer step.

    ``loss`` runs one micro-batch and returns its loss.
    """

    model: Any
    optimizer: Any
    loss: Callable[[], Any]
    packages: tuple[str, ...]
    gradient_accumulation: bool = False
    gradient_clipping: bool = True
    gradient_scaler: Any = None
    """torch's GradScaler, or None."""

    @property
    def steps_in_run(self) -> int:
        """One: nothing is kept into the next step."""
        return 1

    @property
    def parameters(self) -> Iterable[Any]:
        """All parameters of the model."""
        return self.model.parameters()  # type: ignore[no-any-return]

    def run(self, begin: Callable[[Phase], None]) -> None:
        """Forward and backward, twice where gradients accumulate, then the optimizer."""
        import torch

        micro_steps = 2 if self.gradient_accumulation else 1
        for _ in range(micro_steps):
            begin(Phase.FORWARD)
            loss = self.loss()
            if micro_steps > 1:
                loss = loss / micro_steps
            begin(Phase.BACKWARD)
            if self.gradient_scaler is not None:
                loss = self.gradient_scaler.scale(loss)
            loss.backward()
            del loss
        begin(Phase.OPTIMIZER)
        trained = [p for p in self.parameters if p.requires_grad]
        if self.gradient_scaler is not None:
            self.gradient_scaler.unscale_(self.optimizer)
        if self.gradient_clipping:
            on_gpu = any(p.device.type == "cuda" for p in trained)
            torch.nn.utils.clip_grad_norm_(trained, 1.0, foreach=on_gpu)  # what torch takes by itself
        if self.optimizer is not None:
            self.optimizer.step()
        if self.gradient_scaler is not None:
            self.gradient_scaler.update()
        for parameter in trained:
            parameter.grad = None


BUILDERS: dict[Framework, str] = {
    "transformers": "gpufare_tracer.frameworks.transformers_step",
    "trl": "gpufare_tracer.frameworks.trl_step",
    "litgpt": "gpufare_tracer.frameworks.litgpt_step",
    "torchtune": "gpufare_tracer.frameworks.torchtune_step",
    "torchtitan": "gpufare_tracer.frameworks.torchtitan_step",
}
"""The module of each framework; its ``build(recipe, shape)`` returns a ``Step``."""


TRACE_EXTRA = "pip install 'gpufare[trace]'"
INSTALL: dict[Framework, str] = {
    "litgpt": "beside gpufare[trace], pip install --no-deps litgpt==0.5.9 lightning==2.6.6 "
    "lightning-utilities==0.15.3 pytorch-lightning==2.6.6 torchmetrics==1.9.0 jsonargparse==4.53.0 "
    "(with its dependencies it would replace NumPy 2, which gpufare needs)",
    "torchtune": "in an environment without PEFT, which refuses the torchao that it needs, "
    "pip install gpufare torch==2.13.0 bitsandbytes==0.50.2 torchtune==0.6.1 torchao==0.10.0",
    "torchtitan": "its loop is not traced; trace framework: transformers with checkpointing: selective",
}
"""What to do where a framework is missing; the rest are in the extra."""


def load_framework(recipe: Recipe) -> ModuleType:
    """Import the module that builds a recipe's step.

    Raises ``CannotTraceError`` where its framework is not installed.
    """
    try:
        return import_module(BUILDERS[recipe.framework])
    except ModuleNotFoundError as error:
        raise CannotTraceError(
            f"recipe {recipe.name!r} runs {recipe.framework}, which is not installed "
            f"(no module {error.name!r}): {INSTALL.get(recipe.framework, TRACE_EXTRA)}"
        ) from error


def build_step(recipe: Recipe, shape: TraceShape) -> Step:
    """Build a recipe's step on the fake device; call it inside a trace.

    Raises ``CannotTraceError`` where the framework cannot do what the recipe says.
    """
    return load_framework(recipe).build(recipe, shape)  # type: ignore[no-any-return]
