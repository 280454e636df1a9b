"""The lexer: cuts a label into words, and each word into tokens. A word consists of known tokens from end to
end or is one unknown token: "h100sxm5x8" is cut into three tokens, and "h100t" is not an H100."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache, lru_cache

from pipeline.gpus import catalogue
from pipeline.parsing.units import MIB_PER_GIB

CACHE_SIZE = 200_000
"""Maximum number of labels or words per cache: sellers repeat themselves, so most look-ups are hits."""

_MAX_WORD_LENGTH = 40


class Kind(Enum):
    """The kind of token."""

    WORD = auto()  # part of the name of a model, or of an accelerator that is not a GPU
    NUMBER = auto()
    COUNT = auto()
    MEMORY = auto()
    FORM_FACTOR = auto()
    MEMORY_TYPE = auto()
    ARCHITECTURE = auto()
    SLICE = auto()  # A MIG or vGPU profile.
    FILLER = auto()  # A word that says nothing about the GPU.
    HOST = auto()  # A statement about the machine, not its GPUs.
    ASIDE = auto()  # A word about something else, such as a seller, or "in" before a place.
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True, eq=False)
class Token:
    """A piece of a label. ``text`` is the canonical spelling. ``value`` is a count, a bare number, a memory
    size in GB (GiB if the label says MiB), or a slice's memory in GB; ``compute_slices`` is the number of
    compute slices in a slice (0 for a vGPU)."""

    kind: Kind
    text: str
    value: float = 0.0
    compute_slices: int = 0


FORM_FACTORS = {
    "sxm": "SXM", "sxm2": "SXM", "sxm3": "SXM", "sxm4": "SXM", "sxm5": "SXM", "sxm6": "SXM", "sxm7": "SXM",
    "hgx": "SXM", "dgx": "SXM", "dgxs": "SXM",
    "pcie": "PCIe", "pcle": "PCIe", "pci": "PCIe", "pcie3": "PCIe", "pcie4": "PCIe", "pcie5": "PCIe",
    "fhhl": "PCIe",
    "nvl": "NVL", "nvlink": "NVLink", "nvlinked": "NVLink",
    "oam": "OAM", "mxm": "MXM", "sff": "SFF",
    "laptop": "Laptop", "mobile": "Laptop", "notebook": "Laptop", "maxq": "Max-Q",
    "server": "Server", "se": "Server",
    "workstation": "Workstation", "ws": "Workstation", "wk": "Workstation", "we": "Workstation",
}  # fmt: skip
MEMORY_TYPES = frozenset({"hbm2", "hbm2e", "hbm3", "hbm3e", "gddr5", "gddr5x", "gddr6", "gddr6x", "gddr7"})
ARCHITECTURES = {
    "ada": "ada", "lovelace": "ada", "ampere": "ampere", "hopper": "hopper", "blackwell": "blackwell",
    "turing": "turing", "volta": "volta", "pascal": "pascal", "maxwell": "maxwell", "kepler": "kepler",
}  # fmt: skip
_EDITIONS = frozenset({"se", "ws", "wk"})
_FILLER_FRAGMENTS = ("gpu", "generation", "edition", "lhr", "mig")
_UNITS = "gib|gbs|gb|go|gi|g|mib|mb|mo|mi"

HOST_MARK = "|"
"""Stands in for a label's statements about the host, and is read as a token of kind HOST."""

ASIDE_MARK = "&"
"""Stands in for a word about something else than the GPU."""

HOST_WORD = "1vcpu"
"""A word of kind HOST, to put into a label in place of a machine's name."""

_MEMORY = re.compile(rf"(\d+(?:\.\d+)?)({_UNITS})")
_COUNT_BEFORE = re.compile(r"([1-9]\d{0,2})x(?!l?arge|l$|\d)")
_COUNT_AFTER = re.compile(r"x([1-9]\d{0,2})$")
_GPUS = re.compile(r"([1-9]\d{0,2})gpus?")
_COUNT_CPUS_MEMORY = re.compile(r"([1-9]\d{0,2})x\d{1,4}v\d{1,5}gb?")
_HARDWARE = re.compile(
    r"\d+(?:v?cpus?|vcores?|cores?|ocpus?|threads?|nvme|ssd|hdd|tb|tib|[gt]bps|w|h|hr|hrs)|\d{2,}v"
)
_IDENTIFIER = re.compile(r"(?=\d*[a-f])[0-9a-f]{16,}|\d*xlarge")  # of an offer, or the size of a machine
_CHIP = re.compile(r"(?:g[fkmpvathb]|tu|ad)[12]\d{2}b?(?:gl)?(m?)")
_SLICE = re.compile(r"(\d)g\.?(\d+)gb")
_VGPU = re.compile(r"(\d{1,2})q")
_NUMBER = re.compile(r"\d+")
_LEADING_COUNT = re.compile(r"\d{1,2}(?=[a-z]{1,12}\d)")
_GLUED_SIZES = frozenset({"16", "32", "40", "80", "94", "96", "141", "192"})

