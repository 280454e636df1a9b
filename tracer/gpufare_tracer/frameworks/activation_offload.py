"""Activation offloading: saved-tensor hooks around a model's layers move stored activations to the host.

Modelled on trl/models/activation_offloading.py (OffloadActivations, without its streams): tensors that
autograd saves in the layers go to the host, except parameters and small tensors; tensors saved in the head
and the loss stay on the GPU. With activation checkpointing, only the inputs of the layers are saved, as in
Unsloth's offloaded checkpointing (unsloth_zoo/gradient_checkpointing.py).
"""

from typing import Any

import torch
from torch.autograd.graph import saved_tensors_hooks

SMALLEST_OFFLOADED_BYTES = 1024
"""The min_offload_size of TRL's OffloadActivations."""


def apply(model: Any) -> None:
    """Offload the tensors that are saved in a model's layers, but not the tensors saved in its head."""
    layers = model.get_base_model() if hasattr(model, "get_base_model") else model
    inner = layers.base_model
    forward = inner.forward

    def offloading(*args: Any, **kwargs: Any) -> Any:
        with saved_tensors_hooks(_to_host, _to_device):
            return forward(*args, **kwargs)

    inner.forward = offloading


def _to_host(tensor: Any) -> Any:
    is_kept = (
        tensor.device.type != "cuda"
        or isinstance(tensor, torch.nn.Parameter)
        or (tensor._base is not None and isinstance(tensor._base, torch.nn.Parameter))
        or tensor.numel() * tensor.element_size() < SMALLEST_OFFLOADED_BYTES
    )
    return tensor if is_kept else (tensor.device, tensor.to("cpu"))


def _to_device(kept: Any) -> Any:
    if isinstance(kept, torch.Tensor):
        return kept
    device, tensor = kept
    return tensor.to(device)
