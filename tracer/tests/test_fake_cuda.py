"""The fake CUDA device: autograd runs on it, in any thread, and what cannot work is refused in one line."""

import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from gpufare_tracer import fake_cuda
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import Trace, TraceShape
from gpufare_tracer.trace import trace

PROJECT = Path(__file__).parents[2]


def small_trace() -> Trace:
    shape = TraceShape(model="llama-3.2-1b", layers=1, seq_len=64)
    return trace(Recipe(name="test", framework="transformers", method="lora"), shape)


def fresh(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process in which nothing has been patched yet."""
    install = "from gpufare_tracer import fake_cuda\nfake_cuda.install()\n"
    return subprocess.run(
        [sys.executable, "-c", code + "\n" + install], cwd=PROJECT, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


def test_a_trace_is_the_same_again_and_in_another_thread() -> None:
    first = small_trace()
    with ThreadPoolExecutor(max_workers=1) as pool:
        other = pool.submit(small_trace).result(timeout=60)
    assert first == small_trace() == other


def test_torch_is_as_before_after_a_trace() -> None:
    small_trace()
    assert not torch.cuda.is_available()
    assert torch.get_rng_state().numel()
    assert torch._C._is_multithreading_enabled()
    layer = torch.nn.Linear(2, 2)
    layer(torch.ones(1, 2)).sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_a_process_leaves_in_peace() -> None:
    answer = fresh("")
    assert (answer.returncode, answer.stderr) == (0, "")


@pytest.mark.parametrize(
    "state",
    ["torch.cuda._initialized = True", "torch._C._cuda_getDeviceCount = lambda: 1"],
    ids=["CUDA has started", "a GPU was counted"],
)
def test_a_process_that_has_used_a_gpu_is_refused(state: str) -> None:
    answer = fresh(f"import torch\n{state}")
    assert answer.returncode == 1
    assert "CannotTraceError: this process has used a GPU already: trace in a process" in answer.stderr


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("import sys; sys.platform = 'win32'", "tracing needs Linux or macOS, not win32: run it in WSL"),
        ("import torch; torch.version.hip = '6.4'", "is built for ROCm: pip install torch=="),
        ("import torch; del torch._C._ensureCUDADeviceGuardSet", "is too old (no device guard"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(state: str, said: str) -> None:
    last = fresh(state).stderr.splitlines()[-1]
    assert re.fullmatch(rf".*CannotTraceError: .*{re.escape(said)}.*", last)


def test_no_gpu_is_seen_after_installing() -> None:
    answer = fresh(
        "import atexit, os\natexit.register(lambda: print(repr(os.environ['CUDA_VISIBLE_DEVICES'])))"
    )
    assert answer.stdout == "''\n"


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm to read the size of a C++ table")
def test_the_tables_are_as_long_as_the_headers_say() -> None:
    root = Path(torch.__file__).parent
    symbols = subprocess.run(
        ["nm", "-DS", root / "lib" / "libtorch_cpu.so"], capture_output=True, text=True, check=True
    ).stdout
    match = re.search(r"^\w+ (\w+) V _ZTVN2at18CUDAHooksInterfaceE$", symbols, re.MULTILINE)
    assert match is not None
    headers = ("ATen/detail/AcceleratorHooksInterface.h", "ATen/detail/CUDAHooksInterface.h")
    slots = fake_cuda._virtual_functions(root, *headers)
    assert (len(slots) + fake_cuda.HEADER_WORDS) * 8 == int(match[1], 16)
