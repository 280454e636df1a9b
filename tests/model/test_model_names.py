"""Models named in free text: those of the catalogue under their many names, and likenesses of others."""

import pytest

from pipeline.model.estimate import Estimator
from pipeline.model.model_names import Architecture, RunError, Size, find_model, vocabulary_of

SIZES_B = {
    "llama-3-8b": 8.03, "llama-3.1-70b": 70.55, "mpt-70b": 64.84, "mistral-7b": 7.24, "llama-4-scout": 107.8,
    "llama-3.3-70b": 70.55, "santacoder": 1.12,
}  # fmt: skip
NAMES: dict[tuple[str, float | None], str] = {
    **{(name, None): "llama-3-8b" for name in (
        "Llama-3-8B", "llama 3 8b", "Llama-3-8B-Instruct", "Llama_3_8B (base)", "llama3-8b")},
    ("Llama-3.1-70B", None): "llama-3.1-70b", ("MPT-70b", 64.9): "mpt-70b",
    ("Mistral-7B", 7.24): "mistral-7b",
    ("Llama-4-Scout-109B-A17B", 108.6): "llama-4-scout", ("santacoder-1.1B", 1.1): "santacoder",
    ("Llama-3.3-70B-Instruct", 70.6): "llama-3.3-70b",
}  # fmt: skip


def test_names_of_models_in_the_catalogue() -> None:
    known = {name: Architecture(name, size * 1e9) for name, size in SIZES_B.items()}
    assert {key: find_model(*key, known) for key in NAMES} == {
        key: (name, None) for key, name in NAMES.items()
    }


LIKENESSES = {
    "Qwen/Qwen2.5-VL-7B-Instruct": "qwen2.5-7b", "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B": "qwen2.5-7b",
    "DeepSeek-R1-Distill-Qwen-14B": "qwen2.5-14b", "DeepSeek-R1-Distill-Llama-8B": "llama-3.1-8b",
    "DeepSeek-R1-0528-Qwen3-8B": "qwen3-8b", "llama-3.1-9b": "llama-3.1-8b", "qwen2-7b": "qwen2.5-7b",
    "qwen3.5-10b": "qwen3.5-9b", "nous-mixtral-8x10b": "mixtral-8x7b", "gemma-9b": "gemma-7b",
    "deepseek-67b": "llama-65b", "weird-49b": "llama-65b", "weird-7b": "mistral-7b-v0.3",
    "weird-35b-a3b": "qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B": "qwen3-30b-a3b",
    "meta-llama/Llama-4-Scout-17B-16E": "llama-4-scout",
    # GPT-3 and its like have MPT's shapes, if GPT-NeoX is not nearer in size.
    "GPT-1.3B": "mpt-1b", "gpt3-6.7b": "mpt-7b", "GPT-3-13B": "mpt-13b", "GPT-20B": "gpt-neox-20b",
    # A near size of another version precedes a far one.
    "llama-2-60b": "llama-2-70b", "mistral-22b": "mistral-small-24b",
}  # fmt: skip


VOCABULARIES = {
    ("gemma-3-0.5b", "smollm2-360m"): "gemma-3", ("gemma-2-0.5b", "smollm2-360m"): "gemma-2",
    ("GPT-5B", "mpt-7b"): "gpt-2", ("deepseek-67b", "llama-65b"): "deepseek-", ("qwen3-8b", "qwen3-4b"): None,
    ("weird-7b", "mistral-7b-v0.3"): None,
}  # fmt: skip


def test_a_vocabulary_is_that_of_the_named_family(estimator: Estimator) -> None:
    """A family's vocabulary is kept where the layers are those of another."""
    for (name, like), family in VOCABULARIES.items():
        found = vocabulary_of(name, like, estimator.models)
        assert (found and found.model.startswith(family or "")) == (family and True), name


def test_a_likeness_is_of_the_family_or_plain(estimator: Estimator) -> None:
    """No size of a family is mistaken for another, nor a dense model for a mixture."""
    found = {name: find_model(name, None, estimator.models)[0] for name in LIKENESSES}
    assert found == LIKENESSES
    for name in ("Qwen/Qwen3-30B-A3B", "meta-llama/Llama-4-Scout-17B-16E"):
        assert find_model(name, None, estimator.models)[1] is None
    like, size = find_model("qwen3-77b", None, estimator.models)
    assert (size, estimator.models[like].experts) == (Size(77, 77), 1)


SIZES = {
    "somebody/new-31b": (31, 31), "new-48b-a3b": (48, 3), "New-397B-A17B": (397, 17),
    "new-1t-a32b": (1000, 32),
    "new-700m": (0.7, 0.7), "new-8x7b": (46.7, 12.9), "new-8x22b": (140.6, 39.2), "new-3b-a30b": (3, 3),
}  # fmt: skip


def test_size_of_an_unknown_model(estimator: Estimator) -> None:
    for name, (total, active) in SIZES.items():
        like, size = find_model(name, None, estimator.models)
        assert size is not None
        assert (size.params_b, size.active_b) == pytest.approx((total, active), rel=0.05), name
        assert (estimator.models[like].experts > 1) == (active < total), name


NOT_DECODERS = (
    "flux-12b", "black-forest-labs/FLUX.1-dev-12b", "mamba-2.8b", "falcon-mamba-7b", "sdxl-2.6b",
    "whisper-1.5b", "stable-diffusion-3.5-8b", "Qwen-Image-20B", "rwkv-7-3b", "jamba-52b-a12b",
    "flan-t5-11b", "ModernBERT-0.4b", "Wan2.2-T2V-14B",
)  # fmt: skip
REFUSED = {
    **dict.fromkeys(("new", "new-e4b", "new-17b-16e"), "its size is not given"), "qwen3": "say which",
    "new-99999b": "not the size of a language model",
    **dict.fromkeys(NOT_DECODERS, "no attention-based language model is like"),
}  # fmt: skip


def test_a_model_of_unknown_size_or_kind_is_refused(estimator: Estimator) -> None:
    wrong = []
    for name, words in REFUSED.items():
        try:
            wrong.append((name, find_model(name, None, estimator.models)))
        except RunError as error:
            if words not in str(error):
                wrong.append((name, str(error)))
    assert wrong == []
