"""The parts of a comparison with a real GPU that can be tested without one."""

import pytest

from pipeline.model.tracing.errors import CannotTraceError
from pipeline.model.tracing.frameworks import quantized
from pipeline.model.tracing.frameworks.surroundings import here, on_a_real_device
from pipeline.model.tracing.parity import parity
from pipeline.model.tracing.recipes import Recipe, read_recipes
from tests.tracing.shapes import tiny


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
