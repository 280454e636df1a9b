"""Splitting a label into words and tokens, and the facts of the parsed tokens."""

import pytest

from pipeline.gpus.label import parse_label
from pipeline.gpus.tokens import Kind, split_words, tokens_of_word


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("NVIDIA(R) H100™", ["nvidia", "h100"]),
        ("H100(tm)", ["h100"]),
        ("H100·80GB – SXM", ["h100", "80gb", "sxm"]),
        ("2×H100", ["2xh100"]),
        ("Max-Q RTX 5000", ["maxq", "rtx", "5000"]),
        ("RTX 5000 Max Q", ["rtx", "5000", "maxq"]),
        ("MIG 1g.5gb", ["mig", "1g5gb"]),
        ("MIG 1g 5gb", ["mig", "1g5gb"]),
        ("1g.5gb", ["1g5gb"]),
        ("a100.80gb", ["a100", "80gb"]),
        ("v1.5gb 1.5gb", ["v1", "5gb", "1.5gb"]),
        ("A100_80GB/8 [spot]", ["a100", "80gb", "8", "spot"]),
        ("", []),
    ],
)
def test_words_of_a_label(label: str, words: list[str]) -> None:
    assert split_words(label) == words


@pytest.mark.parametrize(
    ("word", "tokens"),
    [
        ("h100", "WORD:h100"),
        ("h100t", "UNKNOWN:h100t"),
        ("t", "UNKNOWN:t"),
        ("x", "WORD:x"),
        ("ampere", "ARCHITECTURE:ampere"),
        ("hopper", "ARCHITECTURE:hopper"),
        ("turing", "ARCHITECTURE:turing"),
        ("lovelace", "ARCHITECTURE:ada"),
        ("hbm3", "MEMORY_TYPE:hbm3"),
        ("sxm5", "FORM_FACTOR:SXM"),
        ("ws", "FORM_FACTOR:Workstation"),
        ("we", "FORM_FACTOR:Workstation"),
        ("tesla", "FILLER:tesla"),
        ("16vcpu", "HOST:16vcpu"),
        ("2nvme", "HOST:2nvme"),
        ("24", "NUMBER:24=24"),
        ("24gb", "MEMORY:24gb=24"),
        ("1.5gb", "MEMORY:1.5gb=1.5"),
        ("24576mib", "MEMORY:24576mib=24"),
        ("8gpus", "COUNT:8gpus=8"),
        ("12q", "SLICE:12q=12"),
        ("123q", "UNKNOWN:123q"),
        ("1g5gb", "SLICE:1g5gb=5/1"),
        ("3g40gb", "SLICE:3g40gb=40/3"),
        # Composed words.
        ("h100sxm5x8", "WORD:h100 FORM_FACTOR:SXM COUNT:x8=8"),
        ("8xh100", "COUNT:8x=8 WORD:h100"),
        ("12h100", "COUNT:12=12 WORD:h100"),
        ("123h100", "NUMBER:123=123 WORD:h100"),
        ("100l4", "NUMBER:100=100 WORD:l4"),
        ("h100h100", "WORD:h100 WORD:h100"),
        ("nvidiah100", "FILLER:nvidia WORD:h100"),
        ("h100turing", "WORD:h100 ARCHITECTURE:turing"),
        ("h100hbm3", "WORD:h100 MEMORY_TYPE:hbm3"),
        ("2xlarge", "UNKNOWN:2xlarge"),
        ("8xl", "UNKNOWN:8xl"),
        ("x1000", "UNKNOWN:x1000"),
        # An X of the name, or one before a count.
        ("a100x", "WORD:a100x"),
        ("a100x8", "WORD:a100 COUNT:x8=8"),
        ("mi300x8", "WORD:mi300 COUNT:x8=8"),
        ("mi300x100", "WORD:mi300 COUNT:x100=100"),
        ("mi325x", "WORD:mi325x"),
        ("mi325x8", "WORD:mi325x COUNT:8=8"),
        ("mi325x16", "WORD:mi325x COUNT:16=16"),
        ("mi325x100", "UNKNOWN:mi325x100"),
        # Numbers in names: a model's after a brand, a size after a model.
        ("rtx4090", "WORD:rtx NUMBER:4090=4090"),
        ("gtx1080ti", "WORD:gtx NUMBER:1080=1080 WORD:ti"),
        ("4070s", "NUMBER:4070=4070 WORD:s"),
        ("4070sti", "NUMBER:4070=4070 WORD:s WORD:ti"),
        ("4090d", "NUMBER:4090=4090 WORD:d"),
        ("40s", "UNKNOWN:40s"),
        ("gpu16", "WORD:gpu NUMBER:16=16"),
        ("gpu1", "UNKNOWN:gpu1"),
        ("tesla10", "FILLER:tesla NUMBER:10=10"),
        ("tesla1", "UNKNOWN:tesla1"),
        ("a10080gb", "WORD:a100 MEMORY:80gb=80"),
        ("a10080", "WORD:a100 NUMBER:80=80"),
        ("a10090", "UNKNOWN:a10090"),
        ("h100nvl94", "UNKNOWN:h100nvl94"),
        ("rtxpro6000se", "WORD:rtx WORD:pro NUMBER:6000=6000 FORM_FACTOR:Server"),
        ("rtxpro6000we", "UNKNOWN:rtxpro6000we"),
        # Longer words are not searched for tokens.
        ("h100" * 10, " ".join(["WORD:h100"] * 10)),
        ("h100" * 9 + "a100x", "UNKNOWN:" + "h100" * 9 + "a100x"),
        ("h100" * 11, "UNKNOWN:" + "h100" * 11),
    ],
)
def test_tokens_of_a_word(word: str, tokens: str) -> None:
    def shown(kind: Kind, text: str, value: float, slices: int) -> str:
        return f"{kind.name}:{text}" + (f"={value:g}" if value else "") + (f"/{slices}" if slices else "")

    assert " ".join(shown(t.kind, t.text, t.value, t.compute_slices) for t in tokens_of_word(word)) == tokens


