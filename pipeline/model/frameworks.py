"""Training frameworks as people name them in free text, and what each does unless a row says otherwise."""

import re
from dataclasses import dataclass

from pipeline.model.run_settings import RunError, RunRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """How a framework is recognized, and its own defaults. None: it has none, or they differ by recipe."""

    name: str
    pattern: str
    stack: str
    documented: str
    """Where the defaults are documented."""
    loss_kernel: str | None = None
    checkpointing: str = "none"
    offload: str | None = None
    lora_dropout: float | None = None
    full_precision: str = "bf16"
    """Precision policy where all weights train, in 16 bits."""
    kbit_upcast: float | None = None
    casts_back: bool = False
    """Under bf16, casts embeddings and head of 4-bit models back after their preparation."""
    quantization: str = "nf4"
    """Form of frozen 4-bit weights."""


_AMP, _MIXED = "amp", "deepspeed_bf16"

# The first whose pattern is found in the lower-case name counts.
FRAMEWORKS = (
    Framework(
        name="Unsloth",
        pattern="unsloth",
        stack="foak",
        documented="unsloth/models/llama.py: get_peft_model; unsloth/models/_utils.py",
        loss_kernel="liger",
        checkpointing="full",
        offload="act",
        lora_dropout=0.0,
        kbit_upcast=0.0,
        quantization="nf4dq",
    ),
    Framework(
        name="Axolotl",
        pattern="axolotl",
        stack="hf",
        documented="axolotl/loaders/model.py (norms and embeddings back to 16 bits); examples/*/qlora.yml",
        loss_kernel="hf",
        checkpointing="full",
        kbit_upcast=0.0,
        quantization="nf4dq",
    ),
    Framework(
        name="LLaMA-Factory",
        pattern="llama-?factory",
        stack="hf",
        documented="llamafactory/hparams: disable_gradient_checkpointing, lora_dropout, double_quantization",
        loss_kernel="hf",
        checkpointing="full",
        lora_dropout=0.0,
        kbit_upcast=0.0,
        quantization="nf4dq",
    ),
    Framework(
        name="Megatron-SWIFT",
        pattern="megatron-swift",
        stack="te",
        documented="ms-swift: Megatron-SWIFT, command-line parameters",
        loss_kernel="fused",
        full_precision=_MIXED,
    ),
    Framework(
        name="ms-swift",
        pattern=r"\bms-?swift|\bswift\b",
        stack="hf",
        documented="ms-swift: command-line parameters (gradient_checkpointing, lora_dropout, bnb_4bit_*)",
        loss_kernel="hf",
        checkpointing="full",
        lora_dropout=0.05,
        quantization="nf4dq",
    ),
    Framework(
        name="XTuner",
        pattern="xtuner",
        stack="hf",
        documented="xtuner/configs: activation checkpointing, deepspeed_zero*.json",
        loss_kernel="hf",
        checkpointing="full",
        lora_dropout=0.1,
        full_precision=_MIXED,
        quantization="nf4dq",
    ),
    Framework(
        name="torchtitan",
        pattern="torchtitan",
        stack="compile",
        documented="torchtitan/config: compile, activation_checkpoint",
        loss_kernel="titan",
        checkpointing="sac",
        full_precision=_AMP,
    ),
    Framework(
        name="torchao",
        pattern="torchao",
        stack="compile",
        documented="torchao: benchmarks on torchtitan",
        loss_kernel="titan",
        checkpointing="sac",
        full_precision=_AMP,
    ),
    Framework(
        name="torchtune",
        pattern="torchtune|milabench",
        stack="torchtune",
        documented="torchtune recipes/configs: enable_activation_checkpointing, compile, lora_dropout, loss",
        loss_kernel="chunked",
        checkpointing="full",
        lora_dropout=0.0,
        quantization="nf4dq",
    ),
    Framework(
        name="Thunder",
        pattern="thunder",
        stack="compile",
        documented="LitGPT: extensions/thunder/README.md",
        loss_kernel="litgpt",
    ),
    Framework(
        name="LitGPT",
        pattern="lit-?gpt",
        stack="litgpt",
        documented="litgpt/finetune: lora_dropout, precision, activation checkpointing",
        loss_kernel="litgpt",
        lora_dropout=0.05,
    ),
    Framework(
        name="MosaicML llm-foundry",
        pattern="llm-foundry|composer|mosaic",
        stack="mosaic",
        documented="llm-foundry: scripts/train/yamls, fsdp_config",
        loss_kernel="hf",
        full_precision=_AMP,
    ),
    Framework(
        name="fms-acceleration FOAK",
        pattern="foak",
        stack="foak",
        documented="fms-acceleration: plugins/fused-ops-and-kernels",
        loss_kernel="fused",
    ),
    Framework(
        name="optimum-habana",
        pattern=r"optimum-?habana|\bhpu\b",
        stack="hf",
        documented="optimum-habana: examples/language-modeling",
        loss_kernel="hf",
    ),
    Framework(
        name="prime-rl",
        pattern="prime-?rl",
        stack="compile",
        documented="prime-rl: src/prime_rl/trainer/sft/config.py",
        loss_kernel="hf",
        full_precision=_AMP,
    ),
    Framework(
        name="DeepSpeed",
        pattern=r"(?<!megatron-)(?<!megatron )deepspeed",
        stack="hf",
        documented="deepspeed.ai: configuration JSON (bf16, zero_optimization)",
        loss_kernel="hf",
        checkpointing="full",
        full_precision=_MIXED,
    ),
    Framework(
        name="Megatron and NeMo",
        pattern=r"nemo|megatron|primus|transformer ?engine|picotron|nvidia release|\bngc\b|rocm|llmboost",
        stack="te",
        documented="Megatron-Core: distributed optimizer, transformer_config.py (recompute_granularity)",
        loss_kernel="fused",
        full_precision=_MIXED,
    ),
    Framework(
        name="FlashAttention's training code",
        pattern="flash-?attention training",
        stack="te",
        documented="flash-attention: training/README.md",
        loss_kernel="fused",
        full_precision=_AMP,
    ),
    Framework(
        name="Liger",
        pattern="liger",
        stack="liger",
        documented="Liger-Kernel: README.md",
        loss_kernel="liger",
    ),
    Framework(
        name="TRL",
        pattern=r"\btrl\b|sfttrainer",
        stack="hf",
        documented="trl/trainer/sft_trainer.py, utils.py: peft_module_casting_to_bf16",
        loss_kernel="hf",
        casts_back=True,
    ),
    Framework(
        name="transformers and PEFT",
        pattern=(
            r"transformers|\bhf\b|hugging ?face|\bpeft\b|accelerate|\bfsdp\b"
            r"|vectorlm|fastchat"
        ),
        stack="hf",
        documented="transformers: TrainingArguments; peft: LoraConfig",
        loss_kernel="hf",
    ),
)

