"""Finds the words of a published row that bear on memory or parallelism and that no pattern reads."""

import re

from pipeline.model.denials import is_denied
from pipeline.model.parallelism import PARALLEL_SIZES, SIZES_IN_NOTES, Batch, read_batch
from pipeline.model.run_settings import Row

_READ = {
    "parallelism": re.compile("|".join((*PARALLEL_SIZES.values(), r"zero[ -]?\d|\b[a-z]?fsdp\d?|vpp?\d+"))),
    "precision": re.compile(r"(?:[bt]?f|b?float|mxfp|nvfp|fp|nf|int)\d+|e\dm\d|\d[ -]?bits?"),
}
_SIZES_IN_NOTES = re.compile("|".join(SIZES_IN_NOTES.values()))
# Words that are read elsewhere, or that change neither memory nor speed by more than the model's error.
_SILENT = {
    "parallelism": """
        fsdp zero ddp dp sp hsdp hybrid shard shards full fully grad op sharded sharding deepspeed
        data parallel parallelism model sequence ring attention ulysses optimizer distributed cpu offload
        offloaded offloading activation activations gpu gpus card cards node nodes single multi per over all
        across the of on in a and with without no not none true unknown stated see note as above n epn vp vpp
        virtual stages interleaved te cuda graphs router preprocess hybridep deepep prefetch pytorch torch
        native only x never non used disabled off false
        """,
    "precision": """
        amp auto autocast mixed pure true weights weight master masters params parameters adapters gradients
        grads states optimizer compute training base frozen quantized bnb bitsandbytes gptq double quant
        scaling current delayed block blockwise rowwise tensorwise hybrid te transformer engine all gather t4
        and or with in on for of the n not stated unknown checkpoint float no
        without never non used disabled off false quantization unquantized
        """,
}
_WORD = re.compile(r"[a-z][a-z0-9]*")
# Ways to save memory, and parts that are trained or not, which no formula describes.
_TELLING = re.compile(
    r"\b(?:(?:mlp|loss|sequence)[ -])?til(?:ed|ing)\b|\b(?:nvme|disk|ssd)\b|\bswap(?:s|ped|ping)?\b"
    r"|\bgrad(?:ient)?s?[ -]offload\w*|\bmulti-?token[ -]prediction\b|\bmtp\b"
    r"|\b(?:freez\w+|frozen) (?:the )?(?:first|last|lower|upper|embeddings?|layers|blocks|experts)\b"
    r"|\b(?:vision|image|audio|siglip|clip)[ -](?:encoder|tower)\b"
    r"|\b(?:experts|layers|head) not quanti[sz]ed\b|\b(?:pinned|unified|host) memory\b"
    r"|\b(?:tensor|pipeline|expert|sequence|context)[ -]parallel\w*"
)


def unread_words(row: Row) -> list[tuple[str, str]]:
    """Return columns and the words in them that are not understood although they may change an estimate."""
    found = []
    for column, pattern in _READ.items():
        rest = re.sub("[_-]", " ", pattern.sub(" ", (row.get(column) or "").lower()))
        silent = _SILENT[column].split()
        words = [word for word in _WORD.findall(rest) if word not in silent]
        found.append((column, " ".join(words)))
    batch = row.get("grad_accum_or_global_batch") or ""
    if re.search(r"\d", batch) and read_batch(batch, seq_len=1) == Batch(None, None):
        found.append(("grad_accum_or_global_batch", batch))
    notes = _SIZES_IN_NOTES.sub(" ", (row.get("notes") or "").lower())
    telling = (each[0] for each in _TELLING.finditer(notes) if not is_denied(each))
    found.append(("notes", ", ".join(dict.fromkeys(telling))))
    return [(column, words[:60]) for column, words in found if words]
