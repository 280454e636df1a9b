"""From a seller's label to a GPU of the catalogue.

``lexer`` cuts a label into words, ``reading`` finds families, form factors, memories and counts among
them, ``instances`` knows machine names that say nothing themselves, ``context`` reads the seller's other
columns, ``settle`` decides which card of the catalogue that can only be.
"""
