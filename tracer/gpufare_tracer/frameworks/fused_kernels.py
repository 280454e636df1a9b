"""An emulation of the memory use of Unsloth's fused kernels on transformers' and PEFT's modules.

Unsloth does not run here, because importing it needs a GPU. Modelled on unsloth/kernels in unslothai/unsloth:
fast_lora.py (a layer with its adapter keeps only its input; an MLP keeps input, gate and up; the input's
gradient overwrites the input), rms_layernorm.py (keeps the input and one number per row; the input's gradient
overwrites the output's), rope_embedding.py (works in place, in both passes), and cross_entropy_loss.py
(the gradient of the logits overwrites the logits). foundation-model-stack/fms-acceleration contains copies of
these kernels (plugins/fused-ops-and-kernels). The emulated kernels count as Triton kernels.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch.amp import custom_bwd, custom_fwd

from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.recipes import Recipe
from gpufare_tracer.work import count_launch

LARGEST_VOCAB_OF_ONE_BLOCK = 65_536
"""Largest number of logits that fit in one Triton block (MAX_FUSED_SIZE in unsloth/kernels/utils.py)."""
QKV, MLP = ("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj", "down_proj")
SWIGLU = ("SiLU", "SiLUActivation")


class Adapter(NamedTuple):
    """A frozen layer with its LoRA adapter."""

    layer: Any
    a: Any
    b: Any
    scale: float


def apply(model: Any, recipe: Recipe, undo: ExitStack) -> None:
    """Fuse the parts of an adapted model that Unsloth fuses; ``undo`` restores transformers' functions.

    Raises ``CannotTraceError`` for an architecture unlike Llama's, which Unsloth would not fuse. Layers whose
    adapters use dropout are left to PEFT, as in Unsloth.
    """
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    attentions = [m for m in inner.modules() if hasattr(m, "q_proj") and hasattr(m, "o_proj")]
    module = __import__(type(inner).__module__, fromlist=["_"])
    if not attentions or not hasattr(module, "apply_rotary_pos_emb"):
        raise CannotTraceError(
            f"Unsloth's kernels fuse models built as Llama is, {type(inner).__name__} is not: kernels: eager"
        )
    undo.enter_context(patch.object(module, "apply_rotary_pos_emb", rotary_in_place))
    for norm in (m for m in inner.modules() if type(m).__name__.endswith("RMSNorm")):
        norm.forward = _norm_forward(norm)
    if recipe.method != "full" and recipe.lora_dropout == 0:
        for attention in attentions:
            _fuse_attention(attention)
        for mlp in (m for m in inner.modules() if all(_adapter(getattr(m, name, None)) for name in MLP)):
            if type(mlp.act_fn).__name__ in SWIGLU:
                mlp.forward = _mlp_forward(mlp)
    if recipe.loss == "framework":
        inner.loss_function = causal_loss


def _adapter(module: Any) -> Adapter | None:
    """Return a LoRA layer's parts; None for any other module."""
    if not getattr(module, "lora_A", None) or not hasattr(module, "base_layer"):
        return None
    name = module.active_adapters[0]
    return Adapter(
        module.base_layer, module.lora_A[name].weight, module.lora_B[name].weight, module.scaling[name]
    )


def dense(layer: Any, dtype: Any) -> Any:
    """Return a layer's weight of shape (out, in); a new, dense tensor if the weight is stored in 4 bits."""
    if hasattr(layer, "dequantized"):
        return layer.dequantized().t()
    state = getattr(layer.weight, "quant_state", None)
    if state is None:
        return layer.weight.to(dtype)
    from bitsandbytes.functional import dequantize_4bit

    return dequantize_4bit(layer.weight, state)


def _product(x: Any, adapter: Adapter) -> Any:
    """Apply a layer and its adapter to x; the adapter's product is added to the layer's output in place."""
    weight = dense(adapter.layer, x.dtype)
    out = torch.matmul(x, weight.t())
    del weight
    out.addmm_(x @ adapter.a.t().to(x.dtype), adapter.b.t().to(x.dtype), alpha=adapter.scale)
    bias = adapter.layer.bias
    return out if bias is None else out.add_(bias)


def _adapter_gradients(x: Any, gradient: Any, adapter: Adapter) -> tuple[Any, Any]:
    """Return the gradients of an adapter's two matrices, in the type of the activations."""
    a, b = adapter.a.to(x.dtype), adapter.b.to(x.dtype)
    d_a, d_b = torch.empty_like(a.t()), torch.empty_like(b.t())
    d_a.addmm_(x.t(), gradient @ b, alpha=adapter.scale, beta=0)
    d_b.addmm_(a @ x.t(), gradient, alpha=adapter.scale, beta=0)
    return d_a.t(), d_b.t()


