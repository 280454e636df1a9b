"""A user's own models: models.csv in the home, in the columns of catalog/models.csv. Parameters are counted
from the shape when it is read."""

from typing import Any

from pydantic import Field, model_validator

from pipeline.catalog.model_shapes import Shape, check_heads, counted
from pipeline.catalog.own_rows import Name, OwnFile

_TEXT = Field(default=None, max_length=300)


class OwnModel(Shape):
    """A row of a user's own models."""

    model: Name
    title: str | None = _TEXT
    licence: str | None = _TEXT
    hf_id: str | None = _TEXT
    source: str | None = _TEXT

    @model_validator(mode="after")
    def _is_a_shape(self) -> "OwnModel":
        for name in ("layers", "hidden", "intermediate", "heads", "kv_heads", "head_dim", "vocab", "experts"):
            if not 1 <= getattr(self, name) <= 1 << 24:
                raise ValueError(f"{name} is {getattr(self, name)}, not from 1 to {1 << 24}")
        for name in ("gated_mlp", "tied_embeddings"):
            if getattr(self, name) not in (0, 1):
                raise ValueError(f"{name} is {getattr(self, name)}, neither 0 nor 1")
        if not 1 <= self.experts_active <= self.experts:
            raise ValueError(f"experts_active is {self.experts_active}, not from 1 to {self.experts}")
        for name in ("full_attention_layers", "linear_attention_layers", "dense_layers"):
            if not 0 <= (getattr(self, name) or 0) <= self.layers:
                raise ValueError(f"{name} is {getattr(self, name)}, not from 0 to {self.layers}")
        check_heads(self)
        params = counted(self)
        if not 0 < params.params_linear < params.params_total < 1 << 50:
            raise ValueError(f"{params.params_total} parameters are not those of a model")
        return self

    def row(self) -> dict[str, Any]:
        """The row of main.models, its parameters counted."""
        return {
            **self.model_dump(),
            **counted(self).model_dump(),
            "title": self.title or self.model,
            "source": self.source or "your own models",
        }


OWN_MODELS = OwnFile(
    "model",
    OwnModel,
    "model",
    ("model", "title", *Shape.model_fields, "licence", "hf_id", "source"),
    "catalog/models.csv",
    frozenset({"params_total", "params_linear", "params_active"}),
)
