"""A CUDA device that does not exist: torch's fake tensors are on ``cuda``, and autograd runs on one core.

torch's FakeTensorMode holds tensors on any device without their data, but autograd asks the accelerator for
streams, and a machine without a GPU (or a build without CUDA) has no streams. Two things replace a GPU: the
device guard that torch itself provides for fake CUDA tensors (``torch._C._ensureCUDADeviceGuardSet``), and
CUDA hooks that report CUDA as available. Both are virtual C++ interfaces without a Python binding; patched
copies replace their virtual tables, whose slots follow the declarations in the headers that torch ships. No
compiler, driver or GPU is needed, and the same patches work with a CUDA build.

A process that has called ``install`` can only trace: it no longer sees the machine's GPUs.
"""

import atexit
import ctypes
import os
import platform
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from gpufare_tracer.errors import CannotTraceError

HOW_TO_GET_TORCH = (
    "pip install torch==2.13.0 brings one that works; its build for CPUs is enough, and the smaller one"
)

Address = ctypes.c_void_p
CUDA_SLOT, META_SLOT = 1, 14
"""Positions of c10::DeviceType::CUDA and ::Meta in the registry of device guards (c10/core/DeviceType.h)."""
HEADER_WORDS = 2
"""Number of words before the first slot of a C++ virtual table: offset to top, and type (Itanium C++ ABI)."""
HOOKS_OF_A_PRESENT_DEVICE = ("isBuilt", "isAvailable", "hasPrimaryContext", "hasCUDA")

_kept_alive: list[Any] = []


@cache
def install() -> None:
    """Make torch believe that it has a CUDA device. Idempotent; affects this process only.

    Raises ``CannotTraceError`` if this torch cannot be patched (the message says what to install instead), or
    if the process has already used a GPU.
    """
    _refuse_other_platforms()
    # CUDA reads this when it starts, which is after the import. A real GPU would report its own properties.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import torch

    _refuse_other_builds()
    _refuse_used_gpu()
    root = Path(torch.__file__).parent
    try:
        _set_device_guard(root)
        _set_hooks(root)
    except (OSError, AttributeError, ValueError) as error:
        raise CannotTraceError(
            f"torch {torch.__version__} cannot be traced ({error}): {HOW_TO_GET_TORCH}"
        ) from error
    if torch._C._get_accelerator().type != "cuda":
        raise CannotTraceError(f"torch {torch.__version__} does not see the fake device: {HOW_TO_GET_TORCH}")


def _refuse_other_platforms() -> None:
    if sys.platform not in ("linux", "darwin"):
        raise CannotTraceError(
            f"tracing needs Linux or macOS, not {sys.platform}: run it in WSL or a container"
        )
    if platform.python_implementation() != "CPython":
        raise CannotTraceError(f"tracing needs CPython, this is {platform.python_implementation()}")


def _refuse_other_builds() -> None:
    import torch

    if torch.version.hip is not None:
        raise CannotTraceError(f"torch {torch.__version__} is built for ROCm: {HOW_TO_GET_TORCH}")
    if not hasattr(torch._C, "_ensureCUDADeviceGuardSet"):
        raise CannotTraceError(
            f"torch {torch.__version__} is too old (no device guard for fake tensors): {HOW_TO_GET_TORCH}"
        )


def _refuse_used_gpu() -> None:
    """Refuse a process that started CUDA, which keeps its GPUs and guard whatever the environment says."""
    import torch

    # A build without CUDA cannot count devices; any other build starts CUDA to count, by now without a GPU.
    count = getattr(torch._C, "_cuda_getDeviceCount", int)
    if torch.cuda.is_initialized() or count():
        raise CannotTraceError(
            "this process has used a GPU already: trace in a process that has not, "
            "with CUDA_VISIBLE_DEVICES= in its environment"
        )


def _set_device_guard(root: Path) -> None:
    """Make torch install its guard for fake CUDA tensors, as it does if the current guard sees no devices."""
    import torch

    library = _library(root, "c10")
    registry = (Address * (META_SLOT + 1)).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")
    slots = _virtual_functions(root, "c10/core/impl/DeviceGuardImplInterface.h")
    no_devices = ctypes.CFUNCTYPE(ctypes.c_int8, Address)(lambda _: 0)
    guard = (Address * 1)(_patched_table(registry[META_SLOT], slots, {"deviceCount": no_devices}))
    _kept_alive.append(guard)
    registry[CUDA_SLOT] = ctypes.addressof(guard)
    torch._C._ensureCUDADeviceGuardSet()
    if registry[CUDA_SLOT] == ctypes.addressof(guard):
        registry[CUDA_SLOT] = None
        raise ValueError("it has no device guard for fake tensors")


def _set_hooks(root: Path) -> None:
    """Make the CUDA hooks report a device; restore them at exit, when Python can no longer answer."""
    get_hooks = _library(root, "torch_cpu")._ZN2at6detail12getCUDAHooksEv
    get_hooks.restype = Address
    hooks = get_hooks()
    slots = _virtual_functions(
        root, "ATen/detail/AcceleratorHooksInterface.h", "ATen/detail/CUDAHooksInterface.h"
    )
    yes = ctypes.CFUNCTYPE(ctypes.c_bool, Address)(lambda _: True)
    table = Address.from_address(hooks)
    original = table.value
    table.value = _patched_table(hooks, slots, dict.fromkeys(HOOKS_OF_A_PRESENT_DEVICE, yes))
    atexit.register(lambda: setattr(table, "value", original))


def _library(root: Path, name: str) -> ctypes.CDLL:
    suffix = "dylib" if sys.platform == "darwin" else "so"
    return ctypes.CDLL(str(root / "lib" / f"lib{name}.{suffix}"))


def _virtual_functions(root: Path, *headers: str) -> list[str]:
    """Return the names of the virtual functions in table order; a destructor takes two slots."""
    names: list[str] = []
    for header in headers:
        text = re.sub(r"//[^\n]*", "", (root / "include" / header).read_text(encoding="utf-8"))
        text = re.sub(r"#\s*if(def| defined\()\s*USE_ROCM.*?#\s*endif", "", text, flags=re.DOTALL)
        for name in re.findall(r"virtual\s+[^;{]*?(~?\w+)\s*\(", text):
            names += [name, name] if name.startswith("~") else [name]
    return names


def _patched_table(obj: int | None, slots: Iterable[str], changes: dict[str, Callable[..., Any]]) -> int:
    """Return the address of a copy of an object's virtual table, with some functions replaced."""
    if not obj:
        raise ValueError("an interface is missing")
    slots = list(slots)
    size = len(slots) + HEADER_WORDS
    word = ctypes.sizeof(Address)
    start = (Address.from_address(obj).value or 0) - HEADER_WORDS * word
    table = (Address * size)(*(Address * size).from_address(start))
    for name, function in changes.items():
        table[slots.index(name) + HEADER_WORDS] = ctypes.cast(function, Address).value  # type: ignore[arg-type]
    _kept_alive.extend([table, changes])
    return ctypes.addressof(table) + HEADER_WORDS * word
