"""Labels that providers publish, with the card that each means, reviewed by hand: labels.csv.

They come from price pages and APIs or, if the context names it, SkyPilot's catalogue. The context also
has remarks of the review, which the matcher must ignore."""

import pytest

from benchmarks.labels import clear_caches
from pipeline.gpus import catalogue, instance_types
from tests.gpus.tables import identified, rows

LABELS = rows("labels.csv")
CARDS = catalogue.card_by_id()


def test_every_label_is_matched_to_the_card_that_its_seller_means() -> None:
    assert len(LABELS) > 1000
    wrong = []
    for row in LABELS:
        found = identified(row, row["raw_label"])
        count = float(row["expected_gpu_count"] or "nan")
        is_card = (found.gpu_id if found.status == "matched" else found.status) == row["expected"]
        if not is_card or (row["expected_gpu_count"] and found.gpu_count != pytest.approx(count, abs=0.001)):
            wrong.append((row["provider"], row["raw_label"], row["expected"], found))
    assert wrong == []


KNOWN_BY_PROVIDER_ONLY = {
    ("cerebrium", "ADA_L40"),
    ("coreweave", "A100_NVLINK_80GB"),
    ("coreweave", "H100_NVLINK_80GB"),
    ("coreweave", "NVIDIA A100 NVLink"),
    ("spheron", "H100_NVL"),
}
"""Labels that mean another card, or none, than the same words elsewhere."""


def test_a_provider_that_is_not_in_the_tables_gets_no_wrong_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """The matcher has no rules and instance types of any provider."""
    families = instance_types._families("")
    with monkeypatch.context() as patch:
        patch.setattr(catalogue, "provider_rules", lambda provider, upstream=None: ())
        patch.setattr(instance_types, "_families", lambda provider: families)
        clear_caches()
        answers = [(row, identified(row, row["raw_label"])) for row in LABELS]
    clear_caches()
    wrong = {
        (row["provider"], row["raw_label"])
        for row, found in answers
        if found.status == "matched" and not _is_same_card(found.gpu_id or "", row["expected"])
    }
    assert wrong == KNOWN_BY_PROVIDER_ONLY
    is_open = [found.status in ("ambiguous", "unknown") for row, found in answers if row["expected"] in CARDS]
    assert sum(is_open) <= 0.055 * len(is_open)


def _is_same_card(gpu_id: str, expected: str) -> bool:
    """True for the expected card, or the generic card of its model and memory."""
    if expected not in CARDS:
        return False
    found, card = CARDS[gpu_id], CARDS[expected]
    return found == card or (found.generic and (found.model, found.memory_gb) == (card.model, card.memory_gb))
