"""Identifies a model named in free text: as a model of known shape, or else by its stated size."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

SAME_SIZE = math.log(1.12)
"""Stated sizes of the same model differ by less than this: they are rounded or omit the embeddings."""
SMALLEST_B, LARGEST_B = 0.001, 10_000.0
"""The smallest and the largest size that a language model may have, in 10^9 parameters."""


class RunError(ValueError):
    """A row cannot be read as a run; the message tells the author of the row why."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """The fields of a model's shape that are needed to find the model by name and size."""

    model: str
    params_total: float
    experts: int = 1
    params_active: float | None = None
    experts_active: int = 1
    expert_params: float = 0.0
    """The parameters of one expert, summed over all layers."""
    hf_id: str | None = None
    is_decoder: bool = True
    """False for an encoder-decoder, whose shape cannot stand in for that of another model."""
    is_hybrid: bool = False
    """True if some layers mix tokens in linear time: such a model stands in only for others of its family."""
    is_plain: bool = True
    """True for a model with a gated MLP, attention over the whole sequence, and keys and values per head."""
    vocab: int = 0

    @property
    def active(self) -> float:
        """The parameters that one token passes through."""
        return self.params_active or self.params_total


@dataclass(frozen=True, slots=True)
class Size:
    """The parameters of a model of unknown shape, in 10^9: all parameters, and those active per token."""

    params_b: float
    active_b: float


_UNITS = {"m": 1e-3, "b": 1.0, "t": 1e3}
_START, _END = r"(?<![a-z0-9.])", r"(?![a-z0-9])"
_NUMBER = r"(\d+(?:\.\d+)?)"
_TIMES = re.compile(rf"{_START}(\d+)x{_NUMBER}b{_END}")
_ACTIVE = re.compile(rf"{_START}a{_NUMBER}([mb]){_END}")
_ACTIVE_OF_EXPERTS = re.compile(rf"{_START}{_NUMBER}b-\d+e{_END}")
_TOTAL = re.compile(rf"{_START}{_NUMBER}([mbt]){_END}")
_EFFECTIVE = re.compile(rf"{_START}e{_NUMBER}b{_END}")
_SIZES = re.compile(rf"-?{_START}(?:\d+x{_NUMBER}b|[ae]?{_NUMBER}[mbt]|\d+e){_END}")


def canonical(name: str) -> str:
    """Return a name in lower case with dashes, without the words that do not affect the shape."""
    text = re.sub(r"\(.*?\)", "", name.lower()).strip()
    text = re.sub(r"[\s_/]+", "-", text)
    text = re.sub(
        r"-(instruct|base|it|pt|chat|hf|like|unsloth|bnb|4bit|bf16|thinking|v\d+\.\d+|25\d\d)(?=-|$)",
        "",
        text,
    )
    return re.sub(r"[^a-z0-9.\-]", "", text).strip("-")


def named_size(name: str) -> tuple[float | None, float | None]:
    """Return the total and active parameters in a canonical name, in 10^9, such as ``30b-a3b`` or ``135m``.

    Effective sizes (``e4b``) and sizes per expert (``8x7b``) are ignored: they do not count parameters.
    """
    active = _ACTIVE.search(name)
    active_b = float(active[1]) * _UNITS[active[2]] if active else None
    if by_experts := _ACTIVE_OF_EXPERTS.search(name):
        return None, float(by_experts[1])
    total = _TOTAL.search(name)
    return float(total[1]) * _UNITS[total[2]] if total else None, active_b


