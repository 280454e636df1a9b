"""Frozen 4-bit weights: transformers' bitsandbytes layers, with bitsandbytes' own operations.

transformers replaces the linear layers, and bitsandbytes quantizes each weight as it is loaded. Two things
differ from a machine with a GPU: ``gemm_4bit`` runs the Python code of its CUDA kernel, so that the kernel's
temporaries are recorded; and each quantized weight is a plain parameter with bitsandbytes' attributes, since
torch cannot make ``Params4bit`` from a fake tensor.
"""

import logging
from typing import Any
from unittest.mock import patch

import bitsandbytes
import bitsandbytes._ops
import torch
import transformers
from bitsandbytes.functional import name2qmap, quantize_4bit
from transformers.integrations.bitsandbytes import replace_with_bnb_linear
from transformers.quantizers.base import HfQuantizer

from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.frameworks.surroundings import here
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.recorder import WRITTEN_IN_PYTHON

logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # no warning about each cast to fp16

METHODS = ("nf4", "nf4dq")
BLOCK_SIZE = 64
"""Number of weights that share a scale: the default of ``Params4bit``."""


def _cuda_backend() -> tuple[Any, dict[str, Any]]:
    """Return bitsandbytes' CUDA backend, imported as if a driver existed, and its kernels, keyed by name."""
    kernels: dict[str, Any] = {}

    def register_kernel(name: str, device: str) -> Any:
        return lambda function: kernels.setdefault(name, function)

    with (
        patch.object(torch._C, "_cuda_getCurrentRawStream", lambda *_: 0, create=True),
        patch.object(bitsandbytes._ops, "register_kernel", register_kernel),
    ):
        from bitsandbytes.backends.cuda import ops
    return ops, kernels


cuda_backend, cuda_kernels = _cuda_backend()


def _dequantized_linear(
    activations: Any, packed: Any, shape: Any, absmax: Any, blocksize: int, quant_type: str, bias: Any = None,
    absmax_8bit: Any = None, absmax_code: Any = None, absmax_offset: Any = None,
) -> Any:  # fmt: skip
    """Replacement for ``_dequant_linear_fallback`` in bitsandbytes' CUDA backend, without native calls."""
    operations = torch.ops.bitsandbytes
    if absmax_8bit is not None:
        absmax = operations.dequantize_blockwise.default(absmax_8bit, absmax, absmax_code, 256, torch.float32)
        absmax = absmax + absmax_offset
    weight = operations.dequantize_4bit.default(
        packed, absmax, blocksize, quant_type, shape, activations.dtype
    )
    rows = activations.reshape(-1, activations.shape[-1])
    product = torch.mm(rows, weight.t()) if bias is None else torch.addmm(bias, rows, weight.t())
    return product.view(*activations.shape[:-1], -1)


if cuda_kernels:  # empty if bitsandbytes has found a real GPU, where its own kernels run
    cuda_backend._dequant_linear_fallback = _dequantized_linear
    cuda_backend._gemm_4bit_kernel_impl = lambda *args, **kwargs: (
        NotImplemented
    )  # one kernel, recorded as the operation itself
    WRITTEN_IN_PYTHON[torch.ops.bitsandbytes.gemm_4bit.default] = cuda_kernels["bitsandbytes::gemm_4bit"]


def config_of(recipe: Recipe, compute_dtype: Any) -> Any:
    """Return transformers' quantization config for a recipe with nf4 or nf4dq."""
    return transformers.BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=compute_dtype,
        bnb_4bit_use_double_quant=recipe.quantization == "nf4dq",
        # FSDP shards parameters together only if they have the same type.
        **({"bnb_4bit_quant_storage": compute_dtype} if recipe.sharding == "fsdp" else {}),
    )  # fmt: skip


def quantize(model: Any, recipe: Recipe, compute_dtype: Any) -> Any:
    """Move a meta-device model to the GPU, quantizing it module by module as loading does; return it."""
    if not cuda_kernels:
        raise CannotTraceError(
            f"recipe {recipe.name!r}: bitsandbytes was imported in this process for a real GPU; trace "
            "quantized recipes in a separate process"
        )
    for cached in (name2qmap.clear, cuda_backend._gpu_dispatch_props.cache_clear):
        cached()  # may hold values from an earlier trace for another GPU
    cuda_backend._gemm_4bit_use_custom_cuda.cache_clear()
    if recipe.sharding == "fsdp":
        here().undo.enter_context(
            patch.object(bitsandbytes.nn.modules, "fix_4bit_weight_quant_state_from_module", _found_again)
        )
    config = config_of(recipe, compute_dtype)
    kept = HfQuantizer.get_modules_to_not_convert(model, None, model._keep_in_fp32_modules)
    dtypes = {name: parameter.dtype for name, parameter in model.named_parameters()}
    with patch.object(bitsandbytes.nn.modules, "Params4bit", _plain_parameter):
        model = replace_with_bnb_linear(model, modules_to_not_convert=kept, quantization_config=config)
    loaded: dict[Any, Any] = {}  # so that tied parameters are loaded once
    for path, module in model.named_modules():
        for name, parameter in list(module._parameters.items()):
            if parameter is not None and parameter not in loaded:
                kept_dtype = dtypes.get(f"{path}.{name}", compute_dtype)
                loaded[parameter] = _loaded(module, name, parameter, kept_dtype)
            module._parameters[name] = loaded.get(parameter)
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = torch.empty(buffer.shape, dtype=buffer.dtype, device="cuda")
    return _marked_quantized(model, config)


