"""The corrections from own runs as the assumptions of an answer give them (the macro own_members)."""

from collections.abc import Iterable, Mapping
from typing import Any

QUANTITIES = {"memory": "memory", "speed": "tokens per second"}
"""The quantities that own runs correct, and how each is called in words."""
_CORRECTED = " corrected x "
MEMBERS = frozenset(f"own_{quantity}_{fact}" for quantity in QUANTITIES for fact in ("factor", "runs"))


def corrections(taken: Mapping[str, Any]) -> list[str]:
    """Return how own runs corrected an answer, a text for each quantity; ``taken``: its assumptions."""
    return [
        f"{said}{_CORRECTED}{taken[f'own_{quantity}_factor']:.3g} from {_runs(taken[f'own_{quantity}_runs'])}"
        for quantity, said in QUANTITIES.items()
        if f"own_{quantity}_factor" in taken
    ]


def corrections_among(texts: Iterable[str]) -> list[str]:
    """Return those of some texts that ``corrections`` returned."""
    return [text for text in texts if _CORRECTED in text]


def _runs(count: int) -> str:
    return "1 run of yours" if count == 1 else f"{count} runs of yours"