def _input_gradient(gradient: Any, adapter: Adapter, over: Any = None, to: Any = None) -> Any:
    """Return the gradient of a layer's input: new, written ``over`` a tensor, or added ``to`` a tensor."""
    weight = dense(adapter.layer, gradient.dtype)
    if to is not None:
        out = to.addmm_(gradient, weight)
    elif over is not None and over.dtype is gradient.dtype:
        out = torch.matmul(gradient, weight, out=over)
    else:
        out = gradient @ weight
    del weight
    a, b = adapter.a.to(gradient.dtype), adapter.b.to(gradient.dtype)
    return out.addmm_(gradient @ b, a, alpha=adapter.scale)


def _rows(tensor: Any) -> Any:
    return tensor.reshape(-1, tensor.shape[-1])


class _FusedLinears(torch.autograd.Function):
    """Layers that share one input, with their adapters; only the input is kept (LoRA_QKV and LoRA_W)."""

    @staticmethod
    @custom_fwd(device_type="cuda")
    def forward(ctx: Any, x: Any, layers: tuple[Any, ...], scales: tuple[float, ...], *weights: Any) -> Any:
        adapters = _adapters(layers, scales, weights)
        ctx.layers, ctx.scales = layers, scales
        ctx.save_for_backward(x, *weights)
        return tuple(_product(_rows(x), adapter).view(*x.shape[:-1], -1) for adapter in adapters)

    @staticmethod
    @custom_bwd(device_type="cuda")
    def backward(ctx: Any, *gradients: Any) -> Any:
        x, *weights = ctx.saved_tensors
        rows, adapters = _rows(x), _adapters(ctx.layers, ctx.scales, weights)
        gradients = tuple(_rows(gradient) for gradient in gradients)
        d_weights: list[Any] = []
        for gradient, adapter in zip(gradients, adapters, strict=True):
            d_weights += _adapter_gradients(rows, gradient, adapter)
        d_x = _input_gradient(gradients[0], adapters[0], over=rows if len(adapters) > 1 else None)
        for gradient, adapter in zip(gradients[1:], adapters[1:], strict=True):
            d_x = _input_gradient(gradient, adapter, to=d_x)
        return d_x.view(x.shape), None, None, *d_weights


class _FusedMlp(torch.autograd.Function):
    """A gated MLP with its adapters; input, gate and up are kept, and gradients overwrite them (LoRA_MLP)."""

    @staticmethod
    @custom_fwd(device_type="cuda")
    def forward(ctx: Any, x: Any, layers: tuple[Any, ...], scales: tuple[float, ...], *weights: Any) -> Any:
        gate_layer, up_layer, down_layer = _adapters(layers, scales, weights)
        ctx.layers, ctx.scales = layers, scales
        gate, up = _product(_rows(x), gate_layer), _product(_rows(x), up_layer)
        hidden = torch.empty_like(gate)
        count_launch(gate, up, hidden)
        ctx.save_for_backward(x, gate, up, *weights)
        return _product(hidden, down_layer).view(x.shape)

    @staticmethod
    @custom_bwd(device_type="cuda")
    def backward(ctx: Any, gradient: Any) -> Any:
        x, gate, up, *weights = ctx.saved_tensors
        gate_layer, up_layer, down_layer = _adapters(ctx.layers, ctx.scales, weights)
        rows, gradient = _rows(x), _rows(gradient)
        hidden = _input_gradient(gradient, down_layer)
        count_launch(hidden, gate, up)  # writes hidden over its gradient, d_up over gate, d_gate over up
        d_down = _adapter_gradients(hidden, gradient, down_layer)
        d_up = _adapter_gradients(rows, gate, up_layer)
        d_gate = _adapter_gradients(rows, up, gate_layer)
        d_x = _input_gradient(gate, up_layer, over=rows)
        d_x = _input_gradient(up, gate_layer, to=d_x)
        return d_x.view(x.shape), None, None, *d_gate, *d_up, *d_down


def _adapters(layers: tuple[Any, ...], scales: tuple[float, ...], weights: Any) -> list[Adapter]:
    pairs = zip(weights[::2], weights[1::2], strict=True)
    return [Adapter(layer, a, b, s) for layer, s, (a, b) in zip(layers, scales, pairs, strict=True)]


def _apply(function: Any, x: Any, adapters: list[Adapter]) -> Any:
    layers, scales = tuple(a.layer for a in adapters), tuple(a.scale for a in adapters)
    return function.apply(x, layers, scales, *(w for a in adapters for w in (a.a, a.b)))


