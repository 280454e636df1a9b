"""LitGPT's fit(), torchtune's train() and TRL's SFTTrainer on fake tensors: what they keep and make."""

import sys
from importlib.util import find_spec
from typing import Any

import pytest

from gpufare_tracer.architectures import architecture_of
from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.result import Trace, TraceShape
from gpufare_tracer.steps import INSTALL, load_framework
from gpufare_tracer.timeline import Category, Phase
from gpufare_tracer.trace import trace


def needs(package: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        find_spec(package) is None, reason=f"{package} is not installed: {INSTALL.get(package, '')}"
    )


SHAPE = TraceShape(model="llama-3.2-1b", micro_batch=2, seq_len=256, layers=1)
SIZES = architecture_of(SHAPE)
TOKENS = SHAPE.micro_batch * SHAPE.seq_len
BF16 = 2
LITGPT = {
    "framework": "litgpt", "adapter_dtype": "bf16", "optimizer": "adamw", "gradient_clipping": False,
    "lora_targets": ("q_proj", "v_proj"),
}  # fmt: skip
LITGPT_QLORA = LITGPT | {"method": "qlora", "quantization": "nf4", "optimizer": "paged_adamw32"}
TORCHTUNE = {"framework": "torchtune", "adapter_dtype": "bf16", "gradient_clipping": False}
TRL = {"framework": "trl", "autocast": "bf16", "attention_mask": True}


def traced(switches: dict[str, Any], shape: TraceShape = SHAPE, **more: Any) -> Trace:
    return trace(Recipe(name="tested", **switches | more), shape)


def test_missing_framework_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litgpt", None)
    monkeypatch.delitem(sys.modules, "gpufare_tracer.frameworks.litgpt_step", raising=False)
    with pytest.raises(
        CannotTraceError, match=r"litgpt, which is not installed .* pip install --no-deps litgpt"
    ):
        load_framework(Recipe(name="tested", framework="litgpt"))


@needs("litgpt")
class TestLitGpt:
    """The real fit() of litgpt/finetune."""

    def test_the_last_logits_live_into_the_next_forward_pass(self) -> None:
        """fit() has them in a local variable: they are alive while gradients are applied."""
        found = traced(LITGPT).phase(Phase.OPTIMIZER).by_category
        padded_vocab = 128_256
        assert (
            found[Category.STORED_ACTIVATIONS] + found.get(Category.LOGITS, 0) >= TOKENS * padded_vocab * BF16
        )

    def test_every_linear_layer_is_quantized_with_the_head(self) -> None:
        whole, quantized = traced(LITGPT), traced(LITGPT_QLORA)
        embedding = SIZES.vocab * SIZES.hidden * BF16
        saved = (
            whole.phase(Phase.FORWARD).by_category[Category.WEIGHTS]
            - (quantized.phase(Phase.FORWARD).by_category[Category.WEIGHTS])
        )
        linear = whole.phase(Phase.FORWARD).by_category[Category.WEIGHTS] - embedding
        assert saved == pytest.approx(linear * (1 - 0.5625 / 2), rel=0.01)

    def test_the_stable_embedding_trains_unnoticed(self) -> None:
        """Its gradients are never freed, as no optimizer knows it; the optimizer keeps the old one."""
        new, old = traced(LITGPT_QLORA), traced(LITGPT_QLORA, stable_embedding=False)
        embedding = SIZES.vocab * SIZES.hidden * BF16
        assert new.resident_bytes - old.resident_bytes == pytest.approx(2 * embedding, rel=0.001)

    def test_old_bitsandbytes_keeps_the_inputs_of_a_product(self) -> None:
        """As long as the loss lives: those of one micro-batch are there when the next forward pass begins."""
        new, old = traced(LITGPT_QLORA), traced(LITGPT_QLORA, kbit_keeps_inputs=True)
        # Attention keeps its output anyway. What only the products keep:
        products = TOKENS * (2 * SIZES.hidden + SIZES.intermediate) * BF16
        more = old.phase(Phase.OPTIMIZER).allocated_bytes - new.phase(Phase.OPTIMIZER).allocated_bytes
        assert more >= products
        head_in_fp16 = SIZES.vocab * SIZES.hidden * BF16
        more = old.phase(Phase.FORWARD).allocated_bytes - new.phase(Phase.FORWARD).allocated_bytes
        assert more > head_in_fp16 / 2

    def test_only_litgpt_knows_old_bitsandbytes(self) -> None:
        with pytest.raises(CannotTraceError, match="kbit_keeps_inputs is traced with litgpt only"):
            traced(
                {"framework": "transformers", "method": "qlora", "quantization": "nf4"},
                kbit_keeps_inputs=True,
            )

    def test_the_longest_batch_comes_alone(self) -> None:
        """Nothing of a micro-batch before it is alive."""
        first, all_alike = (
            traced(LITGPT, longest_batch_first=flag).phase(Phase.FORWARD) for flag in (True, False)
        )
        assert first.allocated_bytes < all_alike.allocated_bytes

    @pytest.mark.parametrize("switch", [{"checkpointing": "full"}, {"packing": "padding_free"}])
    def test_what_it_has_not_is_refused(self, switch: dict[str, str]) -> None:
        with pytest.raises(CannotTraceError, match=f"{next(iter(switch))}='{next(iter(switch.values()))}'"):
            traced(LITGPT, **switch)

    def test_twice_the_same(self) -> None:
        assert traced(LITGPT_QLORA) == traced(LITGPT_QLORA)


