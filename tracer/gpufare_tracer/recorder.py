"""Records every operation of a step on fake CUDA tensors, with its allocations and its work."""

import gc
import sys
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from gpufare_tracer import collectives
from gpufare_tracer.cuda_kernels import hidden_temporaries
from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.timeline import Allocation, Category, Phase, Timeline, rounded
from gpufare_tracer.work import WorkCounter

aten = torch.ops.aten
MATRIX_PRODUCTS = {aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default}

READ_AS_IN_RECIPES = (
    "/torch/optim/", "/site-packages/transformers/", "/site-packages/liger_kernel/",
    "/site-packages/bitsandbytes/", "/site-packages/peft/", "/site-packages/accelerate/",
)  # fmt: skip
"""Code that reads stand-ins instead of values: recipes run this code, and measured runs check the traces."""

VALUES = {aten._local_scalar_dense.default, aten.equal.default}
"""Operations that return a value instead of a tensor."""

WRITTEN_IN_PYTHON: dict[Any, Callable[..., Any]] = {}
"""Operations whose CUDA kernel is Python code that calls further operations, each of which is recorded.

If a kernel returns ``NotImplemented``, only the operation itself is recorded.
"""


class Recorder(TorchDispatchMode):
    """Records in a ``Timeline`` every CUDA storage that operations make, and when the storage is freed.

    A tensor counts as logits if its rows are as long as the vocabulary and it has at least ``logits_size``
    elements. ``workspace_bytes`` is the size of each thread's cuBLAS workspace. ``with_lines`` records the
    line of code that made each tensor, and about doubles the time. With ``has_stand_ins``, code that reads a
    value gets 1, as in recipes; otherwise it gets the true value, or an error if the tensor has no value.
    """

    def __init__(
        self,
        logits_size: int,
        workspace_bytes: int,
        *,
        vocab: int = 1,
        with_lines: bool = False,
        experts: int = 1,
        has_stand_ins: bool = True,
    ) -> None:
        super().__init__()
        self.timeline = Timeline()
        self.work = WorkCounter()
        self.logits_size = logits_size
        # Some code pads the vocabulary.
        self.row_lengths = range(vocab, 2 * vocab)
        self.with_lines = with_lines
        self.experts = experts
        self.has_stand_ins = has_stand_ins
        self.notes: list[str] = []
        self.operations = 0
        self._live: dict[int, int] = {}
        """Index of each live storage's allocation, keyed by the storage's address."""
        self._watched: set[int] = set()
        """Addresses of storages that were seen and not yet freed, including empty storages."""
        self._hidden = hidden_temporaries()
        self._owner: Category | None = None
        self._workspace_bytes = workspace_bytes
        self._without_workspace = {Phase.FORWARD, Phase.BACKWARD}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(is_wrapper(kind) for kind in types):
            return NotImplemented  # The wrapper's own dispatch runs first; its calls come back here.
        if func is torch.ops.prim.device.default:
            return args[0].fake_device  # two thirds of all calls: frameworks ask for the device constantly
        kwargs = kwargs or {}
        if func in VALUES:
            return self._value(func, args) if self.has_stand_ins else self._known_value(func, args)
        if func is aten.nonzero.default and self.has_stand_ins:
            self.work.count_read()
            return self._balanced_share(args[0])
        if func in MATRIX_PRODUCTS and args[0].device.type == "cuda":
            self._reserve_workspace()
        out = self._kernel_in_python(func, args, kwargs)
        if out is not NotImplemented:
            return out
        out = func(*args, **kwargs)
        self.operations += 1
        self.work.count(func, args, kwargs, out)
        for tensor in tree_iter(out):
            if isinstance(tensor, torch.Tensor):
                self.see(tensor, func)
        collectives.claim(self, func, args, out)
        hidden = self._hidden.get(func)
        if hidden is not None:
            self.transient(hidden(args), str(func), Category.HIDDEN_TEMPORARIES)
        return out

    def _value(self, func: Any, args: Any) -> bool | int | float:
        if func is aten.equal.default:
            return True  # Liger asks whether the loss's gradient is 1 (liger_kernel/ops/cross_entropy.py)
        self.work.count_read()
        return _stand_in(args[0])

    def _known_value(self, func: Any, args: Any) -> Any:
        """Return the true value if every argument has data; otherwise, recipes' libraries get a stand-in."""
        self.work.count_read()
        known = [_known(argument) for argument in args]
        if all(value is not None for value in known):
            with no_dispatch():
                return func(*known)
        place = _reader()
        if not any(part in place for part in READ_AS_IN_RECIPES):
            raise CannotTraceError(
                f"{func} reads the value of a tensor, and fake tensors have none (at {place}): take the "
                "branch or the number from the configuration instead"
            )
        note = f"the value read at {place} is taken as 1 or True"
        if "/torch/" not in place and note not in self.notes:
            self.notes.append(note)
        return self._value(func, args)

    def _kernel_in_python(self, func: Any, args: Any, kwargs: Any) -> Any:
        kernel = WRITTEN_IN_PYTHON.get(func)
        if kernel is None:
            return NotImplemented
        with self:
            return kernel(*args, **kwargs)

    def _reserve_workspace(self) -> None:
        """Allocate cuBLAS's workspace at a thread's first matrix product; autograd uses a second thread."""
        if self.timeline.phase in self._without_workspace:
            self._without_workspace.remove(self.timeline.phase)
            self.timeline.allocate(
                Allocation(
                    rounded(self._workspace_bytes), self.timeline.phase, "cublas", owner=Category.WORKSPACE
                )
            )

    def begin(self, phase: Phase) -> None:
        """Free cyclic garbage, then start a phase: a trace must not depend on when the collector runs."""
        gc.collect()
        self.timeline.begin(phase)
        self.work.begin(phase)

    def see(self, tensor: torch.Tensor, operation: Any = "") -> None:
        """Record the storage of a tensor if the storage is new."""
        if tensor.device.type != "cuda":
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._live or not storage.nbytes():
            return
        owner = self._owner
        phase = self.timeline.phase
        if owner is None and phase is not Phase.BUILD and self._is_logits(tensor):
            owner = Category.LOGITS
        self._watch(storage)
        self._live[key] = self.timeline.allocate(
            Allocation(
                rounded(storage.nbytes()), phase, str(operation),
                f"{str(tensor.dtype)[6:]} {tuple(tensor.shape)}", _line() if self.with_lines else "",
                owner, phase is Phase.BACKWARD and torch.is_grad_enabled(),
            )
        )  # fmt: skip

    def _watch(self, storage: Any) -> None:
        key = storage._cdata
        if key not in self._watched:
            self._watched.add(key)
            weakref.finalize(storage, self._gone, key).atexit = False

    def _is_logits(self, tensor: torch.Tensor) -> bool:
        return (
            tensor.numel() >= self.logits_size and tensor.dim() > 1 and tensor.shape[-1] in self.row_lengths
        )

    def _gone(self, key: int) -> None:
        self._watched.discard(key)
        index = self._live.pop(key, None)
        if index is not None:
            self.timeline.free(index)

    def transient(self, size_bytes: int, operation: str, owner: Category) -> None:
        """Record memory allocated and freed within one operation."""
        if not size_bytes:
            return
        index = self.timeline.allocate(
            Allocation(rounded(size_bytes), self.timeline.phase, operation, owner=owner)
        )
        self.timeline.free(index)

    def own(self, tensors: Iterable[Any], category: Category) -> None:
        """Set the purpose of tensors, replacing any earlier purpose."""
        for tensor in tensors:
            if is_wrapper(type(tensor)):
                self.own((getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]), category)
            elif isinstance(tensor, torch.Tensor) and tensor.device.type == "cuda":
                index = self._live.get(tensor.untyped_storage()._cdata)
                if index is not None:
                    self.timeline.allocations[index].owner = category

    def resized(self, storage: Any, size_bytes: int) -> None:
        """Record that a known storage was resized in place, as sharding resizes gathered weights."""
        key = storage._cdata
        if key not in self._watched:
            return
        index = self._live.pop(key, None)
        if index is not None:
            self.timeline.free(index)
        if size_bytes:
            line = _line() if self.with_lines else ""
            self._live[key] = self.timeline.allocate(
                Allocation(
                    rounded(size_bytes), self.timeline.phase, "resize_", f"{size_bytes} bytes", line,
                    Category.COMMUNICATION,
                )
            )  # fmt: skip

    def _balanced_share(self, mask: torch.Tensor) -> torch.Tensor:
        """Return the token indices of one expert: as many as balanced routing would send to that expert."""
        count = max(1, mask.numel() // max(1, self.experts))
        out = torch.empty(count, mask.dim(), dtype=torch.long, device=mask.device)
        self.see(out, "aten.nonzero.default")
        return out


def is_wrapper(kind: Any) -> bool:
    """Return True if a tensor class, such as DTensor, wraps other tensors and has no memory of its own."""
    return issubclass(kind, torch.Tensor) and hasattr(kind, "__tensor_flatten__")


def _stand_in(tensor: torch.Tensor) -> bool | int | float:
    """Return a stand-in for a fake tensor's ``.item()``: 1, so that averages and counts keep their values."""
    if tensor.dtype is torch.bool:
        return True
    return 1.0 if tensor.dtype.is_floating_point else 1


def _known(argument: Any) -> Any:
    """Return an argument's data: the argument itself, or a fake tensor's constant; None without data."""
    if isinstance(argument, FakeTensor):
        return argument.constant
    return argument


def _reader() -> str:
    """Return file:line of the code reading a value, skipping the tracer and torch (but not torch.optim)."""
    frame = sys._getframe(3)
    while frame is not None:
        name = frame.f_code.co_filename
        if "/torch/optim/" in name or ("/torch/" not in name and "/gpufare_tracer/" not in name):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def _line() -> str:
    """Return file:line of the innermost frame outside torch and the tracer; empty for autograd's calls."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.endswith("/gpufare_tracer/steps.py"):
            return ""
        if "/torch/" not in name and "/gpufare_tracer/" not in name:
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""