_TRADEMARK = re.compile(r"\((?:r|tm|c)\)|[®™©]", re.IGNORECASE)
_SEPARATORS = b"_-/,()|:;[]{}*#\"'!?@&~=`+\t\n\r"
_TO_SPACES = bytes.maketrans(_SEPARATORS, b" " * len(_SEPARATORS))
_OTHER_SEPARATORS = str.maketrans(dict.fromkeys("–—•·\u00a0", " ") | {"×": "x"})
_DOT = re.compile(r"(?<![a-z\d.])(\d+\.\d+(?:gi?b?)?)\b(?!\.)|\.")
_MAX_Q = re.compile(r"\bmax[- ]?q\b")
_LSPCI = re.compile(r"^(?:[\da-f]{4}:)?[\da-f]{2}:[\da-f]{2}\.\d (?=.*:)| \(rev [\da-f]{2}\)")
_PCI_E = re.compile(r"\bpci[- ]e\b")
_TIMES_BEFORE = re.compile(r"(?<![\w.])(\d{1,2}) ?\* ?(?=[a-z])")
_TIMES_AFTER = re.compile(r"(?<=[\w)]) ?\* ?(\d{1,2})(?![\w.]| ?[gm]i?b)")
_EAST_ASIAN = re.compile(r"([\u3040-\u9fff\uac00-\ud7af]+)")
_COUNT_OF_CARDS = re.compile(r"(?<![/\d])(\d{1,2}) *[卡张張块塊]")
_MIG = re.compile(r"(?<!\d)(\d)g[.\- ](\d+)gb\b")
_MIG_SYNONYM = re.compile(r"(?<=[a-z\d]_)([1-7])\.(\d{2,3})(?![\w.])")


def split_words(label: str) -> list[str]:
    """Return the words of a label in lower case, without trademark signs or separators."""
    if not label.isascii():
        text = _TRADEMARK.sub(" ", label).replace("×", "x")
        text = unicodedata.normalize("NFKC", text).translate(_OTHER_SEPARATORS)
        label = _EAST_ASIAN.sub(r" \1 ", _COUNT_OF_CARDS.sub(r" \1x ", text))
    text = label.lower()
    if "(rev " in text:
        text = _LSPCI.sub("", text)
    if "*" in text:
        text = _TIMES_AFTER.sub(r" x\1 ", _TIMES_BEFORE.sub(r"\1x ", text))
    if "pci" in text:
        text = _PCI_E.sub("pcie", text)
    if "(" in text and ("(r)" in text or "(tm)" in text):
        text = _TRADEMARK.sub(" ", text)
    if "max" in text:
        text = _MAX_Q.sub("maxq", text)
    if "." in text and "_" in text:
        # Names of SLURM at the Digital Research Alliance of Canada: h100_1.10 is h100_1g.10gb.
        text = _MIG_SYNONYM.sub(r"\1g\2gb", text)
    if "mig" in text or "g." in text:
        text = _MIG.sub(r" \1g\2gb ", text)
    # Translating bytes is ten times faster than translating characters.
    text = text.encode("utf-8", "replace").translate(_TO_SPACES).decode("utf-8")
    if "." in text:
        text = _DOT.sub(lambda match: match[1] or " ", text)
    return text.split()


@cache
def _known_words() -> frozenset[str]:
    """Return the words in the names of models and of other accelerators."""
    words = {word for name in catalogue.spellings() for word in name}
    words |= {word for name in catalogue.accelerators() for word in name}
    return frozenset(word for word in words if not word.isdigit() and len(word) > 1)


@cache
def _whole_words() -> dict[str, Token]:
    """Return the token of each known word; of a word with several meanings, the last one in this order."""
    filler = [word for kind in ("brand", "filler", "slice") for word in catalogue.words_of_kind(kind)]
    return {
        HOST_MARK: Token(Kind.HOST, HOST_MARK),
        ASIDE_MARK: Token(Kind.ASIDE, ASIDE_MARK),
        **{word: Token(Kind.FILLER, word) for word in filler},
        **{word: Token(Kind.WORD, word) for word in _known_words() | {"x", "v", "d", "s", "q"}},
        **{word: Token(Kind.ASIDE, word) for word in catalogue.words_of_kind("aside")},
        **{word: Token(Kind.MEMORY_TYPE, word) for word in MEMORY_TYPES},
        **{word: Token(Kind.ARCHITECTURE, text) for word, text in ARCHITECTURES.items()},
        **{word: Token(Kind.FORM_FACTOR, text) for word, text in FORM_FACTORS.items()},
    }


@cache
def _fragments() -> tuple[tuple[str, Token], ...]:
    """Return the parts, other than numbers, that composed words can contain, longest first."""
    filler = (*catalogue.vendor_of_brand(), *_FILLER_FRAGMENTS)
    fragments = {name: Token(Kind.FILLER, name) for name in filler}
    fragments |= {name: Token(Kind.ARCHITECTURE, text) for name, text in ARCHITECTURES.items()}
    fragments |= {name: Token(Kind.MEMORY_TYPE, name) for name in MEMORY_TYPES}
    fragments |= {name: Token(Kind.WORD, name) for name in _known_words()}
    fragments |= {name: Token(Kind.FORM_FACTOR, text) for name, text in FORM_FACTORS.items() if len(name) > 2}
    return tuple(sorted(fragments.items(), key=lambda fragment: len(fragment[0]), reverse=True))