# Models that are not text decoders, or whose layers are unlike those of any model in the catalogue.
_NO_LIKENESS = re.compile(
    r"(?<![a-z0-9])(flux|sdxl|sd-?[1-4](?:\.\d)?|stable-?diffusion|diffusion|pixart|kandinsky|cogvideo\w*|ltx\w*|wan2\w*"
    r"|hunyuan-?(?:video|image|dit)|image|video|dalle?|clip|siglip\d?|vit|dinov?\d?|llada|whisper|wav2vec\d?|hubert"
    r"|musicgen|audio|tts|(?:falcon-?|codestral-?)?mamba-?\d?|jamba|zamba\d?|rwkv\w*|retnet|xlstm|hyena|stripedhyena"
    r"|\w*bert(?:a\w*)?|deberta\w*|electra|\w*t5\w*|bart|ul2|pegasus|nllb)(?![a-z0-9])"
)
# Fine-tuned models whose names contain two families.
_MADE_OF = (("deepseek-r1-distill-qwen", "qwen2.5"), ("deepseek-r1-distill-llama", "llama-3.1"))
# Families with the shapes of another: MPT's are those of GPT-3 (layers, width and heads of all its sizes).
_SHAPED_LIKE = {"gpt": "mpt"}
_FAMILY_WORD = re.compile(r"(?<![a-z])([a-z]+)-?v?(\d+(?:\.\d+)?)?(?![\d.]|[bmt](?![a-z]))")
_ANY_SIZE_OF_A_VERSION, _ANY_SIZE_OF_A_FAMILY = math.log(3), math.log(2)
"""Models of one version or family within these log distances in size are similar: only depth is scaled."""


def _family_words(name: str) -> list[tuple[str, float | None]]:
    """Return the words in a name such as ``qwen2.5-vl``, each with its version; sizes are left out."""
    return [
        (word, float(version) if version else None) for word, version in _FAMILY_WORD.findall(_stem(name))
    ]


def _stem(name: str) -> str:
    return _SIZES.sub("", name).strip("-")


def _is_near(one: float, other: float) -> bool:
    return abs(math.log(one / other)) < SAME_SIZE


def find_model(
    name: str, params_b: float | None, known: Mapping[str, Architecture], active_b: float | None = None
) -> tuple[str, Size | None]:
    """Return (model id, None) for a known model named in free text, else (the likeness's id, model size).

    The likeness is the known model nearest in size, of the named family or else a plain decoder; a mixture of
    experts has another mixture as its likeness. Raises RunError if neither the name nor the size suffices,
    and for models that are not text decoders.
    """
    wanted, last = canonical(name), canonical(name.rpartition("/")[2])
    if same := _same_model(name, wanted, params_b, known):
        return same, None
    if other := _NO_LIKENESS.search(last):
        raise RunError(
            f"model '{name}' is not in the catalogue and no attention-based language model is like {other[1]}"
        )
    size = _size_of(name, wanted, params_b, active_b, known.values())
    is_mixture = size.active_b < size.params_b
    likenesses = [each for each in known.values() if each.is_decoder and (each.experts > 1) == is_mixture]
    if not likenesses:
        raise RunError(f"model '{name}' is not in the catalogue, and no model like it is")
    return _nearest(last, size, likenesses).model, size


def _family(wanted: str, models: Iterable[Architecture]) -> tuple[str, float | None, set[str]]:
    """Return the family in a canonical name ("" if of none of the models'), its version, and all words."""
    made_of = next((base for start, base in _MADE_OF if wanted.startswith(start)), wanted)
    brands = {words[0][0] for each in models if (words := _family_words(each.model))}
    named = _family_words(made_of)
    # The last family in a name is that of the base model, as in DeepSeek-R1-0528-Qwen3.
    family, version = next((word for word in reversed(named) if word[0] in brands), ("", None))
    return family, version, {word for word, _ in named}


def vocabulary_of(name: str, like: str, known: Mapping[str, Architecture]) -> Architecture | None:
    """Return the model with the vocabulary of the named family, if the likeness is of another family."""
    family, version, others = _family(canonical(name.rpartition("/")[2]), known.values())
    if not family or _family_words(like)[0][0] == family:
        return None

    def rank(each: Architecture) -> tuple[float, int, str]:
        (_, own), *more = _family_words(each.model)
        apart = abs((own or 1.0) - version) if version is not None else 0.0
        return apart, sum(word not in others for word, _ in more), each.model

    members = (each for each in known.values() if (_family_words(each.model) or [("", None)])[0][0] == family)
    return min(members, key=rank)


