"""Changes of a label that must not change the answer, or never the card."""

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from pipeline.gpus import catalogue, identify

NVIDIA = ["H100 SXM5 80GB", "H100 PCIe 80GB", "H100 NVL 94GB", "A100 SXM4 40GB", "A100 PCIe 80GB",
          "V100 SXM2 32GB", "H200 SXM 141GB", "B200 180GB", "GH200 96GB", "L40S 48GB", "L4 24GB", "A10G 24GB",
          "T4 16GB", "A40 48GB", "RTX 4090 24GB", "RTX 4070 Ti SUPER 16GB", "RTX 4060 Ti 8GB",
          "RTX A6000 48GB", "RTX 6000 Ada 48GB", "RTX PRO 6000 Server 96GB", "Quadro RTX 8000 48GB",
          "GTX 1080 Ti 11GB"]  # fmt: skip
COUNT_FRAMES = ["{n}x {label}", "{n} x {label}", "({n}x) {label}", "{label} x{n}", "{label} x {n}",
                "{n}× {label}", "{label} ({n}x)"]  # fmt: skip
MIG_FRAMES = ["{label}mig", "{label} MIG", "{label}-mig", "MIG {label}", "{label} (MIG)", "{label}_MIG"]
OTHER_WORDS = [" spot", " on-demand", " - US East", " running in Mumbai", " (secure cloud)",
               " / 16 vCPU / 64GB RAM"]  # fmt: skip
labels = st.sampled_from([*NVIDIA, "MI300X 192GB", "RX 7900 XTX 24GB"])
separators = st.sampled_from([" ", "-", "_", "  ", " - ", "/", ", "])
counts = st.integers(min_value=1, max_value=16)


@st.composite
def recased(draw: st.DrawFn, label: str) -> str:
    upper = draw(st.lists(st.booleans(), min_size=len(label), max_size=len(label)))
    return "".join(char.upper() if up else char.lower() for char, up in zip(label, upper, strict=True))


@given(st.data(), labels, separators, st.sampled_from(["", "(R)", "(TM)", "®", "™", "(tm)"]))
def test_case_separators_and_trademark_signs_do_not_matter(
    data: st.DataObject, label: str, separator: str, sign: str
) -> None:
    first, *rest = label.split(" ")
    written = data.draw(recased(separator.join([first + sign, *rest])))
    assert identify(written) == identify(label)


@given(labels, separators, st.sampled_from(OTHER_WORDS))
def test_the_order_and_words_about_something_else_do_not_matter(
    label: str, separator: str, words: str
) -> None:
    *name, memory = label.split(" ")
    assert identify(separator.join([memory, *name])).gpu_id == identify(label).gpu_id
    assert identify(label + words).gpu_id == identify(label).gpu_id


@given(labels, counts, st.sampled_from(COUNT_FRAMES))
def test_a_count_around_the_label_is_read_and_changes_nothing_else(
    label: str, count: int, frame: str
) -> None:
    found = identify(frame.format(n=count, label=label))
    assert (found.gpu_id, found.gpu_count) == (identify(label).gpu_id, count)


@given(labels, st.integers(min_value=1, max_value=300), st.sampled_from(["{label} {gb}GB", "{gb}GB {label}"]))
@example("H100 SXM5 80GB", 40, "{label} {gb}GB")
@example("L40S 48GB", 24, "{gb}GB {label}")
def test_a_contradicting_memory_never_changes_the_card(label: str, gigabytes: int, frame: str) -> None:
    """A size that the card itself is known by (boards, shares of a nominal size) contradicts nothing."""
    before = identify(label)
    found = identify(frame.format(label=label, gb=gigabytes))
    assert found.gpu_id in (before.gpu_id, None)
    assert found.status in ("matched", "ambiguous", "unknown")
    assume(gigabytes not in {card.memory_gb for card in catalogue.cards() if card.model == before.model})
    assert identify(label, context={"vram_gb": gigabytes}).gpu_id in (before.gpu_id, None)


@settings(max_examples=300)
@given(
    st.text(alphabet=st.characters(), max_size=60) | st.text(alphabet="aAhHlL0134 -_.xXgGbB()/", max_size=30)
)
@example("\ud800 H100")
def test_any_text_has_an_answer(text: str) -> None:
    found = identify(text)
    assert (found.gpu_id is not None) == (found.status == "matched")


@given(st.data(), labels, st.sampled_from(MIG_FRAMES))
def test_a_slice_without_a_size_is_never_a_whole_card(data: st.DataObject, label: str, frame: str) -> None:
    for whole in (label, label.rsplit(" ", 1)[0]):
        found = identify(data.draw(recased(frame.format(label=whole))))
        assert found.status in ("ambiguous", "unknown")


@given(labels, counts, counts)
def test_a_count_that_contradicts_the_label_is_never_matched(label: str, stated: int, count: int) -> None:
    assume(abs(stated - count) > 0.15 * max(stated, count))
    assert identify(f"{stated}x {label}", gpu_count=count).status == "ambiguous"
