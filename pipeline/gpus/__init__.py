"""From a seller's label, such as "8x NVIDIA H100 SXM5 80GB", to a GPU in the catalogue.

1. ``catalogue``: the cards (catalog/gpus.csv), the spellings of their names (gpu_aliases.csv), the words that
   may stand beside a name (label_words.csv), and what each provider's ambiguous names mean
   (provider_gpus.csv).
2. ``tokens``: cuts a label into words, and words into tokens of a known kind.
3. ``label``: parses the tokens and the seller's other columns into models, form factors, memories and counts.
4. ``instance_types``: translates a machine name, such as "p5.48xlarge", into a GPU label
   (instance_types.csv).
5. ``candidates``: finds the cards of a model that agree with everything the seller states.
6. ``match``: decides whether a label means one card, is ambiguous, is unknown, or does not name a GPU. A word
   that is not known can change the card, so it leaves the label ambiguous.
"""

from pipeline.gpus.match import Identity, identify

__all__ = ["Identity", "identify"]