@pytest.mark.parametrize(
    ("label", "models"),
    [
        ("H100", ("H100",)),
        ("RTX 4000 SFF Ada", ("RTX 4000 Ada",)),
        ("RTX PRO 6000", ("RTX PRO 6000",)),
        ("RTX 4090 D", ("RTX 4090 D",)),
        ("GeForce RTX 4070 Ti SUPER", ("RTX 4070 Ti SUPER",)),
        ("4070 super ti", ("RTX 4070 Ti SUPER",)),
        ("4070 s ti", ("RTX 4070 Ti SUPER",)),
        ("4070 ti s", ("RTX 4070 Ti SUPER",)),
        ("4070 s", ("RTX 4070 SUPER",)),
        ("Q RTX 8000", ("Quadro RTX 8000",)),
        ("QRTX 8000", ("Quadro RTX 8000",)),
        ("TitanX (Pascal)", ("Titan X (Pascal)",)),
        ("Titan X", ("Titan X (Pascal)",)),
        ("RTX 6000", ("Quadro RTX 6000", "RTX 6000 Ada", "RTX PRO 6000")),
        ("7900 XTX", ("RX 7900 XTX",)),
        ("W7900", ("Radeon Pro W7900",)),
        ("Radeon VII", ("Radeon VII",)),
        ("2000 Ada", ("RTX 2000 Ada",)),
        ("4090", ("RTX 4090",)),
        # A weak spelling next to a strong one is another word.
        ("A2 instance with H100", ("H100",)),
        ("H100 (4090 MHz)", ("H100",)),
        ("H100 (4090 D)", ("H100",)),
        ("A2", ("A2",)),
        ("Quadro", ()),
        ("Super Ti", ()),
        ("Titan", ()),
        ("Q", ()),
        ("580", ()),
        ("RX 580", ("RX 580",)),
        ("QRTX", ()),
        ("CPU only", ()),
    ],
)
def test_models_of_a_label(label: str, models: tuple[str, ...]) -> None:
    assert parse_label(label)[0].models == models


def test_two_models_conflict_unless_a_spelling_shares_them() -> None:
    assert parse_label("H100 and A100")[0].conflict
    shared = parse_label("RTX 6000 RTX PRO 6000")[0]
    assert (shared.conflict, shared.models) == (False, ("RTX PRO 6000",))
    assert not parse_label("H100 H100")[0].conflict


@pytest.mark.parametrize(
    "strong", ["4070 Ti", "Titan X", "TitanV", "Q RTX 8000", "QRTX 8000", "W7900", "7900 XTX", "A6000"]
)
def test_a_strong_spelling_next_to_another_model_is_a_conflict(strong: str) -> None:
    assert parse_label(f"H100 {strong}")[0].conflict


