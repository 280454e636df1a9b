"""A user's own step: what is shared, where it is, what is refused, and that nothing is counted otherwise."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

from gpufare_tracer import own_step
from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import Trace, TraceShape
from gpufare_tracer.timeline import Category, Phase
from gpufare_tracer.trace import trace
from tests.shapes import ALL_WEIGHTS, attention_kernels, tiny

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


def step_of(loss: Callable[[Any], Any], optimizer: Callable[[Any], Any] = lambda model: None) -> Any:
    def make() -> Any:
        model = linear()
        return model, optimizer(model), lambda: loss(model)

    return make


def test_a_known_value_is_its_own_and_an_unknown_one_is_refused() -> None:
    def known(model: Any) -> Any:
        assert torch.tensor(7).item() == 7
        assert not torch.tensor(False)
        return model(rows()).sum()

    def unknown(model: Any) -> Any:
        out = model(rows()).sum()
        return out * 0 if out.isnan() else out

    traced(step_of(known, lambda model: torch.optim.AdamW(model.parameters(), capturable=False)))
    with pytest.raises(CannotTraceError, match=r"_local_scalar_dense.*test_own_step.py:\d+"):
        traced(step_of(unknown))
    with pytest.raises(CannotTraceError, match=r"nonzero.*test_own_step.py:\d+"):
        traced(step_of(lambda model: model(rows()[torch.nonzero(rows()[:, 0])]).sum()))


def test_default_adamw_is_foreach_as_on_a_gpu() -> None:
    def peaks(**settings: Any) -> Any:
        adamw = lambda model: torch.optim.AdamW(model.parameters(), **settings)  # noqa: E731
        return traced(step_of(lambda model: model(rows()).sum(), adamw)).phases

    assert peaks() == peaks(foreach=True) != peaks(foreach=False)


def test_several_optimizers_are_all_counted() -> None:
    def make() -> Any:
        model = torch.nn.Sequential(linear(), linear())
        optimizers = [torch.optim.AdamW(part.parameters(), fused=True) for part in model]
        return model, optimizers, lambda: model(rows()).sum()

    weights = 2 * 4 * WIDTH * WIDTH
    found = traced(make).phase(Phase.OPTIMIZER).by_category
    assert found[Category.OPTIMIZER] == 2 * weights + 2 * 512


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (lambda model: {"loss": model(rows()).sum()}, "returned dict, not a tensor"),
        (lambda model: (model(rows()).sum(), 1), "returned tuple, not a tensor"),
        (lambda model: model(rows()), "grad can be implicitly created only for scalar"),
    ],
)
def test_invalid_loss_is_refused(loss: Any, words: str) -> None:
    with pytest.raises(CannotTraceError, match=words):
        traced(step_of(loss))


def test_failing_import_names_its_place(tmp_path, monkeypatch) -> None:
    (tmp_path / "misspelt_module.py").write_text("x = 1\nx = = 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(CannotTraceError, match=r"SyntaxError.*misspelt_module.py, line 2"):
        own_step.find("misspelt_module:make")


def test_compiled_code_is_traced_eagerly_with_a_note() -> None:
    def loss(model: Any) -> Any:
        return torch.compile(model)(rows()).sum()

    assert traced(step_of(loss)).note == own_step.COMPILED


def test_statistics_streams_and_leaves_on_the_device() -> None:
    def loss(model: Any) -> Any:
        torch.cuda.reset_peak_memory_stats()
        assert torch.cuda.max_memory_allocated() == torch.cuda.memory_reserved() == 0
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda.Event(enable_timing=True).record(torch.cuda.current_stream())
        assert torch.tensor([1.0], device="cuda", requires_grad=True).requires_grad
        return model(rows()).sum()

    traced(step_of(loss))


def test_attention_is_decomposed_where_no_kernel_may_run() -> None:
    def kernels(capability: tuple[int, int], *backends: Any) -> set[str]:
        def loss(model: Any) -> Any:
            q = model(torch.randn(1, 2, 32, WIDTH, device="cuda")).bfloat16()
            with torch.nn.attention.sdpa_kernel(list(backends)):
                return torch.nn.functional.scaled_dot_product_attention(q, q, q).sum()

        with attention_kernels() as called:
            traced(step_of(loss), compute_capability=capability)
        return called

    backend = torch.nn.attention.SDPBackend
    assert kernels((8, 0), *(backend.FLASH_ATTENTION, backend.MATH)) == {"flash"}
    assert kernels((8, 0), backend.EFFICIENT_ATTENTION, backend.MATH) == {"efficient"}
    assert kernels((8, 0), backend.MATH) == set()
    assert kernels((7, 5), backend.FLASH_ATTENTION, backend.EFFICIENT_ATTENTION, backend.MATH) == set()


def test_a_batch_may_be_pinned_before_it_is_copied() -> None:
    def make() -> Any:
        model = linear()
        optimizer = torch.optim.AdamW(model.parameters())
        return model, optimizer, lambda: model(torch.randn(4, WIDTH).pin_memory().to("cuda")).sum()

    assert traced(make).trainable_parameters == WIDTH * WIDTH


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Trainer makes its output folder where it runs."""
    monkeypatch.chdir(tmp_path)


