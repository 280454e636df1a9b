"""GPU labels to catalogue GPUs: ``identify`` is all that other rooms need."""

from pipeline.offers.labels.settle import Identity, LabelKind, identify

__all__ = ["Identity", "LabelKind", "identify"]
