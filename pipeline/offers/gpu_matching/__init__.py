"""From a seller's label to a GPU of the catalogue.

``lexer`` cuts a label into words and words into pieces, ``sentences`` keeps the words that matter and
remembers them, ``reading`` finds models, form factors, memories and counts among the pieces, ``instances``
knows machine names, ``habits`` what a provider means by a bare name, ``context`` reads the seller's other
columns, ``narrow`` and ``settle`` decide which card of the catalogue that can only be, and ``identify``
puts it all together.
"""

from pipeline.offers.gpu_matching.identify import LabelKind, identify
from pipeline.offers.gpu_matching.settle import Identity

__all__ = ["Identity", "LabelKind", "identify"]