@needs("torchtune")
class TestTorchtune:
    """The real recipes of torchtune for one GPU."""

    def test_the_chunked_loss_upcasts_an_eighth_of_the_logits_at_a_time(self) -> None:
        chunked, whole = (
            traced(TORCHTUNE, loss=loss).phase(Phase.FORWARD).allocated_bytes for loss in ("chunked", "whole")
        )
        logits = TOKENS * SIZES.vocab * BF16
        assert whole - chunked >= logits // 2

    def test_the_optimizer_in_the_backward_pass_keeps_no_gradients(self) -> None:
        full = {"method": "full", "checkpointing": "full"}
        after, within = (
            traced(TORCHTUNE, optimizer=name, **full) for name in ("adamw_fused", "adamw_in_backward")
        )
        assert after.resident_bytes == within.resident_bytes
        assert {phase.phase for phase in within.phases} == {Phase.FORWARD, Phase.BACKWARD}
        assert within.peak.allocated_bytes < after.peak.allocated_bytes

    def test_what_it_has_not_is_refused(self) -> None:
        with pytest.raises(CannotTraceError, match="autocast='bf16'"):
            traced(TORCHTUNE, autocast="bf16")
        with pytest.raises(CannotTraceError, match="quantization='nf4dq'"):
            traced(TORCHTUNE, method="qlora", quantization="nf4dq")
        with pytest.raises(CannotTraceError, match="no builder for 'falcon-7b'"):
            traced(TORCHTUNE, TraceShape(model="falcon-7b", layers=1))


@needs("trl")
@pytest.mark.skipif(find_spec("torchtune") is not None, reason="PEFT refuses torchtune's torchao")
class TestTrl:
    """The real SFTTrainer."""

    def test_logits_are_never_whole(self) -> None:
        """The head and the loss run in tiles of 32,768 entries of the vocabulary."""
        found = traced(TRL).phase(Phase.FORWARD).by_category
        assert found.get(Category.LOGITS, 0) == 0

    def test_adapters_of_a_quantized_model_are_bf16_whatever_peft_makes(self) -> None:
        found = traced(TRL, method="qlora", quantization="nf4dq", adapter_dtype="bf16", checkpointing="full")
        adapters = found.phase(Phase.OPTIMIZER).by_category[Category.ADAPTERS]
        assert adapters == pytest.approx(found.trainable_parameters * BF16, rel=0.01)

    def test_accumulated_gradients_are_there_in_the_second_forward_pass(self) -> None:
        once, twice = (
            traced(TRL, method="full", gradient_accumulation=many).phase(Phase.FORWARD)
            for many in (False, True)
        )
        assert Category.GRADIENTS not in once.by_category
        assert twice.by_category[Category.GRADIENTS] > 0

    def test_two_trainers_in_one_process_are_alike(self) -> None:
        first = traced(TRL)
        traced(TRL, method="full", weight_dtype="fp32")
        assert traced(TRL) == first

    def test_what_it_has_not_is_refused(self) -> None:
        with pytest.raises(CannotTraceError, match="kernels='liger'"):
            traced(TRL, kernels="liger")
