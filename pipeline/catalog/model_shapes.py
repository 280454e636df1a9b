"""Model shapes, with the same columns as catalog/models.csv, and their parameter counts."""

from pydantic import BaseModel, ConfigDict


class Shape(BaseModel):
    """The shape of a model, as in catalog/models.csv but without any names; widths are in features."""

    model_config = ConfigDict(frozen=True)

    layers: int
    hidden: int
    intermediate: int
    gated_mlp: int = 1
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied_embeddings: int = 0
    experts: int = 1
    experts_active: int = 1
    sliding_window: int | None = None
    full_attention_layers: int | None = None
    linear_attention_layers: int | None = None
    kv_latent: int | None = None
    q_latent: int | None = None
    rope_head_dim: int | None = None
    value_head_dim: int | None = None
    shared_intermediate: int | None = None
    dense_layers: int | None = None
    dense_intermediate: int | None = None
    cross_attention_layers: int | None = None
    linear_mixer_params: int | None = None
    extra_linear_params: int | None = None
    extra_embedding_params: int | None = None
    max_context: int | None = None


class Counts(BaseModel):
    """Parameter counts: the total, those in the layers' matrix products, and those active per token."""

    model_config = ConfigDict(frozen=True)

    params_total: int
    params_linear: int
    params_active: int


def counted(shape: Shape) -> Counts:
    """Count a shape's parameters, ignoring biases and assuming two norms per layer."""
    h, linear_layers = shape.hidden, shape.linear_attention_layers or 0
    dense = shape.dense_layers or 0
    matrices = 2 + shape.gated_mlp
    experts_layers = shape.layers - dense
    attention = _attention_params(shape) * (
        shape.layers - linear_layers + (shape.cross_attention_layers or 0)
    )
    always = (
        attention
        + linear_layers * (shape.linear_mixer_params or 0)
        + dense * matrices * h * (shape.dense_intermediate or 0)
        + experts_layers * matrices * h * (shape.shared_intermediate or 0)
        + (experts_layers * h * shape.experts if shape.experts > 1 else 0)
        + (shape.extra_linear_params or 0)
    )
    expert = experts_layers * matrices * h * shape.intermediate
    linear = always + shape.experts * expert
    rest = (
        shape.vocab * h * (2 - shape.tied_embeddings)
        + (2 * shape.layers + 1) * h
        + (shape.extra_embedding_params or 0)
    )
    return Counts(
        params_total=linear + rest,
        params_linear=linear,
        params_active=always + shape.experts_active * expert + rest,
    )


def _attention_params(shape: Shape) -> int:
    """Return the number of parameters in one attention layer whose heads have size ``shape.head_dim``."""
    h, query = shape.hidden, shape.heads * shape.head_dim
    value_dim = shape.value_head_dim or shape.head_dim
    output = shape.heads * value_dim * h
    if shape.kv_latent is None:
        return h * query + h * shape.kv_heads * (shape.head_dim + value_dim) + output
    rope = shape.rope_head_dim or 0
    to_query = h * shape.q_latent + shape.q_latent * query if shape.q_latent else h * query
    to_latent = h * (shape.kv_latent + rope)
    from_latent = shape.kv_latent * shape.heads * (shape.head_dim - rope + value_dim)
    return to_query + to_latent + from_latent + output
