"""The card that a label and the columns beside it name: answers.csv, and whole answers.

The table asks every limit of the matcher on it and on each side of it; ``about`` names what a group of rows
shows. An answer is a card or, if there is none, the status."""

from typing import Any

from pipeline.gpus import Identity, catalogue, identify
from tests.gpus.tables import Row, identified, mistakes


def _answer(row: Row) -> dict[str, object]:
    found = identified(row, row["label"])
    card = catalogue.card_by_id().get(found.gpu_id or "")
    if card is not None:
        facts = (card.vendor, card.model, card.form_factor or None, (card.gpu_id,))
        assert (found.status, found.confidence == "none") == ("matched", False)
        assert (found.vendor, found.model, found.form_factor, found.candidates) == facts
    return {
        "answer": found.gpu_id or found.status,
        "rule": found.rule,
        "confidence": "" if found.confidence == "none" else found.confidence,
        "found_count": found.gpu_count,
        "fraction": found.gpu_fraction,
        "memory_gb": found.memory_gb,
    }


def test_labels_and_their_columns_have_the_answers_of_the_table() -> None:
    assert mistakes("answers.csv", _answer) == []


ANSWERS: dict[str, dict[str, Any]] = {
    "inf2.48xlarge": {
        "status": "not_a_gpu", "vendor": "aws", "model": "Inferentia2", "memory_gb": 32, "gpu_count": 12,
        "rule": "instance_type+not_a_gpu", "confidence": "certain",
    },
    "1x T4 (g2-standard-4)": {
        "status": "ambiguous", "vendor": "nvidia", "rule": "instance_type_contradicts",
        "candidates": ("l4", "t4"),
    },
    "2x RTX 4090 48GB": {
        "status": "ambiguous", "vendor": "nvidia", "model": "RTX 4090", "gpu_count": 2,
        "rule": "memory_of_one_or_of_all", "candidates": ("rtx-4090", "rtx-4090-laptop", "rtx-4090-48gb"),
    },
}  # fmt: skip


def test_whole_answers() -> None:
    found = {label: identify(label) for label in ANSWERS}
    assert found == {label: Identity(**facts) for label, facts in ANSWERS.items()}
    assert identify("RTX PRO 6000 MI300X").vendor is None


def test_the_candidates_of_an_open_answer() -> None:
    """The part of a label that contradicts another decides which cards remain possible."""
    a100, h100 = (tuple(c.gpu_id for c in catalogue.cards_of_model()[m]) for m in ("A100", "H100"))
    asked: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
        ("8x A100 SXM4", {}, ("a100-sxm-40gb", "a100-sxm-80gb", "a100-sxm-64gb")),
        ("A100 PCIe 64GB", {}, ("a100-sxm-64gb",)),
        ("A100 PCIe 55GB", {}, a100),
        ("A100 1g.3gb", {}, a100),
        ("H100 Laptop", {}, h100),
        ("H100 A100", {}, (*h100, *a100)),
        ("2x p5.48xlarge", {"gpu_count": 3}, ("h100-sxm-80gb",)),
        ("H100", {"context": {"vram_gb": 24}, "gpu_count": 0.25}, h100[2:5]),
        ("L40S", {"context": "gpu_name=NVIDIA L40"}, ("l40s", "l40")),
        ("A100", {"context": {"name": "A100 SXM4", "model": "A100 PCIe"}}, a100[:5]),
    ]
    wrong = [
        (label, found.candidates)
        for label, more, candidates in asked
        if (found := identify(label, **more)).candidates != candidates or found.status != "ambiguous"
    ]
    assert wrong == []
