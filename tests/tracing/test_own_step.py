"""A user's own step: what is shared, where it is, what is refused, and that nothing is counted otherwise."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pipeline.model.tracing import own_step
from pipeline.model.tracing.errors import CannotTraceError
from pipeline.model.tracing.recipes import Recipe
from pipeline.model.tracing.result import Trace, TraceShape
from pipeline.model.tracing.timeline import Category, Phase
from pipeline.model.tracing.trace import trace

RECIPE = Recipe(name="mine", framework="own", method="full", gradient_clipping=False)
WIDTH = 64


def traced(make: Callable[[], Any], **shape: Any) -> Trace:
    shape_of_it = TraceShape(model="mine", **shape)
    return trace(RECIPE, shape_of_it, build=own_step.builder("mine:make", make))


def linear() -> Any:
    return torch.nn.Linear(WIDTH, WIDTH, bias=False, device="cuda")


def rows() -> torch.Tensor:
    return torch.randn(4, WIDTH, device="cuda")


def test_tied_weights_that_are_moved_count_once() -> None:
    words = 1024

    def make() -> Any:
        class Tied(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.embedding = torch.nn.Embedding(words, WIDTH)
                self.head = torch.nn.Linear(WIDTH, words, bias=False)
                self.head.weight = self.embedding.weight
                self.head.weight.no_decay = True  # type: ignore[attr-defined]
                self.register_buffer("table", torch.ones(words))
                self.head.register_buffer("table", self.table)

        model = Tied().cuda().bfloat16()
        assert model.head.weight is model.embedding.weight
        assert model.head.table is model.table
        assert model.head.weight.no_decay
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        tokens = torch.zeros(8, dtype=torch.long, device="cuda")
        return model, optimizer, lambda: model.head(model.embedding(tokens)).sum()

    found = traced(make)
    assert found.trainable_parameters == words * WIDTH
    assert found.phase(Phase.OPTIMIZER).by_category[Category.GRADIENTS] == 2 * words * WIDTH


def test_an_optimizer_of_parameters_that_were_replaced_is_refused() -> None:
    def make() -> Any:
        model = torch.nn.Linear(WIDTH, WIDTH)
        optimizer = torch.optim.AdamW(model.parameters())
        model.cuda()
        return model, optimizer, lambda: model(rows()).sum()

    with pytest.raises(CannotTraceError, match=r"2 of the optimizer's .* after moving the model"):
        traced(make)


def test_a_model_on_the_cpu_is_refused() -> None:
    def make() -> Any:
        model = torch.nn.Linear(WIDTH, WIDTH)
        return model, None, lambda: model(torch.randn(4, WIDTH)).sum()

    with pytest.raises(CannotTraceError, match="no parameter of the model is on cuda"):
        traced(make)


def test_a_module_may_ask_for_cuda_when_it_is_imported(tmp_path, monkeypatch) -> None:
    (tmp_path / "asks_at_import.py").write_text(
        "import torch\n"
        "DEVICE = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
        "def make():\n"
        "    model = torch.nn.Linear(8, 8).to(DEVICE)\n"
        "    return model, None, lambda: model(torch.randn(4, 8, device=DEVICE)).sum()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert traced(own_step.find("asks_at_import:make")).trainable_parameters == 72


def test_a_matrix_product_on_the_cpu_has_no_cublas_workspace() -> None:
    def make() -> Any:
        model = torch.nn.Embedding(8, WIDTH, device="cuda")

        def loss() -> Any:
            torch.randn(4, 4) @ torch.randn(4, 4)
            return model(torch.zeros(2, dtype=torch.long, device="cuda")).sum()

        return model, None, loss

    assert all(Category.WORKSPACE not in phase.by_category for phase in traced(make).phases)
