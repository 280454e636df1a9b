"""The parts of a comparison with a real GPU that can be tested without one."""

import pytest

from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.frameworks import quantized
from gpufare_tracer.frameworks.surroundings import here, on_a_real_device
from gpufare_tracer.parity import parity
from gpufare_tracer.recipes import Recipe, read_recipes
from tests.shapes import tiny


def test_without_a_gpu_there_is_nothing_to_compare_with() -> None:
    with pytest.raises(CannotTraceError, match="torch sees none here"):
        parity(read_recipes()["hf-qlora"], tiny())


def test_patches_of_libraries_are_undone_after_a_run_on_a_gpu() -> None:
    undone = []
    with on_a_real_device(Recipe(name="mine", framework="transformers")):
        here().undo.callback(undone.append, True)
        assert not undone
    assert undone == [True]


def test_without_its_kernels_nothing_is_quantized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantized, "cuda_kernels", {})
    with pytest.raises(CannotTraceError, match="imported in this process for a real GPU"):
        quantized.quantize(None, read_recipes()["hf-qlora"], None)
