"""A user's own training step: ``module:function``, called on the fake device."""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from gpufare_tracer import device, fake_cuda
from gpufare_tracer.errors import CannotTraceError, place_of, speaking_errors
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import TraceShape
from gpufare_tracer.steps import Step
from gpufare_tracer.timeline import Phase

CONTRACT = (
    "it must return a transformers.Trainer, or (model, optimizer, loss): a torch module on cuda, a torch "
    "optimizer, several or None, and a function without arguments that returns the loss"
)

STEPS_OF_A_TRAINER = 2
"""Number of optimizer steps in a trace: in the second, the optimizer's state is in memory."""

DEFAULT_COMPUTE_CAPABILITY = (8, 0)
"""The compute capability that a user's module sees on import; the module's function sees the card's."""

LOOKS_FOR_A_DRIVER = "bitsandbytes"
"""A package whose import fails if torch reports a CUDA device that does not exist; peft imports it, too."""


def find(reference: str) -> Callable[..., Any]:
    """Return the function named ``module:function``, whose module may be in the working directory.

    Raises ``CannotTraceError`` saying which part was not found.
    """
    module_name, _, name = reference.partition(":")
    if not module_name or not name:
        raise CannotTraceError(f"--step {reference!r} is not like my_training:make_step")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    function = getattr(_imported(reference, module_name), name, None)
    if not callable(function):
        raise CannotTraceError(f"--step {reference}: module {module_name} has no function {name!r}")
    return function  # type: ignore[no-any-return]


def _imported(reference: str, module_name: str) -> ModuleType:
    """Return the user's module, imported on the fake device because its top level may use cuda."""
    fake_cuda.install()
    if find_spec(LOOKS_FOR_A_DRIVER) is not None:
        import_module(LOOKS_FOR_A_DRIVER)
    try:
        notes: list[str] = []
        with device.answering(DEFAULT_COMPUTE_CAPABILITY), _eager(notes), _code_of(reference):
            module = import_module(module_name)
        if notes:
            _compiled_at_import.add(module_name)
        return module
    except CannotTraceError as error:
        if isinstance(error.__cause__, ModuleNotFoundError):
            raise CannotTraceError(
                f"--step {reference}: no module {error.__cause__.name!r} here or installed"
            ) from error
        raise


def builder(reference: str, function: Callable[..., Any]) -> Callable[[Recipe, TraceShape], Step]:
    """Return a builder for a function's step; the function gets micro_batch and seq_len if it takes them."""
    taken = inspect.signature(function).parameters

    def build(recipe: Recipe, shape: TraceShape) -> Step:
        sizes = {"micro_batch": shape.micro_batch, "seq_len": shape.seq_len}
        with _code_of(reference):
            made = function(**{name: size for name, size in sizes.items() if name in taken})
        if hasattr(made, "training_step") and hasattr(made, "accelerator"):
            return _of_trainer(reference, recipe, made)
        if not (isinstance(made, tuple) and len(made) == 3 and hasattr(made[0], "parameters")):
            raise CannotTraceError(f"--step {reference} returned {type(made).__name__}: {CONTRACT}")
        model, optimizer, loss = made
        if isinstance(optimizer, list | tuple):
            optimizer = SeveralOptimizers(tuple(optimizer))
        _check_on_the_device(reference, model, optimizer)

        def traced_loss() -> Any:
            with _code_of(reference):
                value = loss()
            if not hasattr(value, "backward"):
                raise CannotTraceError(
                    f"--step {reference}: its loss returned {type(value).__name__}, not a tensor: {CONTRACT}"
                )
            return value

        more = recipe.gradient_accumulation, recipe.gradient_clipping
        note = COMPILED if reference.partition(":")[0] in _compiled_at_import else ""
        return OwnStep(model, optimizer, traced_loss, (), *more, reference=reference, note=note)

    return build


@dataclass
class OwnStep(Step):
    """A user's step; its errors say where they occurred."""

    reference: str = ""

    def run(self, begin: Callable[[Phase], None]) -> None:
        """Run the step; raises ``CannotTraceError`` for an error in its loss, backward pass or optimizer."""
        with _code_of(self.reference):
            super().run(begin)


