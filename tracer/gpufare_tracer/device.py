"""Patches for torch.cuda and torch.accelerator that let the fake device answer a framework's questions."""

import contextlib
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

A100_MULTIPROCESSORS = 108


@contextmanager
def answering(compute_capability: tuple[int, int], memory_bytes: int = 80 << 30) -> Iterator[None]:
    """Make torch answer as it would on a GPU of this compute capability, e.g. (8, 0), within the context."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    properties = types.SimpleNamespace(
        name="traced GPU", total_memory=memory_bytes, multi_processor_count=A100_MULTIPROCESSORS,
        major=compute_capability[0], minor=compute_capability[1], warp_size=32,
        max_threads_per_multi_processor=2048, gcnArchName="", L2_cache_size=40 << 20,
        shared_memory_per_block_optin=166912, regs_per_multiprocessor=65536,
    )  # fmt: skip
    here = torch.device("cuda", 0)

    def always(value: Any) -> Any:
        return lambda *args, **kwargs: value

    answers: list[tuple[Any, str, Any]] = [
        (torch.cuda, "is_available", always(True)),
        (torch.cuda, "current_device", always(0)),
        (torch.cuda, "device_count", always(1)),
        (torch.cuda, "get_device_capability", always(compute_capability)),
        (torch.cuda, "get_device_properties", always(properties)),
        (torch.cuda, "get_device_name", always(properties.name)),
        (torch.cuda, "is_bf16_supported", always(True)),
        (torch.cuda, "mem_get_info", always((memory_bytes, memory_bytes))),
        (torch.cuda, "synchronize", always(None)),
        (torch.cuda, "empty_cache", always(None)),
        (torch.cuda, "set_device", always(None)),
        (torch.cuda, "_lazy_init", always(None)),
        (torch.cuda, "is_initialized", always(True)),
        (torch.cuda, "is_current_stream_capturing", always(False)),
        (torch.cuda, "device", _AnyDevice),
        (torch.cuda, "manual_seed_all", always(None)),
        (torch.accelerator, "current_accelerator", always(torch.device("cuda"))),
        (torch.accelerator, "is_available", always(True)),
        (torch.accelerator, "device_count", always(1)),
        (torch.accelerator, "current_device_index", always(0)),
        # Activation checkpointing saves the device's random state; a device that does not exist has none.
        (torch, "get_rng_state", always(None)),
        (torch, "set_rng_state", always(None)),
        (torch.random, "get_rng_state", always(None)),
        (torch.random, "set_rng_state", always(None)),
        (torch.random, "fork_rng", _nothing),
        (torch.utils.checkpoint, "get_device_states", always(([], []))),
        (torch.utils.checkpoint, "set_device_states", always(None)),
        (torch.version, "cuda", "12.8"),
        # Multi-tensor kernels are used only for plain tensors, and fake tensors stand in for those.
        (torch.utils._foreach_utils, "_foreach_supported_types", [torch.Tensor, FakeTensor]),
        (torch.nn.Module, "_apply", _replacing_tensors()),
    ]
    with contextlib.ExitStack() as stack:
        for owner, name, answer in answers:
            stack.enter_context(patch.object(owner, name, answer))
        stack.enter_context(_constants_on(here))
        # Autograd's engine has no thread for the fake device; the setting applies to the calling thread.
        stack.enter_context(torch.autograd.set_multithreading_enabled(False))
        yield


def _replacing_tensors() -> Any:
    """Return a Module._apply that makes new parameters: torch's swaps objects, which weak references prevent.

    Modules that share a tensor still share it afterwards: each tensor is converted once per outermost call.
    """
    converted: dict[int, tuple[Any, Any]] = {}  # keeps old tensors, so that their ids are not reused
    depth = 0

    def apply(module: Any, convert: Any, recurse: bool = True) -> Any:
        nonlocal depth
        depth += 1
        try:
            for child in module.children() if recurse else ():
                child._apply(convert)
            for tensors, replace in ((module._parameters, _new_parameter), (module._buffers, _converted)):
                for name, tensor in tensors.items():
                    if tensor is None:
                        continue
                    if id(tensor) not in converted:
                        converted[id(tensor)] = tensor, replace(tensor, convert)
                    tensors[name] = converted[id(tensor)][1]
        finally:
            depth -= 1
            if not depth:
                converted.clear()
        return module

    return apply


def _new_parameter(parameter: Any, convert: Callable[[Any], Any]) -> Any:
    """Return the converted parameter, with the Python attributes that were set on the old parameter."""
    import torch

    with torch.no_grad():
        moved = convert(parameter)
    if moved is parameter:
        return parameter
    made = torch.nn.Parameter(moved, parameter.requires_grad)
    for name, value in vars(parameter).items():
        vars(made).setdefault(name, value)
    return made


def _converted(buffer: Any, convert: Callable[[Any], Any]) -> Any:
    return convert(buffer)


class _AnyDevice(contextlib.nullcontext[None]):
    """A stand-in for torch.cuda.device, which would look for a real device."""

    def __init__(self, *_: Any) -> None:
        super().__init__()


class Idle(contextlib.nullcontext[None]):
    """A stream, an event, or the context of a stream: nothing runs, waits or remains to be done."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *_, **__: self

    def elapsed_time(self, _: Any) -> float:
        """Return 0: no time passes."""
        return 0.0


def idle_streams() -> contextlib.ExitStack:
    """Return a context within which torch's streams and events do nothing."""
    import torch

    stack = contextlib.ExitStack()
    for name in ("Stream", "Event", "current_stream", "default_stream", "stream"):
        stack.enter_context(patch.object(torch.cuda, name, Idle))
    return stack


@contextmanager
def _nothing(*_: Any, **__: Any) -> Iterator[None]:
    yield


@contextmanager
def _constants_on(device: Any) -> Iterator[None]:
    """Make torch.tensor(data, device="cuda") return an empty tensor: a fake device holds no data."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    tensor = torch.tensor

    def on_fake_device(data: Any, *, dtype: Any = None, device: Any = None, **kwargs: Any) -> Any:
        made = tensor(data, dtype=dtype, device="cpu", **kwargs)
        if device is None or torch.device(device).type != "cuda":
            return made
        return torch.empty(made.shape, dtype=made.dtype, device=device, requires_grad=made.requires_grad)

    with (
        patch.object(torch, "tensor", on_fake_device),
        patch.object(FakeTensorMode, "avoid_device_init", True),
    ):
        yield