def _mlp_forward(mlp: Any) -> Callable[[Any], Any]:
    adapters = [_adapter(getattr(mlp, name)) for name in MLP]
    return lambda x: _apply(_FusedMlp, x, [a for a in adapters if a is not None])


def _fuse_attention(attention: Any) -> None:
    """Compute query, key and value in the query's call, and fuse the output projection separately."""
    qkv = [_adapter(getattr(attention, name)) for name in QKV]
    if all(qkv):
        made: dict[str, Any] = {}

        def query(x: Any) -> Any:
            out, made["k_proj"], made["v_proj"] = _apply(_FusedLinears, x, [a for a in qkv if a is not None])
            return out

        attention.q_proj.forward = query
        for name in QKV[1:]:
            getattr(attention, name).forward = lambda _, name=name: made.pop(name)
    output = _adapter(attention.o_proj)
    if output is not None:
        attention.o_proj.forward = lambda x: _apply(_FusedLinears, x, [output])[0]


class _FusedRmsNorm(torch.autograd.Function):
    """Keeps the input and one number per row; the input's gradient overwrites the output's gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any) -> Any:
        rows = _rows(x)
        out = torch.empty(rows.shape, dtype=x.dtype, device=x.device)
        inverse = torch.empty(rows.shape[0], dtype=torch.float32, device=x.device)
        count_launch(out, rows, weight, inverse)
        ctx.save_for_backward(x, weight, inverse)
        return out.view(x.shape)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        x, weight, inverse = ctx.saved_tensors
        count_launch(gradient, x, weight, inverse)
        d_weight = torch.empty_like(weight) if ctx.needs_input_grad[1] else None
        return gradient.view(x.shape), d_weight


def _norm_forward(norm: Any) -> Callable[[Any], Any]:
    return lambda x: _FusedRmsNorm.apply(x, norm.weight)


class _RotaryInPlace(torch.autograd.Function):
    """Rotates queries or keys of shape (batch, positions, heads, width) in place, in both passes."""

    @staticmethod
    def forward(ctx: Any, x: Any, cos: Any, sin: Any) -> Any:
        ctx.cos, ctx.sin = cos, sin
        count_launch(x, cos, sin)
        return x.view(x.shape)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        gradient = gradient.reshape(-1, gradient.shape[-2] * gradient.shape[-1]).view(gradient.shape)
        count_launch(gradient, ctx.cos, ctx.sin)
        return gradient, None, None


def rotary_in_place(q: Any, k: Any, cos: Any, sin: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
    """Replacement for transformers' apply_rotary_pos_emb on shapes (batch, heads, positions, width)."""
    q, k = (_RotaryInPlace.apply(t.transpose(1, 2), cos, sin).transpose(1, 2) for t in (q, k))
    return q, k


class _FusedCrossEntropy(torch.autograd.Function):
    """Keeps the logits and one number per row; the gradient overwrites the logits."""

    @staticmethod
    def forward(ctx: Any, logits: Any, labels: Any) -> Any:
        rows, vocab = logits.shape
        losses = torch.empty(rows, dtype=torch.float32, device=logits.device)
        blocks = -(-vocab // LARGEST_VOCAB_OF_ONE_BLOCK)
        shape = (rows,) if blocks == 1 else (rows, blocks)
        log_sums = torch.empty(shape, dtype=torch.float32, device=logits.device)
        count_launch(logits, losses, log_sums, labels)
        if blocks > 1:
            log_sums = torch.logsumexp(log_sums, dim=1)
            losses += log_sums
        ctx.save_for_backward(logits, log_sums, labels)
        return losses

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        logits, log_sums, labels = ctx.saved_tensors
        count_launch(logits, gradient, log_sums, labels)
        return logits, None


def causal_loss(logits: Any, labels: Any, vocab_size: int, **_: Any) -> Any:
    """Replacement for transformers' ForCausalLMLoss: shifts labels, and neither copies nor casts logits."""
    shifted = torch.empty_like(labels)
    shifted[..., :-1] = labels[..., 1:]
    shifted[..., -1] = -100
    return cross_entropy(logits.view(-1, vocab_size), shifted.view(-1))


def cross_entropy(logits: Any, labels: Any) -> Any:
    """Replacement for torch's cross-entropy on logits (rows, vocabulary), which their gradient overwrites."""
    losses = _FusedCrossEntropy.apply(logits, labels)
    return losses.sum() / torch.count_nonzero(labels != -100)
