"""Labels as sentences of the words that matter, remembered: sellers repeat themselves, so that a label never
met before is mostly words and sentences that were."""

import re

from pipeline.offers.gpu_matching.lexer import OF_THE_HOST, WORDS, Kind, words_of
from pipeline.offers.gpu_matching.reading import UNITS, Reading, read

_MAX_REMEMBERED = 200_000
_HOST_MEMORY = frozenset({"ram", "ddr4", "ddr5", "ssd", "nvme", "disk", "storage", "hdd"})
_HOST_UNITS = frozenset(
    {"vcpu", "vcpus", "core", "cores", "threads", "ocpu", "ocpus", "tb", "tib", "w", "year", "years"}
)
_KEPT = frozenset({"gpu", "gpus", "mig"}) | UNITS

_TOKEN_OF_KIND = {Kind.NOISE: "", Kind.UNKNOWN: "?", Kind.HOST: OF_THE_HOST}


class _Tokens(dict[str, str]):
    """What a word is in a sentence: itself, nothing when it is filler, "?" when it is not known, "#8" when it
    is a count, "~ram" when it tells that what stands before it is the host's."""

    def __missing__(self, word: str) -> str:
        if len(self) > _MAX_REMEMBERED:
            self.clear()
        pieces = WORDS[word]
        kinds = {piece.kind for piece in pieces}
        token = word
        if kinds == {Kind.COUNT} and len(pieces) == 1:
            token = f"#{pieces[0].value:g}"
        elif word in _HOST_UNITS or word in _HOST_MEMORY:
            token = f"~{word}"
        elif word not in _KEPT:
            token = _TOKEN_OF_KIND.get(pieces[0].kind, word) if len(kinds) == 1 else word
        self[word] = token
        return token


# What a sentence says of the host, not of the GPU: "64 vcpu", "512 gb ram", "2 tb nvme".
_UNIT = "|".join(sorted(UNITS, key=len, reverse=True))
_OF_THE_HOST = re.compile(
    rf"(?<![^ ])(?:\d+ ~(?:{'|'.join(sorted(_HOST_UNITS))})"
    rf"|\d+(?:\.\d+)? ?(?:{_UNIT}) ~(?:{'|'.join(sorted(_HOST_MEMORY))})"
    r")(?![^ ])"
)
_HOST_WORD = re.compile(r"~\w+")
_SPACED_COUNT = re.compile(r"(?<![^ ])(\d{1,3}) x(?= [^ ])")
_COUNTS = re.compile(r"#(\d+)")
_UNKNOWN_RUN = re.compile(r"\?(?: +\?)+")


Counts = frozenset[float]


class _Readings(dict[str, Reading]):
    """Readings by the tokens that matter, counts left out."""

    def __missing__(self, tokens: str) -> Reading:
        if len(self) > _MAX_REMEMBERED:
            self.clear()
        self[tokens] = reading = read([piece for token in tokens.split() for piece in WORDS[token]])
        return reading


_TOKENS = _Tokens()
_READINGS = _Readings()


class _Sentences(dict[str, tuple[Reading, Counts]]):
    """Readings and counts by the tokens of a label."""

    def __missing__(self, sentence: str) -> tuple[Reading, Counts]:
        if len(self) > _MAX_REMEMBERED:
            self.clear()
        about_gpus = sentence
        if "~" in sentence:
            about_gpus = _HOST_WORD.sub("", _OF_THE_HOST.sub(OF_THE_HOST, sentence))
        if " x " in about_gpus:
            about_gpus = _SPACED_COUNT.sub(r"#\1", about_gpus)
        between, counts = about_gpus, list[str]()
        if "#" in about_gpus:
            parts = _COUNTS.split(about_gpus)
            between, counts = "".join(parts[::2]), parts[1::2]
        if "? " in between:
            between = _UNKNOWN_RUN.sub("?", between)
        # Unknown words around all others neither tell anything nor separate anything.
        reading = _READINGS[between.strip("? ")]
        self[sentence] = found = reading, reading.counts.union(map(float, counts))
        return found


_SENTENCES = _Sentences()


def read_label(label: str) -> tuple[Reading, Counts]:
    """What a label says, and the GPU counts in it. The same words in another case or with other separators
    read the same; what was read before is remembered by its words."""
    return _SENTENCES[" ".join(filter(None, map(_TOKENS.__getitem__, words_of(label))))]


def forget() -> None:
    """Drop what was remembered."""
    _TOKENS.clear()
    _READINGS.clear()
    _SENTENCES.clear()