def quantize_really(model: Any, recipe: Recipe, compute_dtype: Any, device: str) -> Any:
    """Move a meta-device model to ``device``, with random weights quantized layer by layer; return it."""
    config = config_of(recipe, compute_dtype)
    kept = HfQuantizer.get_modules_to_not_convert(model, None, model._keep_in_fp32_modules)
    model = replace_with_bnb_linear(model, modules_to_not_convert=kept, quantization_config=config)
    for module in model.modules():
        if isinstance(module, bitsandbytes.nn.Linear4bit):
            old = module.weight
            value = torch.empty(old.shape, dtype=compute_dtype, device=device).normal_(std=INITIAL_DEVIATION)
            module.weight = type(old)(value, requires_grad=False, **vars(old)).to(device)
            module._is_hf_initialized = True
    _move_from_meta(model, device)
    model.initialize_weights()
    return _marked_quantized(model, config)


INITIAL_DEVIATION = 0.02
"""Standard deviation of random weights: transformers' default unless a config states another value."""


def _move_from_meta(model: Any, device: str) -> None:
    """Allocate the tensors that are still on the meta device; tied parameters remain one tensor."""
    moved: dict[Any, Any] = {}
    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            for name, tensor in tensors.items():
                if tensor is None or tensor.device.type != "meta":
                    continue
                if tensor not in moved:
                    empty = torch.empty_like(tensor, device=device)
                    is_parameter = isinstance(tensor, torch.nn.Parameter)
                    moved[tensor] = torch.nn.Parameter(empty, tensor.requires_grad) if is_parameter else empty
                tensors[name] = moved[tensor]


def _marked_quantized(model: Any, config: Any) -> Any:
    """Set the attributes by which transformers and PEFT recognize a quantized model."""
    model.is_loaded_in_4bit = True
    model.is_quantized = model.config._is_quantized = True
    model.quantization_method = config.quantization_method()
    return model


def _found_again(module: Any) -> None:
    """Restore, as bitsandbytes does, the state that a layer keeps for a weight gathered by FSDP."""
    module.weight.quant_state = module.quant_state


def _plain_parameter(
    data: Any, requires_grad: bool = False, blocksize: int = BLOCK_SIZE, **attributes: Any
) -> Any:
    """Return a parameter with the attributes of bitsandbytes' own parameters."""
    parameter = torch.nn.Parameter(data, requires_grad and data.is_floating_point())
    parameter.blocksize = blocksize  # type: ignore[attr-defined]
    for name, value in attributes.items():
        if name != "module":
            setattr(parameter, name, value)
    return parameter


def _loaded(module: Any, name: str, parameter: Any, dtype: Any) -> Any:
    """Return a parameter as loading puts it on the GPU; a quantized layer's weight is stored in 4 bits."""
    value = torch.empty(parameter.shape, dtype=dtype, device="cuda")
    if name == "weight" and isinstance(module, bitsandbytes.nn.Linear4bit):
        return _in_4_bits(module, value)
    return torch.nn.Parameter(value, requires_grad=parameter.requires_grad)


def _in_4_bits(module: Any, value: Any) -> Any:
    """Quantize a weight as bitsandbytes.nn.Params4bit does when moved to a GPU; the weight may be fake."""
    old = module.weight
    packed, state = quantize_4bit(
        value, blocksize=old.blocksize, compress_statistics=old.compress_statistics,
        quant_type=old.quant_type, quant_storage=old.quant_storage,
    )  # fmt: skip
    new = torch.nn.Parameter(packed, requires_grad=False)
    for name in ("blocksize", "compress_statistics", "quant_type", "quant_storage"):
        setattr(new, name, getattr(old, name))
    new.quant_state = module.quant_state = state
    new.bnb_quantized = True
    return new
