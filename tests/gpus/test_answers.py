"""The card that a label and the columns beside it name: answers.csv, and whole answers.

The table asks every limit of the matcher on it and on each side of it; ``about`` names what a group of rows
shows. An answer is a card or, if there is none, the status."""

from typing import Any

from pipeline.gpus import Identity, catalogue, identify
from pipeline.gpus.candidates import by_form_factor
from tests.gpus.tables import Row, mistakes


def _answer(row: Row) -> dict[str, object]:
    found = identify(
        row["label"],
        provider=row["provider"],
        kind="instance_type" if row["kind"] == "instance_type" else "gpu_name",
        context=row["context"],
        gpu_count=float(row["gpu_count"]) if row["gpu_count"] else None,
    )
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


ANSWERS: dict[str, Identity] = {
    "2x A100 SXM4 80GB": Identity(
        "matched",
        gpu_id="a100-sxm-80gb",
        vendor="nvidia",
        model="A100",
        form_factor="SXM",
        memory_gb=80,
        gpu_count=2,
        rule="label+form_factor+memory",
        confidence="certain",
        candidates=("a100-sxm-80gb",),
    ),
    "inf2.48xlarge": Identity(
        "not_a_gpu",
        vendor="aws",
        model="Inferentia2",
        memory_gb=32,
        gpu_count=12,
        rule="instance_type+not_a_gpu",
        confidence="certain",
    ),
    "3x Foo 9000": Identity("unknown", gpu_count=3, rule="no_known_model"),
    "4x RTX 6000": Identity(
        "ambiguous",
        vendor="nvidia",
        gpu_count=4,
        rule="label+model_open",
        candidates=(
            "quadro-rtx-6000",
            "rtx-6000-ada",
            "rtx-pro-6000-workstation",
            "rtx-pro-6000-max-q",
            "rtx-pro-6000-server",
        ),
    ),
    "1x T4 (g2-standard-4)": Identity(
        "ambiguous", vendor="nvidia", rule="instance_type_contradicts", candidates=("l4", "t4")
    ),
    "2x RTX 4090 48GB": Identity(
        "ambiguous",
        vendor="nvidia",
        model="RTX 4090",
        gpu_count=2,
        rule="memory_of_one_or_of_all",
        candidates=("rtx-4090", "rtx-4090-laptop", "rtx-4090-48gb"),
    ),
}


def test_whole_answers() -> None:
    found = {label: identify(label) for label in ANSWERS}
    assert [label for label, expected in ANSWERS.items() if found[label] != expected] == []
    assert identify("RTX PRO 6000 MI300X").vendor is None


def test_the_candidates_of_an_open_answer() -> None:
    """What contradicts decides which cards stay possible."""
    a100, h100 = (tuple(c.gpu_id for c in catalogue.cards_of_model()[m]) for m in ("A100", "H100"))
    asked: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
        ("8x A100 SXM4", {}, ("a100-sxm-40gb", "a100-sxm-80gb", "a100-sxm-64gb")),
        ("A100 PCIe 64GB", {}, ("a100-sxm-64gb",)),
        ("A100 PCIe 55GB", {}, a100),
        ("A100 1g.3gb", {}, a100),
        ("H100 Laptop", {}, h100),
        ("H100 A100", {}, (*h100, *a100)),
        ("2x p5.48xlarge", {"gpu_count": 3}, ("h100-sxm-80gb",)),
        ("H100", {"context": {"vram_gb": 24}, "gpu_count": 0.25}, ("h100-nvl-94gb", "h100-sxm-96gb")),
        ("L40S", {"context": "gpu_name=NVIDIA L40"}, ("l40s", "l40")),
        ("A100", {"context": {"name": "A100 SXM4", "model": "A100 PCIe"}}, a100[:5]),
    ]
    wrong = [
        (label, found.candidates)
        for label, more, candidates in asked
        if (found := identify(label, **more)).candidates != candidates or found.status != "ambiguous"
    ]
    assert wrong == []


def test_the_cards_of_a_stated_form_factor() -> None:
    asked: list[tuple[str, set[str], set[str], bool]] = [
        ("RTX PRO 4500", set(), {""}, False),
        ("RTX PRO 4500", {"Server"}, {"Server"}, True),
        ("RTX PRO 4500", {"PCIe"}, {""}, False),
        ("RTX 4000 Ada", set(), {""}, False),
        ("RTX 3070", {"Laptop"}, {"Laptop"}, True),
        ("RTX 3070", set(), {""}, False),
        ("H100", set(), {"SXM", "PCIe", "NVL"}, False),
        ("H100", {"OAM"}, set(), False),
        ("L40S", {"OAM"}, {"PCIe"}, False),
    ]
    wrong = []
    for model, stated, form_factors, is_decisive in asked:
        cards, decided = by_form_factor(list(catalogue.cards_of_model()[model]), stated)
        if ({card.form_factor for card in cards}, decided) != (form_factors, is_decisive):
            wrong.append((model, stated, cards, decided))
    assert wrong == []