def _nearest(wanted: str, size: Size, likenesses: Sequence[Architecture]) -> Architecture:
    """Return the likeness from the family in a canonical name, or else the plain model nearest in size."""
    family, version, others = _family(wanted, likenesses)

    def rank(each: Architecture) -> tuple[int, float, float, str]:
        distance = abs(math.log(each.params_total / (size.params_b * 1e9)))
        far = distance + abs(math.log(each.active / (size.active_b * 1e9)))
        (brand, own), *more = _family_words(each.model) or [("", None)]
        if brand in (family, _SHAPED_LIKE.get(family)):
            apart = abs((own or 1.0) - version) if version is not None else 0.0
            far_of_family = far + 0.1 * sum(word not in others for word, _ in more)
            if apart == 0 and version is not None and distance < _ANY_SIZE_OF_A_VERSION:
                return 0, 0.0, far_of_family, each.model
            if not each.is_hybrid and distance < SAME_SIZE:
                return 1, apart, far_of_family, each.model
            if not each.is_hybrid and distance < _ANY_SIZE_OF_A_FAMILY:
                return 2, apart, far_of_family, each.model
        return 3, float(each.is_hybrid) + float(not each.is_plain and each.experts == 1), far, each.model

    return min(likenesses, key=rank)


def _same_model(
    name: str, wanted: str, params_b: float | None, known: Mapping[str, Architecture]
) -> str | None:
    by_hub = {each.hf_id.lower(): each.model for each in known.values() if each.hf_id}
    if found := by_hub.get(name.strip().lower()):
        return found
    bare = name.rpartition("/")[2].strip()
    last = canonical(bare)
    for spelling in dict.fromkeys((name.strip(), name.strip().lower(), bare.lower(), wanted, last)):
        if spelling in known:
            return spelling
        without_dashes = spelling.replace("-", "")
        for model in known:
            if model.replace("-", "") == without_dashes:
                return model
    # The name may spell out the sizes: Llama-4-Scout-109B-A17B is llama-4-scout.
    said_b, active_b = named_size(last)
    total = params_b or said_b
    stems = [
        each.model
        for each in known.values()
        if _stem(each.model) == _stem(last)
        and (total is None or _is_near(each.params_total, total * 1e9))
        and (not active_b or not each.params_active or _is_near(each.active, active_b * 1e9))
    ]
    if total is None and len(stems) > 1:
        raise RunError(f"model '{name}' may be {', '.join(sorted(stems))}: say which")
    return min(stems, default=None)


def _size_of(
    name: str,
    wanted: str,
    params_b: float | None,
    active_b: float | None,
    known: Iterable[Architecture],
) -> Size:
    said_b, said_active_b = named_size(wanted)
    if (times := _TIMES.search(wanted)) and (params_b is None or active_b is None):
        said_b, said_active_b = _size_by_experts(int(times[1]), float(times[2]), known)
    params_b, active_b = params_b or said_b, active_b or said_active_b
    if params_b is None:
        raise RunError(
            f"model '{name}' is not in the catalogue and its size is not given: add column params_b, or the "
            "model with gpufare model add"
        )
    if _EFFECTIVE.search(wanted) and active_b is None:
        raise RunError(
            f"model '{name}': an effective size is not that of the active parameters (column active_params_b)"
        )
    size = Size(params_b, min(params_b, active_b or params_b))
    if not SMALLEST_B <= size.active_b <= size.params_b <= LARGEST_B:
        raise RunError(
            f"model '{name}': {size.params_b:g}B parameters, {size.active_b:g}B active, are not the size of "
            f"a language model ({SMALLEST_B:g}B to {LARGEST_B:g}B)"
        )
    return size


def _size_by_experts(experts: int, expert_b: float, known: Iterable[Architecture]) -> tuple[float, float]:
    """Return the sizes of an ``8x7b``; the share of attention and embeddings is as in the nearest mixture."""
    named = [each for each in known if each.experts > 1 and _TIMES.search(each.model)]
    if not named:
        raise RunError("no mixture of experts is known to take the shares of its parts from")
    like = min(
        named,
        key=lambda each: (
            abs(math.log((each.params_total - (each.experts - 1) * each.expert_params) / (expert_b * 1e9))),
            each.model,
        ),
    )
    share = like.expert_params / (like.params_total - (like.experts - 1) * like.expert_params)
    return expert_b * (1 + (experts - 1) * share), expert_b * (1 + (like.experts_active - 1) * share)
