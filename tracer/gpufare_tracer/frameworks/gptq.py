"""An emulation of GPTQ's 4-bit layers: their buffers and their matrix product.

Neither auto-gptq nor gptqmodel installs without a CUDA compiler. Modelled on auto_gptq/nn_modules/qlinear in
AutoGPTQ/AutoGPTQ, whose Triton kernel unpacks a weight in both the forward and the backward pass, and keeps
nothing (qlinear_tritonv2.py, triton_utils/dequant.py). Adapters are PEFT's own GPTQLoraLinear.
"""

from typing import Any

import torch
from peft import LoraConfig
from peft.tuners.lora.gptq import GPTQLoraLinear
from torch.amp import custom_bwd, custom_fwd

from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.work import count_launch

BITS = 4
PER_WORD = 32 // BITS
GROUP_SIZE = 128
"""Number of inputs that share a scale and a zero point."""


class GptqLinear(torch.nn.Linear):
    """A linear layer with 4-bit weights, at 0.52 bytes per weight."""

    def __init__(self, inputs: int, outputs: int, bias: Any, device: Any) -> None:
        torch.nn.Module.__init__(self)
        self.in_features, self.out_features = inputs, outputs
        groups = -(-inputs // GROUP_SIZE)
        word = {"dtype": torch.int32, "device": device}
        self.register_parameter("weight", None)
        self.register_buffer("qweight", torch.empty(inputs // PER_WORD, outputs, **word))
        self.register_buffer("qzeros", torch.empty(groups, outputs // PER_WORD, **word))
        self.register_buffer("scales", torch.empty(groups, outputs, dtype=torch.float16, device=device))
        self.register_buffer("g_idx", torch.empty(inputs, **word))
        self.register_buffer("wf", torch.empty(1, PER_WORD, **word))
        self.register_parameter("bias", bias)

    def forward(self, x: Any) -> Any:
        """Return the layer's output, in the type of its input."""
        rows = x.reshape(-1, x.shape[-1])
        out = _UnpackedProduct.apply(rows, self).to(x.dtype).reshape(*x.shape[:-1], self.out_features)
        return out if self.bias is None else out + self.bias

    def dequantized(self) -> Any:
        """Return the dense weight of shape (in, out), as the Triton kernel writes it."""
        out = torch.empty(self.in_features, self.out_features, dtype=torch.float16, device=self.scales.device)
        count_launch(self.g_idx, self.scales, self.qweight, self.qzeros, out)
        return out

    def shard_as(self, dtype: Any) -> None:
        """Turn the packed weights into parameters of a type that FSDP shards together with the other weights.

        Modelled on fms_acceleration_peft/autogptq_utils.py in foundation-model-stack/fms-acceleration. Scales
        are not sharded.
        """
        for name in ("qweight", "qzeros"):
            packed = self._buffers.pop(name)
            setattr(self, name, torch.nn.Parameter(packed.view(dtype), requires_grad=False))


class _UnpackedProduct(torch.autograd.Function):
    """Emulates QuantLinearFunction of triton_utils/dequant.py, which keeps no activations."""

    @staticmethod
    @custom_fwd(device_type="cuda")
    def forward(ctx: Any, rows: Any, layer: GptqLinear) -> Any:
        ctx.layer = layer
        return rows @ layer.dequantized().to(rows.dtype)

    @staticmethod
    @custom_bwd(device_type="cuda")
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient @ ctx.layer.dequantized().to(gradient.dtype).t(), None


def quantize(model: Any, sharded_as: Any = None) -> Any:
    """Load a meta-device model as if from a GPTQ checkpoint: with 4-bit linear layers, except for the head.

    ``sharded_as`` is the type of the packed weights under FSDP. Raises ``CannotTraceError`` for a mixture of
    experts, whose weights transformers keeps in one tensor.
    """
    if any(parameter.dim() == 3 for parameter in model.parameters()):
        raise CannotTraceError(
            f"{type(model).__name__} keeps its experts in one tensor, which GPTQ leaves in 16 bits: "
            "quantization: none"
        )
    head = model.get_output_embeddings()
    for path, module in list(model.named_modules()):
        if type(module) is torch.nn.Linear and module is not head:
            parent, _, name = path.rpartition(".")
            bias = module.bias
            layer = GptqLinear(module.in_features, module.out_features, bias, "meta")
            setattr(model.get_submodule(parent), name, layer)
    model = model.to_empty(device="cuda")
    model.requires_grad_(False)
    if sharded_as is not None:
        for module in model.modules():
            if isinstance(module, GptqLinear):
                module.shard_as(sharded_as)
    return model


def adapted_by_peft(config: LoraConfig) -> LoraConfig:
    """Return a LoRA config that makes PEFT use its own layer for GPTQ."""
    config._register_custom_module({GptqLinear: GPTQLoraLinear})
    return config
