"""Training frameworks, found by their names in free text, with defaults from catalog/frameworks.yaml."""

import re
from functools import cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from pipeline.catalog.source_config import read_yaml
from pipeline.home import paths
from pipeline.model.denials import affirmed, denied
from pipeline.model.model_names import RunError
from pipeline.model.run_settings import RunRow


class Framework(BaseModel):
    """A framework's names and defaults; None means no default, or a default that differs by recipe."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(min_length=1)
    pattern: re.Pattern[str]
    """The pattern that identifies the framework in (lower-case) text."""
    stack: str = Field(min_length=1)
    mixture_stack: str | None = None
    """The stack of mixtures of experts, where the framework has its own code for them."""
    source: str = Field(min_length=1)
    """The place where the defaults are documented."""
    loss_kernel: str | None = None
    checkpointing: Literal["none", "sac", "full"] = "none"
    offload: Literal["act", "cpu"] | None = None
    lora_dropout: float | None = Field(None, ge=0, lt=1)
    full_precision: Literal["bf16", "amp", "deepspeed_bf16"] = "bf16"
    """The precision policy for training all weights in 16 bits."""
    sharding: Literal["fsdp"] | None = None
    """How weights are spread over GPUs; None means as usual for the stack and method."""
    kbit_upcast: float | None = None
    unprepared_since: str | None = Field(None, pattern=r"^\d{4}-\d{2}$")
    """The month from which norms, embeddings, head and adapters of 4-bit models are in 16 bits."""
    casts_back: bool = False
    """True if, under bf16, a 4-bit model's embeddings and head are cast back to bf16 after preparation."""
    quantization: Literal["nf4", "nf4dq"] = "nf4"
    """The form of frozen 4-bit weights."""


@cache
def frameworks() -> list[Framework]:
    """Return the frameworks in matching order. Raises CatalogError naming the row and the value."""
    return read_yaml(paths.CATALOG_DIR / "frameworks.yaml", list[Framework])


# Preference and reward trainers hold a reference model, generate text, or keep the logits of several answers.
_NOT_FINE_TUNING = re.compile(
    r"(?:"
    r"(?<![a-z])(dpo|orpo|kto|simpo|cpo|ipo|grpo|gspo|ppo|rloo|rlhf|rlvr|dapo|gkd|bco|xpo|nash-?md|prm)(?![a-z])"
    r"|(dpo|orpo|kto|simpo|cpo|grpo|ppo|rloo|gkd|bco|xpo|nash-?md|prm|reward)[ _-]?(trainer|config)"
    r"|\breward\b|\bnemo[- ]rl\b|\bverl\b|openrlhf|\btrlx\b|knowledge distillation"
    r"|sentence[-_ ]?transformers?|cross-?encoder|forsequenceclassification)"
)

# Losses under their trainers' names, which a row may add to a framework. Like Liger's loss, cut cross
# entropy and TRL's chunked loss never hold more than one chunk's logits. torchtune's CEWithChunkedOutputLoss
# and LinearCrossEntropyLoss keep each chunk's logits for the backward pass. TEParallelCrossEntropy is NeMo
# AutoModel's.
_LOSS_KERNELS = tuple(
    (re.compile(names), kernel)
    for names, kernel in (
        (r"chunked[ _-]nll|cut[ _-]?cross[ _-]?entropy|\bcce\b|liger", "liger"),
        (r"fused[ _-]?linear[ _-]?(?:ce\b|cross)", "liger"),
        (r"chunked[ _]?(?:cross|ce(?:loss)?\b|output|loss)|linear[ _]?(?:cross[ _]?entropy|ce\b)", "chunked"),
        (r"te[ _]?parallel[ _]?(?:cross|ce\b)", "fused"),
    )
)
# Liger's kernels for norms, MLPs and rotary embeddings, and not only its loss.
_LIGER_KERNELS = re.compile(r"\b(?:(?:use|enable)_)?liger(?!_fused_linear)")
_EAGER = re.compile(r"\buncompiled\b|\beager\b(?! att)")
# Not compiled: a list of what other rows keep ("packing/compile"), and the time of compiling.
_COMPILED = re.compile(r"(?<![/\w])(?:torch[._ ]?)?compil(?:ed?|ing)(?![a-z])(?! time)")


def reject_other_methods(*texts: str) -> None:
    """Raise RunError for preference and reinforcement learning, distillation and encoder training: no formula
    describes these methods."""
    for text in texts:
        found = affirmed(_NOT_FINE_TUNING, text.lower())
        if found:
            raise RunError(
                f"'{text}' is preference or reinforcement learning or another objective "
                f"({found.group(0)}): not estimated, and its figures are not those of supervised fine-tuning"
            )


def find_framework(text: str, source: str = "") -> Framework | None:
    """Return the framework named in the text, if known; unknown (fused) MLPerf engines count as Megatron."""
    lowered = text.lower()
    for framework in frameworks():
        if affirmed(framework.pattern, lowered):
            return framework
    if source.lower().startswith("mlperf"):
        return find_framework("megatron")
    return None


def set_framework(read: RunRow, text: str, source: str, notes: str, is_mixture: bool) -> Framework | None:
    """Set the stack and loss kernel from free text. Return the framework; if unknown, note an assumption."""
    framework = find_framework(text, source)
    stack = framework.stack if framework else "hf"
    kernel = framework.loss_kernel if framework else None
    said = f"{text} | {notes}".lower()
    if framework and framework.mixture_stack and is_mixture:
        stack, kernel = framework.mixture_stack, None
    if stack == "hf" and affirmed(_LIGER_KERNELS, said):
        stack = "liger"
    is_titan = kernel == "titan"
    if affirmed(_EAGER, said) or denied(_COMPILED, said):
        # torchtitan's loss then holds fp32 logits and their gradients: cross_entropy_loss calls pred.float().
        stack = "torchtune" if stack == "compile" else stack
        kernel = "fp32std" if is_titan else kernel
    elif affirmed(_COMPILED, said):
        stack = "compile" if framework is None or stack == "torchtune" else stack
    elif is_titan:
        read.assumptions.append(("stack", "compile, which torchtitan leaves open"))
    if kernel != "litgpt":
        kernel = next((each for names, each in _LOSS_KERNELS if affirmed(names, said)), kernel)
    if is_titan and kernel == "chunked":
        # torchtitan runs the head, the loss and their backward pass on one chunk after the other.
        kernel = "liger"
    read.settings["stack"], read.settings["loss_kernel"] = stack, kernel
    if framework is None:
        why = f"'{text}' is not known" if text.strip() else "none given"
        read.assumptions.append(("framework", f"{why}, read as the Transformers Trainer: bands doubled"))
        read.extrapolated = True
    return framework