@pytest.mark.parametrize(
    ("label", "adjacent", "other"),
    [
        ("H100 80GB", (80,), ()),
        ("H100 80 GB", (80,), ()),
        ("80GB H100", (80,), ()),
        ("H100 SXM5 HBM3 Hopper 80GB", (80,), ()),
        ("H100 81920 MB", (80,), ()),
        ("H100 in Ashburn 80GB", (), (80,)),
        ("80GB in Ashburn H100", (), (80,)),
        ("64GB system H100 80GB", (80,), (64,)),
        ("H100 80GB system 64GB", (80,), (64,)),
        ("RTX 80GB A6000", (80,), ()),
    ],
)
def test_memories_of_a_label(label: str, adjacent: tuple[float, ...], other: tuple[float, ...]) -> None:
    parsed, _ = parse_label(label)
    assert (parsed.adjacent_memories, parsed.other_memories) == (adjacent, other)


@pytest.mark.parametrize(
    ("label", "mentions_host", "memories"),
    [
        ("H100 80GB / 64 vCPU / 512 GB RAM", True, (80,)),
        ("H100 80GB 512GB RAM", True, (80,)),
        ("H100 80GB 2 TB NVMe", True, (80,)),
        ("H100 80GB 64vcpu", True, (80,)),
        ("H100 80GB ECC", False, (80,)),
        ("H100 80GB VRAM", False, (80,)),
        ("H100 80GB, US, RAM on request", False, (80,)),
    ],
)
def test_what_a_label_states_about_the_host(
    label: str, mentions_host: bool, memories: tuple[float, ...]
) -> None:
    parsed, _ = parse_label(label)
    assert (parsed.mentions_host, parsed.adjacent_memories, parsed.other_memories) == (
        mentions_host,
        memories,
        (),
    )


@pytest.mark.parametrize(
    ("label", "counts"),
    [
        ("8x H100", {8}),
        ("8 x H100", {8}),
        ("H100 x8", {8}),
        ("H100 x 8", {8}),
        ("H100 x Xeon", set()),
        ("H100 v 4", set()),
        ("x 8 H100", set()),
        ("8 GPUs H100", {8}),
        ("2x node 8x H100", {2, 8}),
        ("8xH100 CPU", {8}),
        ("8x CPU", {8}),
    ],
)
def test_counts_of_a_label(label: str, counts: set[float]) -> None:
    assert parse_label(label)[1] == counts


@pytest.mark.parametrize(
    ("label", "numbers"),
    [("A100-80", (80,)), ("80-A100", (80,)), ("A100 PCIe 80", (80,)), ("A100 in Ashburn 80", ())],
)
def test_bare_numbers_of_a_label(label: str, numbers: tuple[float, ...]) -> None:
    assert parse_label(label)[0].bare_numbers == numbers


@pytest.mark.parametrize(
    ("label", "mentions_mig", "slice_gb", "slices"),
    [
        ("A100 MIG", True, None, 0),
        ("A100 MIG 3g.20gb", True, 20, 3),
        ("A100 3g.20gb", True, 20, 3),
        ("A10-12Q", True, 12, 0),
        ("A100 spot", False, None, 0),
        ("A100 somewhere", False, None, 0),
    ],
)
def test_slices_of_a_label(label: str, mentions_mig: bool, slice_gb: float | None, slices: int) -> None:
    parsed, _ = parse_label(label)
    assert (parsed.mentions_mig, parsed.slice_gb, parsed.compute_slices) == (mentions_mig, slice_gb, slices)


def test_the_letter_s_is_a_form_factor_of_the_pro_cards_only() -> None:
    assert parse_label("RTX PRO 6000 S")[0].form_factors == {"Server"}
    assert parse_label("S RTX PRO 6000")[0].form_factors == frozenset()
    assert parse_label("H100 S")[0].form_factors == frozenset()
    assert parse_label("RTX PRO 6000 V")[0].form_factors == frozenset()


@pytest.mark.parametrize(
    ("label", "model"),
    [
        ("TPU v5e pod", "TPU v5e"),
        ("TPU pod", "TPU"),
        ("Cloud AI 100 card", "Cloud AI 100"),
        ("AI 100", "Cloud AI 100"),
        ("inf2 or trn1", "Inferentia2"),
    ],
)
def test_other_accelerators(label: str, model: str) -> None:
    accelerator = parse_label(label)[0].accelerator
    assert accelerator is not None
    assert accelerator.model == model
