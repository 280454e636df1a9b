"""GPU labels to catalogue GPUs: ``identify`` is all that other rooms need."""

from pipeline.offers.labels.identify import LabelKind, identify
from pipeline.offers.labels.settle import Identity

__all__ = ["Identity", "LabelKind", "identify"]
