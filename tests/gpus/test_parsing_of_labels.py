"""The words and tokens of a label, and what labels and the columns beside them state.

Each table has one row per label, word or column, with all that is read."""

from pipeline.gpus.label import NO_COLUMNS, parse_columns, parse_label
from pipeline.gpus.tokens import split_words, tokens_of_word
from tests.gpus.tables import Row, mistakes


def _words(row: Row) -> dict[str, object]:
    return {"words": " ".join(split_words(row["label"]))}


def test_the_words_of_a_label() -> None:
    assert mistakes("words.csv", _words) == []


def _tokens(row: Row) -> dict[str, object]:
    """Return each token as KIND:text=value/compute slices."""
    found = [
        f"{token.kind.name}:{token.text}"
        + (f"={token.value:g}" if token.value else "")
        + (f"/{token.compute_slices}" if token.compute_slices else "")
        for token in tokens_of_word(row["word"])
    ]
    return {"tokens": " ".join(found)}


def test_the_tokens_of_a_word() -> None:
    assert mistakes("tokens.csv", _tokens) == []


def _stated(row: Row) -> dict[str, object]:
    label, counts = parse_label(row["label"])
    stated = {column: getattr(label, column) for column in row if column != "label"}
    accelerator = label.accelerator.name if label.accelerator else None
    slices = label.compute_slices or None
    return stated | {"counts": counts, "accelerator": accelerator, "compute_slices": slices}


def test_all_that_a_label_states() -> None:
    assert mistakes("statements.csv", _stated) == []


def _column(row: Row) -> dict[str, object]:
    read = parse_columns({row["column"]: row["value"]})
    return {part: getattr(read, part) for part in row if part not in ("column", "value")}


def test_all_that_a_column_states() -> None:
    assert mistakes("columns.csv", _column) == []


def test_several_columns_in_a_mapping_or_in_text() -> None:
    columns = parse_columns("vram_gb=48; gpu count = 2, socket=PCIe; seen in May")
    assert (columns.memory_gb, columns.gpu_count, columns.form_factors) == (48, 2, {"PCIe"})
    columns = parse_columns({"gpu_name": "L40S", "qty": 2, "model": "L40", "note": "L4", "form": "mxm sff"})
    assert (columns.names, columns.gpu_count, columns.form_factors) == (("L40S", "L40"), 2, {"MXM", "SFF"})
    columns = parse_columns({"qty": 4, "count": "many", "vram_total": "64 GB", "total_ram": "96 GB"})
    assert (columns.gpu_count, columns.total_memory_gb) == (4, 64)
    for remark in ({}, "seen in May", "480GB = CPU LPDDR5X"):
        assert parse_columns(remark) is NO_COLUMNS