def gigabytes(number: float, unit: str) -> float:
    """Return a memory size in GB, or in GiB if it is stated in MB or MiB."""
    return number / MIB_PER_GIB if unit.startswith("m") else number


def _single_token(word: str) -> Token | None:
    """Return the token for the word as a whole, or None."""
    if word in _whole_words():
        return _whole_words()[word]
    if word.isdigit():
        return Token(Kind.NUMBER, word, float(word))
    if _HARDWARE.fullmatch(word):
        return Token(Kind.HOST, word)
    if _IDENTIFIER.fullmatch(word):
        return Token(Kind.ASIDE, word)
    if match := _CHIP.fullmatch(word):
        return Token(Kind.FORM_FACTOR, "Laptop") if match[1] else Token(Kind.FILLER, word)
    if match := _SLICE.fullmatch(word):
        return Token(Kind.SLICE, word, float(match[2]), int(match[1]))
    if match := _VGPU.fullmatch(word):
        return Token(Kind.SLICE, word, float(match[1]))
    match = _GPUS.fullmatch(word) or _COUNT_CPUS_MEMORY.fullmatch(word)
    return Token(Kind.COUNT, word, float(match[1])) if match else None


def _leading_tokens(word: str, start: int) -> Iterator[tuple[Token, int]]:
    """Yield the tokens that can begin at ``start`` in a composed word, best first, and the end of each."""
    rest = word[start:]
    if match := _MEMORY.match(rest):
        yield Token(Kind.MEMORY, match[0], gigabytes(float(match[1]), match[2])), start + match.end()
    if start == 0 and (match := _LEADING_COUNT.match(rest)):
        yield Token(Kind.COUNT, match[0], float(match[0])), match.end()
    if match := _COUNT_BEFORE.match(rest) or _COUNT_AFTER.match(rest):
        yield Token(Kind.COUNT, match[0], float(match[1])), start + match.end()
    for text, token in _fragments():
        if rest.startswith(text) and not _is_shorter_name_with_count(text, rest):
            yield token, start + len(text)
    if rest in _EDITIONS:
        yield Token(Kind.FORM_FACTOR, FORM_FACTORS[rest]), len(word)
    if match := _NUMBER.match(rest):
        yield Token(Kind.NUMBER, match[0], float(match[0])), start + match.end()


def _is_shorter_name_with_count(text: str, rest: str) -> bool:
    """True for "x" as part of a count: "a100x8" is eight A100s, not an A100X, but "mi300x8" is eight
    MI300Xs."""
    return (
        text.endswith("x")
        and not text.isalpha()
        and rest[len(text) :].isdigit()
        and (text[:-1] in _known_words() or len(rest) > len(text) + 2)
    )


def _can_follow(tokens: tuple[Token, ...], token: Token) -> bool:
    """True if a token can directly follow the given tokens in a word. A bare number is a model's number after
    a brand and a size after a model; elsewhere it belongs to an unknown name."""
    before = tokens[-1] if tokens else None
    if token.kind is not Kind.NUMBER:
        return before is None or before.kind is not Kind.NUMBER or len(before.text) >= 3
    if before is None:
        return len(token.text) >= 3
    if before.kind is Kind.FILLER or (before.kind is Kind.WORD and before.text.isalpha()):
        return len(token.text) >= 2
    return before.kind is Kind.WORD and token.text in _GLUED_SIZES


def _compose(word: str, start: int = 0, tokens: tuple[Token, ...] = ()) -> tuple[Token, ...] | None:
    """Return ``tokens`` and the tokens of the word from ``start``, or None if part of the word is left
    over."""
    if start == len(word):
        return tokens
    if tokens:
        before, rest = tokens[-1], word[start:]
        if before.kind is Kind.NUMBER and len(before.text) >= 3 and rest[0] in "sd":
            composed = _compose(word, start + 1, (*tokens, Token(Kind.WORD, rest[0])))
            if composed is not None:
                return composed
        if before.kind is Kind.WORD and before.text.endswith("x") and rest.isdigit() and len(rest) <= 2:
            return (*tokens, Token(Kind.COUNT, rest, float(rest)))
    for token, end in _leading_tokens(word, start):
        if _can_follow(tokens, token):
            composed = _compose(word, end, (*tokens, token))
            if composed is not None:
                return composed
    return None


@lru_cache(maxsize=CACHE_SIZE)
def tokens_of_word(word: str) -> tuple[Token, ...]:
    """Return the tokens of a lower-case word: one or more known tokens, or a single token of kind UNKNOWN."""
    single = _single_token(word)
    if single is not None:
        return (single,)
    composed = _compose(word) if len(word) <= _MAX_WORD_LENGTH else None
    return composed or (Token(Kind.UNKNOWN, word),)
