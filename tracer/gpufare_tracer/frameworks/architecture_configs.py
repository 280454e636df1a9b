"""The transformers config of a traced model, made from a config.json, and the model made from that config.

Parameter counts agree with catalog/models.csv to within 0.04% for every model there
(tests/steps/test_architecture_configs.py): the catalogue rounds some counts, and omits biases and the norms
of queries and keys.
"""

import re
from contextlib import nullcontext
from typing import Any

import transformers

from gpufare_tracer.architectures import architecture_of, catalogue_configs, check_config
from gpufare_tracer.errors import CannotTraceError
from gpufare_tracer.result import TraceShape

DEPTHS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers")
"""Fields in which a config.json can state the number of layers."""

UNBUILDABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError)
"""Errors that transformers raises for inconsistent sizes; fake tensors raise a RuntimeError instead."""


def empty_model(config: Any, dtype: Any, attention: str, *, is_initialized: bool = False) -> Any:
    """Return the model that a config describes, on the current device, with random or uninitialized weights.

    Raises ``CannotTraceError`` if transformers does not implement ``attention`` for the model.
    """
    try:
        from transformers.initialization import no_init_weights
    except ModuleNotFoundError:  # transformers 4
        from transformers.modeling_utils import no_init_weights

    with nullcontext() if is_initialized else no_init_weights():
        try:
            return model_class(config).from_config(config, dtype=dtype, attn_implementation=attention)
        except CannotTraceError:
            raise
        except UNBUILDABLE as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            advice = ""
            if isinstance(error, ValueError) and re.search("attention|attn", reason, re.IGNORECASE):
                advice = " (recipe: attention: eager, which transformers takes for such a model by itself)"
            raise CannotTraceError(
                f"{type(config).__name__} with attention {attention!r}: {reason}{advice}"
            ) from error


def tie_weights(model: Any, shape: TraceShape) -> None:
    """Tie the head to the embeddings if the published weights are tied.

    T5's config always says that the weights are tied, although newer T5 checkpoints have a separate head.
    """
    import torch

    model.tie_weights()
    if model.config.is_encoder_decoder and not architecture_of(shape).tied_embeddings:
        model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))


def config_of(shape: TraceShape) -> Any:
    """Return the transformers config for a shape, at the depth to trace.

    Raises ``CannotTraceError`` if transformers does not know the model_type or cannot read the config.json.
    """
    given, layers = shape.config, shape.layers
    if given is None:
        architecture_of(shape)  # refuses a model that the catalogue lacks
        given = catalogue_configs()[shape.model]["config"]
        if layers and "num_decoder_layers" in given:
            layers = max(1, layers // 2)  # the catalogue counts encoder and decoder layers together
    check_config(shape.model, given)
    kind = given.get("model_type")
    if kind not in transformers.CONFIG_MAPPING:
        raise CannotTraceError(
            f"config of {shape.model!r}: transformers {transformers.__version__} knows no model_type "
            f"{kind!r}; trace a model of the same sizes whose code is in transformers"
        )
    raw = dict(cut(given, layers) if layers else given)
    raw.pop("quantization_config", None)  # the recipe decides whether weights are quantized
    try:
        config = transformers.CONFIG_MAPPING[kind].from_dict(raw)
    except Exception as error:  # a model's config may raise any error
        raise CannotTraceError(f"config of {shape.model!r}: {type(error).__name__}: {error}") from error
    config.use_cache = False
    return config


def cut(config: dict[str, Any], layers: int) -> dict[str, Any]:
    """Return a config.json with fewer layers; lists with one entry per layer are cut as well."""
    if isinstance(config.get("text_config"), dict):
        return config | {"text_config": cut(config["text_config"], layers)}
    depths = {name: layers for name in DEPTHS if config.get(name) is not None} or {DEPTHS[0]: layers}
    full = max((config[name] for name in depths if name in config), default=None)
    lists = {
        name: value[:layers]
        for name, value in config.items()
        if isinstance(value, list) and full is not None and len(value) == full
    }
    return config | lists | depths


def model_class(config: Any) -> Any:
    """Return the transformers class for a config's model, which is a decoder or an encoder-decoder.

    Raises ``CannotTraceError`` for the config of any other kind of model.
    """
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

    auto = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    if type(config) in auto._model_mapping:
        return auto
    raise CannotTraceError(
        f"model_type {config.model_type!r} is no language model of transformers {transformers.__version__}: "
        "trace a training step of it with --step module:function"
    )


def note_of(shape: TraceShape) -> str:
    """Return a note on how the traced code differs from the model's own code; empty if it does not differ."""
    return "" if shape.config else str(catalogue_configs()[shape.model].get("note", ""))
