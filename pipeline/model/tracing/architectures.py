"""The architecture that is traced: a catalogue model or a config.json, as the sizes frameworks ask for."""

import csv
import re
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict

from pipeline.contracts import paths
from pipeline.model.tracing.errors import CannotTraceError
from pipeline.model.tracing.result import TraceShape

MAX_SIZE = 1 << 24
"""No published model has a larger width, vocabulary or count; a step of one would not end."""
MAX_LAYERS = 1024
_SIZE = re.compile(r"(^|_)(n|d|num)_|_(size|dim|layers?|heads?|rank|experts)$")
_SHOWN_CHARACTERS = 60


class Architecture(BaseModel):
    """The sizes of a language model; widths in features."""

    model_config = ConfigDict(frozen=True)

    model: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied_embeddings: bool
    gated_mlp: bool = True
    experts: int = 1
    experts_active: int = 1


@cache
def _catalogue() -> dict[str, dict[str, str]]:
    with (paths.CATALOG_DIR / "models.csv").open(newline="", encoding="utf-8") as file:
        return {row["model"]: row for row in csv.DictReader(file)}


def architecture_of(shape: TraceShape) -> Architecture:
    """The sizes of a shape's model, cut to ``shape.layers`` where given.

    Raises ``CannotTraceError`` for an id that the catalogue lacks and a config.json without its sizes.
    """
    found = _of_config(shape.model, shape.config) if shape.config else _of_catalogue(shape.model)
    return found.model_copy(update={"layers": shape.layers}) if shape.layers else found


def _of_catalogue(model: str) -> Architecture:
    row = _catalogue().get(model)
    if row is None:
        raise CannotTraceError(
            f"model {model!r} is not in catalog/models.csv; give its config.json with --config"
        )
    return Architecture.model_validate({name: row[name] for name in Architecture.model_fields if name in row})


def hugging_face_id(shape: TraceShape) -> str:
    """The checkpoint that a catalogue model is, as organisation/name; its own id where a config was given."""
    row = {} if shape.config else _catalogue().get(shape.model, {})
    return row.get("hf_id") or shape.model


def _of_config(model: str, config: dict[str, Any]) -> Architecture:
    check_config(model, config)
    text = config.get("text_config") or config
    try:
        hidden, heads = (
            _first(text, "hidden_size", "n_embd", "d_model"),
            _first(text, "num_attention_heads", "n_head", "n_heads", "num_heads"),
        )
        return Architecture(
            model=model, hidden=hidden, heads=heads,
            layers=_first(text, "num_hidden_layers", "n_layer", "n_layers", "num_layers", most=MAX_LAYERS),
            intermediate=_first(text, "intermediate_size", "n_inner", "ffn_dim", "d_ff", default=4 * hidden),
            kv_heads=_first(text, "num_key_value_heads", default=heads),
            head_dim=_first(text, "head_dim", "d_kv", default=hidden // heads),
            vocab=_first(text, "vocab_size"),
            tied_embeddings=bool(config.get("tie_word_embeddings", text.get("tie_word_embeddings", False))),
            experts=_first(text, "num_local_experts", "num_experts", "n_routed_experts", default=1, least=0),
            experts_active=_first(text, "num_experts_per_tok", default=1, least=0),
        )  # fmt: skip
    except KeyError as error:
        raise CannotTraceError(f"config of {model!r} has none of {error.args[0]}") from error
    except ValueError as error:
        raise CannotTraceError(f"config of {model!r}: {error}") from error


def check_config(model: str, config: dict[str, Any]) -> None:
    """Refuse a config.json, which anybody may have written, whose fields are not of the type of their names.

    Raises ``CannotTraceError`` naming the field.
    """
    for name, kind, words in (("model_type", str, "text"), ("text_config", dict, "an object")):
        if config.get(name) is not None and not isinstance(config[name], kind):
            raise CannotTraceError(f"config of {model!r}: {name} is {_shown(config[name])}, not {words}")
    if config.get("quantization_config") is not None:
        raise CannotTraceError(
            f"config of {model!r}: quantization_config is not read; remove it and choose a recipe with "
            "quantization, e.g. --recipe hf-qlora"
        )
    for part in (config, config.get("text_config") or {}):
        for name, value in part.items():
            if _SIZE.search(name) and isinstance(value, int | float | str) and not isinstance(value, bool):
                try:
                    _size(name, value, least=0)
                except ValueError as error:
                    raise CannotTraceError(f"config of {model!r}: {error}") from error


def _first(
    config: dict[str, Any], *names: str, default: int | None = None, least: int = 1, most: int = MAX_SIZE
) -> int:
    for name in names:
        if config.get(name) is not None:
            return _size(name, config[name], least, most)
    if default is None:
        raise KeyError(", ".join(names))
    return _size(names[0], default, least, most)


def _size(name: str, value: Any, least: int = 1, most: int = MAX_SIZE) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} is {_shown(value)}, not a whole number from {least} to {most}")
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
