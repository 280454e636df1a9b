"""Words of a label. A run of letters and digits is either made of known pieces from end to end, or it is
one unknown word: so "h100sxm5x8" falls into pieces, and "h100t" is not an H100."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache

from pipeline.offers.gpu_matching import catalog

MIB_PER_GIB = 1024
_MAX_REMEMBERED = 200_000
_MAX_WORD_LENGTH = 40


class Kind(Enum):
    """What a piece of a word is."""

    WORD = auto()  # part of a model's name, or of something that is no GPU
    NUMBER = auto()
    COUNT = auto()
    MEMORY = auto()
    FORM = auto()
    MEMORY_TYPE = auto()
    ARCHITECTURE = auto()
    SLICE = auto()
    NOISE = auto()  # tells nothing, and may stand between words that do
    HOST = auto()  # about the machine, not its GPUs
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """``text`` as it matters for names; ``value`` is a count, or a memory in GB (GiB where the label says
    MiB), or the gigabytes of a MIG slice whose compute slices are ``slices``."""

    kind: Kind
    text: str
    value: float = 0.0
    slices: int = 0


FORMS = {
    "sxm": "SXM", "sxm2": "SXM", "sxm3": "SXM", "sxm4": "SXM", "sxm5": "SXM", "sxm6": "SXM", "sxm7": "SXM",
    "hgx": "SXM", "dgx": "SXM", "dgxs": "SXM",
    "pcie": "PCIe", "pci": "PCIe", "pcie3": "PCIe", "pcie4": "PCIe", "pcie5": "PCIe", "fhhl": "PCIe",
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
_GLUED_NOISE = ("gpu", "generation", "edition", "nvl4", "nvl36", "nvl72")

OF_THE_HOST = "|"
"""Stands in a sentence for what it says of the host."""

# Words that tell nothing about which GPU it is, and may stand between those that do.
_NOISE = catalog.BRANDS | {
    "gpu", "gpus", "graphics", "card", "cards", "generation", "gen", "edition", "accelerator", "accelerators",
    "tensor", "core", "cores", "data", "center", "datacenter", "cloud", "the", "with", "and", "per", "hour",
    "virtual", "vm", "bm", "instance", "node", "nodes", "bare", "metal", "baremetal", "cluster", "compute",
    "mode", "secure", "community", "spot", "preemptible", "on", "demand", "ondemand", "reserved", "dedicated",
    "shared", "serverless", "standard", "premium", "basic", "small", "medium", "large", "xlarge", "full",
    "plus", "mega", "high", "performance", "ib", "infiniband", "roce", "eth", "ethernet", "ecc", "vram",
    "memory", "ram", "vcpu", "vcpus", "usd", "gddr", "hbm", "r", "tm",
    "nvl2", "nvl4", "nvl8", "nvl16", "nvl36", "nvl72", "nvl144",
}  # fmt: skip
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)(gib|gbs|gb|gi|g|mib|mb|mi)")
_COUNT_BEFORE = re.compile(r"([1-9]\d{0,2})x(?!l?arge|l$|\d)")
_COUNT_AFTER = re.compile(r"x([1-9]\d{0,2})$")
_GPUS = re.compile(r"([1-9]\d{0,2})gpus?$")
_HARDWARE = re.compile(r"\d+(?:v?cpus?|vcores?|cores?|ocpus?|threads?|nvme|ssd|hdd|tb|tib|gbps|w|h|hr|hrs)$")
_SLICE = re.compile(r"(\d)g\.?(\d+)gb$")
_VGPU = re.compile(r"(\d{1,2})q$")
_NUMBER = re.compile(r"\d+")
_LEADING_COUNT = re.compile(r"\d{1,2}(?=[a-z]{1,12}\d)")
_GLUED_SIZE = re.compile(r"(16|32|40|80|94|96|141|192)$")

_TRADEMARK = re.compile(r"\((?:r|tm|c)\)|[®™©]", re.IGNORECASE)
_SEPARATORS = b"_-/,()|:;[]{}*#\"'!?@&~=`+\t\n\r"
_TO_SPACES = bytes.maketrans(_SEPARATORS, b" " * len(_SEPARATORS))
_OTHER_SEPARATORS = str.maketrans(dict.fromkeys("–—•·\u00a0", " ") | {"×": "x"})
_DOT = re.compile(r"(?<![a-z\d.])(\d+\.\d+gi?b?)\b|\.")
_MAX_Q = re.compile(r"\bmax[- ]?q\b")
_MIG = re.compile(r"\b(\d)g[.\- ](\d+)gb\b")


def words_of(label: str) -> list[str]:
    """The words of a label in lower case, without trademark signs; separators are dropped."""
    if not label.isascii():
        text = _TRADEMARK.sub(" ", label).replace("×", "x")
        label = unicodedata.normalize("NFKC", text).translate(_OTHER_SEPARATORS)
    text = label.lower()
    if "(" in text and ("(r)" in text or "(tm)" in text):
        text = _TRADEMARK.sub(" ", text)
    if "max" in text:
        text = _MAX_Q.sub("maxq", text)
    if "mig" in text or "g." in text:
        text = _MIG.sub(r" \1g\2gb ", text)
    # A table of bytes translates ASCII ten times faster than one of characters.
    text = text.encode("utf-8", "replace").translate(_TO_SPACES).decode("utf-8")
    if "." in text:
        text = _DOT.sub(lambda match: match[1] or " ", text)
    return text.split()


@cache
def _known_words() -> frozenset[str]:
    """Words that the names of models, and of things that are no GPU, are made of."""
    words = {word for name in catalog.spellings() for word in name}
    words |= {word for name in catalog.accelerators() for word in name}
    return frozenset(word for word in words if not word.isdigit() and len(word) > 1)


@cache
def _parts() -> tuple[tuple[str, Piece], ...]:
    """What a glued word may be made of besides numbers, longest first."""
    parts = {name: Piece(Kind.NOISE, name) for name in (*catalog.BRANDS, *_GLUED_NOISE)}
    parts |= {name: Piece(Kind.ARCHITECTURE, text) for name, text in ARCHITECTURES.items()}
    parts |= {name: Piece(Kind.MEMORY_TYPE, name) for name in MEMORY_TYPES}
    parts |= {name: Piece(Kind.WORD, name) for name in _known_words()}
    parts |= {name: Piece(Kind.FORM, text) for name, text in FORMS.items() if len(name) > 2}
    return tuple(sorted(parts.items(), key=lambda part: len(part[0]), reverse=True))


def _gib(number: str, unit: str) -> float:
    value = float(number)
    return value / MIB_PER_GIB if unit.startswith("m") else value


def _whole_word(word: str) -> Piece | None:
    """A word that is one piece, or None."""
    if word in FORMS:
        return Piece(Kind.FORM, FORMS[word])
    if word in ARCHITECTURES:
        return Piece(Kind.ARCHITECTURE, ARCHITECTURES[word])
    if word in MEMORY_TYPES:
        return Piece(Kind.MEMORY_TYPE, word)
    if word in _NOISE:
        return Piece(Kind.NOISE, word)
    if word == OF_THE_HOST or _HARDWARE.fullmatch(word):
        return Piece(Kind.HOST, word)
    if word in _known_words() or word in {"x", "v", "d", "s", "q"}:
        return Piece(Kind.WORD, word)
    if match := _SLICE.fullmatch(word):
        return Piece(Kind.SLICE, word, float(match[2]), int(match[1]))
    if match := _VGPU.fullmatch(word):
        return Piece(Kind.SLICE, word, float(match[1]))
    if match := _GPUS.fullmatch(word):
        return Piece(Kind.COUNT, word, float(match[1]))
    return Piece(Kind.NUMBER, word, float(word)) if word.isdigit() else None


def _starts(word: str, at: int) -> Iterator[tuple[Piece, int]]:
    """The pieces that can start at a place of a glued word, best first, and where each ends."""
    rest = word[at:]
    if match := _MEMORY.match(rest):
        yield Piece(Kind.MEMORY, match[0], _gib(match[1], match[2])), at + match.end()
    if at == 0 and (match := _LEADING_COUNT.match(rest)):
        yield Piece(Kind.COUNT, match[0], float(match[0])), at + match.end()
    if match := _COUNT_BEFORE.match(rest) or _COUNT_AFTER.match(rest):
        yield Piece(Kind.COUNT, match[0], float(match[1])), at + match.end()
    for text, piece in _parts():
        if rest.startswith(text) and not _is_a_counted_shorter_name(text, rest):
            yield piece, at + len(text)
    if rest in _EDITIONS:
        yield Piece(Kind.FORM, FORMS[rest]), len(word)
    if match := _NUMBER.match(rest):
        yield Piece(Kind.NUMBER, match[0], float(match[0])), at + match.end()


def _is_a_counted_shorter_name(text: str, rest: str) -> bool:
    """ "a100x8" is eight A100, not an A100X; "mi300x8" is eight MI300X, as nothing is called MI300."""
    return (
        text.endswith("x")
        and not text.isalpha()
        and rest[len(text) :].isdigit()
        and (text[:-1] in _known_words() or len(rest) > len(text) + 2)
    )


def _fits(pieces: tuple[Piece, ...], piece: Piece, word: str, end: int) -> bool:
    """Whether a piece may stand glued to the ones before it: a bare number is a model's number after a
    brand, a size after a model; elsewhere a glued number is part of a name that is not known."""
    if piece.kind is not Kind.NUMBER:
        return not (pieces and pieces[-1].kind is Kind.NUMBER and len(pieces[-1].text) < 3)
    if not pieces:
        return len(piece.text) >= 3 and end < len(word)
    before = pieces[-1]
    if before.kind is Kind.NOISE or (before.kind is Kind.WORD and before.text.isalpha()):
        return len(piece.text) >= 2
    return before.kind is Kind.WORD and bool(_GLUED_SIZE.match(piece.text))


def _glued(word: str, at: int = 0, pieces: tuple[Piece, ...] = ()) -> tuple[Piece, ...] | None:
    """The word as pieces from end to end, or None."""
    if at == len(word):
        return pieces
    before = pieces[-1] if pieces else None
    if before is not None:
        after = word[at:]
        if before.kind is Kind.NUMBER and len(before.text) >= 3 and after[0] in "sd":
            single = _glued(word, at + 1, (*pieces, Piece(Kind.WORD, after[0])))
            if single is not None:
                return single
        if before.kind is Kind.WORD and before.text.endswith("x") and after.isdigit() and len(after) <= 2:
            return (*pieces, Piece(Kind.COUNT, after, float(after)))
    for piece, end in _starts(word, at):
        if _fits(pieces, piece, word, end):
            found = _glued(word, end, (*pieces, piece))
            if found is not None:
                return found
    return None


class _Words(dict[str, tuple[Piece, ...]]):
    """Words met before. Sellers repeat themselves, so a label is mostly look-ups."""

    def __missing__(self, word: str) -> tuple[Piece, ...]:
        if len(self) > _MAX_REMEMBERED:
            self.clear()
        whole = _whole_word(word)
        if whole is not None:
            self[word] = (whole,)
        else:
            glued = _glued(word) if len(word) <= _MAX_WORD_LENGTH else None
            self[word] = glued or (Piece(Kind.UNKNOWN, word),)
        return self[word]


WORDS = _Words()