@dataclass
class TrainerStep(OwnStep):
    """A transformers Trainer's optimizer steps: the first run calls ``train``, which takes all of them."""

    trainer: Any = None

    def run(self, begin: Callable[[Phase], None]) -> None:
        """Train in the first run; later runs have nothing to do."""
        if self.trainer is None:
            return
        from torch.utils._python_dispatch import _disable_current_modes

        trainer, self.trainer = self.trainer, None
        accelerator, load = trainer.accelerator, trainer.get_batch_samples

        def beginning(phase: Phase, function: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *arguments, **named: (begin(phase), function(*arguments, **named))[1]  # type: ignore[func-returns-value]

        def loading(batches: Iterator[Any], count: int, device: Any) -> Any:
            with _disable_current_modes():  # batches on the CPU have real values, such as lengths
                loaded = list(islice(batches, count))
            return load(map(trainer._prepare_inputs, loaded), len(loaded), device)

        trainer.training_step = beginning(Phase.FORWARD, trainer.training_step)
        accelerator.backward = beginning(Phase.BACKWARD, accelerator.backward)
        accelerator.clip_grad_norm_ = beginning(Phase.OPTIMIZER, accelerator.clip_grad_norm_)
        trainer.get_batch_samples = loading
        with _code_of(self.reference):
            trainer.train()
        self.optimizer = trainer.optimizer


def _of_trainer(reference: str, recipe: Recipe, trainer: Any) -> Step:
    """Return the steps of a Trainer on one GPU, without callbacks, logs, checkpoints or evaluation."""
    from transformers.trainer_callback import DefaultFlowCallback

    advice = ""
    if trainer.args.deepspeed or trainer.is_fsdp_enabled:
        advice = "its Trainer uses several GPUs: return one for one GPU, or trace a recipe with sharding=fsdp"
    elif recipe.gradient_accumulation or recipe.gradient_clipping:
        advice = "its TrainingArguments decide how gradients are accumulated and clipped: omit --set"
    if advice:
        raise CannotTraceError(f"--step {reference}: {advice}")
    vars(trainer.args).update(
        dataloader_pin_memory=False, dataloader_num_workers=0, dataloader_prefetch_factor=None,
        dataloader_persistent_workers=False, logging_nan_inf_filter=False, eval_on_start=False,
        max_steps=STEPS_OF_A_TRAINER,
    )  # fmt: skip
    trainer.accelerator.device_placement = False  # batches are loaded without the fake device
    trainer.model_init = None  # the model already exists
    trainer.callback_handler.callbacks = [DefaultFlowCallback()]
    trainer._maybe_log_save_evaluate = trainer._finalize_training = lambda *_, **__: None
    _check_on_the_device(reference, trainer.model, trainer.optimizer)
    packages = ("transformers", "accelerate")
    return TrainerStep(trainer.model, None, lambda: None, packages, reference=reference, trainer=trainer)


class SeveralOptimizers:
    """Optimizers that step one after the other."""

    def __init__(self, optimizers: tuple[Any, ...]) -> None:
        self.optimizers = optimizers
        self.param_groups = [group for optimizer in optimizers for group in optimizer.param_groups]

    @property
    def state(self) -> dict[Any, Any]:
        """The state of all the optimizers, keyed by parameter."""
        return {p: state for optimizer in self.optimizers for p, state in optimizer.state.items()}

    def step(self) -> None:
        """Step each optimizer in turn."""
        for optimizer in self.optimizers:
            optimizer.step()


@contextmanager
def as_on_a_gpu(notes: list[str]) -> Iterator[None]:
    """Imitate a GPU around a user's code: optimizers default to foreach; streams and memory statistics exist.

    ``notes`` collects the parts of the code that are traced differently from the way they would run.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    numbers = (
        "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved",
        "reset_peak_memory_stats", "reset_accumulated_memory_stats",
    )  # fmt: skip
    with ExitStack() as stack:
        stack.enter_context(_eager(notes))
        for name in numbers:
            stack.enter_context(patch.object(torch.cuda, name, lambda *_, **__: 0))
        stack.enter_context(device.idle_streams())
        # Pinned memory is host memory, and torch has no fake implementation of pinning.
        stack.enter_context(patch.object(torch.Tensor, "pin_memory", lambda tensor, *_: tensor))
        optimizers = import_module("torch.optim.optimizer")  # torch.optim deletes its attribute of this name
        # optim/optimizer.py keeps another list besides the one in utils/_foreach_utils.py.
        plain = [torch.Tensor, torch.nn.Parameter, FakeTensor]
        stack.enter_context(patch.object(optimizers, "_foreach_supported_types", plain))
        yield


COMPILED = "torch.compile is not traced: this is its eager code"
_compiled_at_import: set[str] = set()
"""Modules that called torch.compile while they were being imported, which happens only once."""


@contextmanager
def _eager(notes: list[str]) -> Iterator[None]:
    """Make torch.compile return its function unchanged, and add a note to ``notes`` when it is called."""
    import torch

    def unchanged(model: Any = None, *_: Any, **__: Any) -> Any:
        if COMPILED not in notes:
            notes.append(COMPILED)
        return (lambda function: function) if model is None else model

    with patch.object(torch, "compile", unchanged), patch.object(torch.nn.Module, "compile", unchanged):
        yield


def _check_on_the_device(reference: str, model: Any, optimizer: Any) -> None:
    """Refuse a step whose memory would be traced too low: a model on the CPU, or a stale optimizer."""
    parameters = list(model.parameters())
    if not any(p.device.type == "cuda" for p in parameters):
        raise CannotTraceError(
            f"--step {reference}: no parameter of the model is on cuda, so nothing of it is on the card: "
            "build the model with device='cuda', or call model.cuda()"
        )
    known = {id(p) for p in parameters}
    stale = [
        p for group in getattr(optimizer, "param_groups", ()) for p in group["params"] if id(p) not in known
    ]
    if stale:
        raise CannotTraceError(
            f"--step {reference}: {len(stale)} of the optimizer's parameters are not among the model's, so "
            "they would never be stepped: build the optimizer after moving the model, or build the model on "
            "the device"
        )


@contextmanager
def _code_of(reference: str) -> Iterator[None]:
    """Turn an error in a user's code into a ``CannotTraceError`` that says where it occurred."""
    try:
        with speaking_errors():
            yield
    except CannotTraceError:
        raise
    except Exception as error:
        raise CannotTraceError(
            f"--step {reference} failed{place_of(error)}: {type(error).__name__}: {error}"
        ) from error


def takes(function: Callable[..., Any], name: str) -> bool:
    """Return True if a user's function has a parameter of this name."""
    return name in inspect.signature(function).parameters
