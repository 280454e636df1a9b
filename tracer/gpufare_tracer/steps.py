"""A training step that can be traced, and the function that builds a recipe's step."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import TraceShape
from gpufare_tracer.timeline import Phase


@dataclass
class Step:
    """A model with its optimizer, ready to train: loss, backward pass and optimizer step."""

    model: Any
    optimizer: Any
    """A torch optimizer; None if the step has no optimizer."""
    loss: Callable[[], Any]
    """Runs one micro-batch and returns its loss."""
    packages: tuple[str, ...]
    """Packages whose code runs; the trace gives their versions."""
    gradient_accumulation: bool = False
    gradient_clipping: bool = True
    gradient_scaler: Any = None
    """torch's GradScaler, or None."""
    note: str = ""
    """How the traced code differs from the model's own code."""

    @property
    def parameters(self) -> Iterable[Any]:
        """All parameters of the model; the trained parameters require a gradient."""
        return self.model.parameters()  # type: ignore[no-any-return]

    def run(self, begin: Callable[[Phase], None]) -> None:
        """Run the forward and backward passes, twice if gradients accumulate, and then the optimizer.

        ``begin`` is called at the start of each phase.
        """
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
            torch.nn.utils.clip_grad_norm_(trained, 1.0, foreach=on_gpu)  # as torch itself chooses
        if self.optimizer is not None:
            self.optimizer.step()
        if self.gradient_scaler is not None:
            self.gradient_scaler.update()
        for parameter in trained:
            parameter.grad = None


def load_transformers() -> ModuleType:
    """Import the module that builds recipes' steps, and with it transformers, PEFT and bitsandbytes."""
    return import_module("gpufare_tracer.frameworks.transformers_step")


def build_step(recipe: Recipe, shape: TraceShape) -> Step:
    """Build a recipe's step on the fake device; call this function inside a trace.

    Raises ``CannotTraceError`` if transformers does not support the recipe.
    """
    return load_transformers().build(recipe, shape)  # type: ignore[no-any-return]