# Trainers of preferences and rewards hold a reference model, generate, or keep logits of several answers.
_NOT_FINE_TUNING = re.compile(
    r"(?<!no )(?<!not )(?<!without )(?:"
    r"(?<![a-z])(dpo|orpo|kto|simpo|cpo|ipo|grpo|gspo|ppo|rloo|rlhf|rlvr|dapo|gkd|bco|xpo|nash-?md|prm)(?![a-z])"
    r"|(dpo|orpo|kto|simpo|cpo|grpo|ppo|rloo|gkd|bco|xpo|nash-?md|prm|reward)[ _-]?(trainer|config)"
    r"|\breward\b|\bnemo[- ]rl\b|\bverl\b|openrlhf|\btrlx\b|knowledge distillation"
    r"|sentence[-_ ]?transformers?|cross-?encoder|forsequenceclassification)"
)

# Kernels that a row may add to any framework. Like Liger's, TRL's chunked loss never has more logits than a
# chunk's.
_LOSS_KERNELS = (
    (r"chunked (cross|ce)", "chunked"),
    (r"cut cross entropy|\bcce\b|liger|fused linear cross|chunked nll", "liger"),
)


def refuse_other_methods(*texts: str) -> None:
    """Raise RunError for preference and reinforcement learning, distillation and the training of encoders,
    which no formula here describes."""
    for text in texts:
        found = _NOT_FINE_TUNING.search(text.lower())
        if found:
            raise RunError(
                f"'{text}' is preference or reinforcement learning or another objective "
                f"({found.group(0)}): not estimated, and its figures are not those of supervised fine-tuning"
            )


def find_framework(text: str, source: str = "") -> Framework | None:
    """The framework that free text names, None where it is not known. MLPerf's entries run fused engines."""
    lowered = text.lower()
    for framework in FRAMEWORKS:
        if re.search(framework.pattern, lowered):
            return framework
    if source.lower().startswith("mlperf"):
        return find_framework("megatron")
    return None


def loss_kernel_of(text: str, framework: Framework | None) -> str | None:
    """The loss kernel that a row names, or its framework's own."""
    for pattern, kernel in _LOSS_KERNELS:
        if re.search(pattern, text.lower()) and (framework is None or framework.loss_kernel == "hf"):
            return kernel
    return framework.loss_kernel if framework else None


def set_framework(read: RunRow, text: str, source: str) -> Framework | None:
    """Set stack and loss kernel from free text; one that is not known is an assumption. Returns it."""
    framework = find_framework(text, source)
    read.settings["stack"] = framework.stack if framework else "hf"
    read.settings["loss_kernel"] = loss_kernel_of(text, framework)
    if framework is None:
        named = f"'{text}' is not known" if text.strip() else "none given"
        read.assumptions.append(f"framework: {named}, read as the Transformers Trainer: bands doubled")
        read.extrapolated = True
    elif framework.stack == "torchtune" and re.search(r"(?<!no )\bcompile", text.lower()):
        read.settings["stack"] = "compile"
    return framework