class Refused(TrainerCallback):
    def on_train_begin(self, *_: Any, **__: Any) -> None:
        raise AssertionError("a trace runs no callback of the user's")


def trainer_of(rows_of: Callable[[int], int] = lambda index: 64, **settings: Any) -> Callable[[], Any]:
    """A Trainer of a tiny Llama in fp32; ``rows_of`` gives the tokens of each row."""

    def make() -> Any:
        model = LlamaForCausalLM(LlamaConfig.from_dict(tiny().config))
        rows = [{"input_ids": [1] * rows_of(index), "labels": [1] * rows_of(index)} for index in range(64)]
        values = TrainingArguments(
            per_device_train_batch_size=1, dataloader_num_workers=2, logging_steps=1, **settings
        )
        return Trainer(model, values, train_dataset=rows, callbacks=[Refused()])

    return make


def test_a_trainer_takes_its_own_steps() -> None:
    once, twice = (traced(trainer_of(gradient_accumulation_steps=count)) for count in (1, 2))
    for found in (once, twice):
        assert found.trainable_parameters == ALL_WEIGHTS
        assert found.phase(Phase.OPTIMIZER).by_category[Category.OPTIMIZER] == pytest.approx(
            8 * ALL_WEIGHTS, rel=0.02
        )
    kept = [found.phase(Phase.FORWARD).by_category.get(Category.GRADIENTS, 0) for found in (once, twice)]
    assert kept == [0, once.phase(Phase.OPTIMIZER).by_category[Category.GRADIENTS]]


def test_a_trainers_batches_are_those_of_its_data() -> None:
    """Activations grow with the longest row of the data, whose lengths a collator reads."""
    short, long = (
        traced(trainer_of(lambda _, tokens=tokens: tokens, bf16=True)).phase(Phase.FORWARD).allocated_bytes
        for tokens in (64, 512)
    )
    assert long > short


def test_a_trainer_has_its_own_accumulation() -> None:
    recipe = RECIPE.model_copy(update={"gradient_accumulation": True})
    with pytest.raises(CannotTraceError, match="TrainingArguments decide how gradients are accumulated"):
        trace(recipe, TraceShape(model="mine"), build=own_step.builder("mine:make", trainer_of()))


def test_a_trainer_whose_loss_reads_a_value_is_refused_by_its_line() -> None:
    def make() -> Any:
        trainer = trainer_of()()
        loss = trainer.compute_loss
        trainer.compute_loss = lambda *a, **k: loss(*a, **k) if loss(*a, **k).item() > 0 else None
        return trainer

    with pytest.raises(CannotTraceError, match=r"_local_scalar_dense.*test_own_step.py:\d+"):
        traced(make)
