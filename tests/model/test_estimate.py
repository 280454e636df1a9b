"""Files of runs: every row has an estimate or a reason, and what was assumed of it."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.contracts.errors import GpufareError
from pipeline.home import paths
from pipeline.model.estimate import OUTPUT_COLUMNS, EstimateError, Estimator, estimate_file
from pipeline.warehouse.sql_files import run
from tests.model.conftest import cases

Row = dict[str, str]
RUN = {"model": "llama-3-8b", "gpu": "h100-sxm-80gb", "method": "lora"}
CASES = cases("estimated_rows.yaml")
SAME: tuple[tuple[Row, Row], ...] = (
    ({"method": "QLoRA"}, {"method": "qlora"}), ({"method": " full "}, {"method": "full"}),
    ({"optimizer": "adamw_bnb_8bit"}, {"optimizer": "adamw8bit"}),
    # A model split over all GPUs needs no sharding; eight stages of 32 layers are possible.
    ({"gpu_count": "8", "tensor_parallel": "8", "sharding": "none", "stack": "te"},) * 2,
    ({"gpu_count": "8", "pipeline_parallel": "8"},) * 2,
    # Software is dated by its month.
    ({"software_date": "2026-08-15"}, {"software_date": "2026-08"}),
    ({"software_date": "2024-08-31"}, {"software_date": " 2024-08 "}),
)  # fmt: skip
WIDER = {"method": "qlora", "micro_batch": "8"}
OTHERS: dict[str, Row] = {
    "known": WIDER, "likeness": WIDER | {"model": "NoSuch-8.03b"}, "usual": {},
    "of no family": WIDER | {"model": "NoSuch-67b"}, "of a family": WIDER | {"model": "deepseek-67b"},
}  # fmt: skip
Answered = Callable[..., Row]


@pytest.fixture(scope="module")
def answered(estimator: Estimator) -> Answered:
    """The answers to all rows of this module, which are asked at once."""
    rows = [changes for changes, *_ in CASES["refused"] + CASES["assumed"]]
    rows += [*(row for pair in SAME for row in pair), *OTHERS.values()]
    columns = list(dict.fromkeys(name for row in (RUN, *rows) for name in row))
    found = estimator.estimate([dict.fromkeys(columns, "") | RUN | row for row in rows], columns)
    of_row = {tuple(sorted(row.items())): answer for row, answer in zip(rows, found, strict=True)}
    return lambda **changes: of_row[tuple(sorted(changes.items()))]


def test_a_row_that_cannot_be_estimated_has_its_reason(answered: Answered) -> None:
    wrong = []
    for changes, reason in CASES["refused"]:
        answer = answered(**changes)
        if not answer["error"].startswith(reason) or answer["memory_gib"] or answer["fits"]:
            wrong.append((changes, answer["error"]))
    assert wrong == []


def test_what_is_assumed_of_a_row_is_said_once(answered: Answered) -> None:
    wrong = []
    for changes, said, is_said in CASES["assumed"]:
        answer = answered(**changes)
        if answer["error"] or answer["assumptions"].count(said) != is_said:
            wrong.append((changes, said, answer["error"], answer["assumptions"]))
    assert wrong == []
    assert answered(model="deepseek-v3", gpu="l40s")["assumptions"].count("far from") == 1


def test_settings_are_read_under_all_their_names(answered: Answered) -> None:
    for one, other in SAME:
        assert answered(**one) == answered(**other)
        assert answered(**one)["memory_gib"]


def test_defaults_that_are_rules_are_told_as_rules(answered: Answered, newest_software: str) -> None:
    answer = answered()
    assert tuple(answer) == OUTPUT_COLUMNS
    assert answer["assumptions"] == (
        "gpu_count: 1; autocast: 1 in the Transformers Trainer, else 0; lora_rank: 16; "
        "lora_targets: all linear layers; training_precision: bf16; optimizer: adamw; micro_batch: 1; "
        "seq_len: 2048; grad_accum: 1; checkpointing: full; flash_attention: 1; stack: hf; "
        f"software_date: {newest_software}"
    )
    assert (answer["fits"], answer["error"]) == ("true", "")


def band(answer: Row, figure: str) -> tuple[float, float]:
    """Return how far the ends of a band are from the middle, as logarithms."""
    low, high = (float(answer[f"{figure}_{end}"]) / float(answer[figure]) for end in ("low", "high"))
    return -math.log(low), math.log(high)


FIGURES = ("memory_gib", "tokens_per_second_per_gpu")


def test_a_likeness_is_extrapolated_and_its_bands_are_doubled(
    answered: Answered, estimator: Estimator
) -> None:
    known, dense = answered(**OTHERS["known"]), answered(**OTHERS["likeness"])
    far = estimator.connection.execute(
        "SELECT low_ratio, high_ratio FROM main.model_bands WHERE calibration = 'all' AND method = 'qlora'"
        " AND gpu_class IN ('any', 'hopper and a100 sxm') AND evidence IN ('formulas', 'extrapolated')"
        " ORDER BY quantity"
    ).fetchall()
    for figure, (low, high) in zip(FIGURES, far, strict=True):
        assert float(dense[figure]) == pytest.approx(float(known[figure]), rel=0.05)
        # The wider of its own band and that far from any run, both at least a known model's.
        ends = zip(band(dense, figure), band(known, figure), (-math.log(low), math.log(high)), strict=True)
        assert all(wide >= 2 * max(near, 0.99 * at) - 1e-3 for wide, near, at in ends)


def test_a_larger_vocabulary_of_the_family_needs_more_memory(answered: Answered) -> None:
    without, with_family = answered(**OTHERS["of no family"]), answered(**OTHERS["of a family"])
    assert "shaped like llama-65b" in without["assumptions"]
    assert "width and heads as there, vocabulary, too)" in without["assumptions"]
    assert "width and heads as there, the vocabulary of deepseek-" in with_family["assumptions"]
    # At least fp32 logits for 129,280 tokens instead of 32,000, in 8 sequences of 2,048.
    more_gib = float(with_family["memory_gib"]) - float(without["memory_gib"])
    assert more_gib > 8 * 2048 * (129_280 - 32_000) * 4 / 2**30


OF_TRL = {
    "model": "llama-3-8b", "method": "lora", "gpu": "h100-sxm-80gb", "gpu_count": "1", "seq_len": "2048",
    "micro_batch_per_gpu": "1", "precision": "bf16", "grad_checkpointing": "yes", "flash_attention": "yes",
    "framework": "TRL", "parallelism": "single",
}  # fmt: skip


def test_more_replicas_than_sequences_share_the_sequences(estimator: Estimator) -> None:
    def of_nemo(batch: str, gpus: str = "16", **columns: str) -> Row:
        given = {"grad_accum_or_global_batch": batch, "gpu_count": gpus, "parallelism": ""}
        return OF_TRL | {"framework": "NeMo", "seq_len": "8192"} | given | columns

    cases: dict[str, tuple[Row, str | None]] = {
        "fewer sequences than GPUs": (of_nemo("global=8 seqs; GA=1"), "2"),
        "as many": (of_nemo("global=16 seqs; GA=1"), None),
        "half of them in each micro-step": (of_nemo("global=16 seqs; GA=2"), "2"),
        "two in a micro-batch": (of_nemo("global=16 seqs", micro_batch_per_gpu="2"), "2"),
        "tokens": (of_nemo("65,536 tokens"), "2"),
        "a number that does not divide the GPUs": (of_nemo("global=9 seqs"), None),
        "tensor groups of four": (of_nemo("global=2 seqs", model="llama-3-70b"), "2"),
        "stated sizes": (of_nemo("global=8 seqs", parallelism="TP2"), None),
        "stated sequence groups": (of_nemo("global=8 seqs", parallelism="TP1 CP1"), None),
        "a stack without context parallelism": (of_nemo("global=8 seqs", framework="LitGPT"), None),
    }
    rows = [row for row, _ in cases.values()]
    found = estimator.estimate(rows, [*OF_TRL, "grad_accum_or_global_batch", "id"])
    said = [answer["assumptions"].partition("context_parallel: ")[2].partition(",")[0] for answer in found]
    assert dict(zip(cases, said, strict=True)) == {name: size or "" for name, (_, size) in cases.items()}
    shared, own, *_ = found
    assert float(shared["memory_gib"]) < float(own["memory_gib"])


def test_the_published_layout_is_read_by_its_columns(estimator: Estimator) -> None:
    rows: tuple[Row, ...] = (
        OF_TRL, OF_TRL | {"framework": "Homegrown"}, OF_TRL | {"gpu_count": "", "micro_batch": "2"},
        OF_TRL | {"model": "NoSuch-9B", "id": "a"}, OF_TRL | {"model": "NoSuch"},
        OF_TRL | {"method": "unspecified"},
    )  # fmt: skip
    columns = [*dict.fromkeys(name for row in rows for name in row), "quant_bits", "batch_size"]
    found = estimator.estimate([dict.fromkeys(columns, "") | row for row in rows], columns)
    known, unknown, one, likeness, nameless, methodless = found
    for figure in FIGURES:
        assert known[figure] == unknown[figure] == one[figure]
        pairs = zip(band(known, figure), band(unknown, figure), strict=True)
        assert all(far >= 2 * near - 1e-3 for near, far in pairs)
    assert "framework: 'Homegrown' is not known" in unknown["assumptions"]
    assert known["assumptions"].endswith("; ignored columns: batch_size")
    assert one["assumptions"].startswith("gpu_count: 1; ")
    assert likeness["run_id"] == "a"
    assert "'NoSuch-9B' is not in the catalogue" in likeness["assumptions"]
    assert "its size is not given" in nameless["error"]
    assert "method 'unspecified'" in methodless["error"]


def test_rows_with_which_the_model_fails_do_not_stop_the_others(estimator: Estimator) -> None:
    names = ["llama-3-8b", "llama-3.2-3b"]
    rows = [{"run_id": str(i), "model": name, "gpu": "t4", "method": "lora"} for i, name in enumerate(names)]
    try:
        estimator.connection.execute(
            "CREATE OR REPLACE MACRO adapted_sides(target, hidden, query, key_value, width, mlps, fused) "
            "AS CASE WHEN hidden = 3072 THEN error('the model\x1b failed') ELSE [hidden, width] END"
        )
        answers = estimator.estimate(rows, list(rows[0]))
    finally:
        run(estimator.connection, paths.SQL_DIR / "model" / "20_shape.sql")
    assert [bool(row["memory_gib"]) for row in answers] == [True, False]
    failed = "the model cannot be evaluated: Invalid Input Error: the model\ufffd failed"
    assert [row["error"] for row in answers] == ["", failed]


def estimated(estimator: Estimator, file: Path, content: bytes) -> list[Row]:
    file.write_bytes(content)
    return estimate_file(estimator, file)


def test_a_damaged_row_is_its_own_error(estimator: Estimator, tmp_path: Path) -> None:
    """Cells are safe to print and to open in a spreadsheet, and misspelt columns are named."""
    answers = estimated(estimator, tmp_path / "runs.csv", (
        b"run_id,model,gpu,method,source,sqe_len\n"
        b'=cmd|calc,llama-3-8b,t4,lora,"two\nlines",\n'
        b'b,"llama-3-8b,t4,lora,me,\n'
        b'd,llama-3-8b,t4,"lora"x,me,\n'
        b"e,llama-3-\xff8b,t4,lora,,\n"
        b"f,llama-3-8b,t4,lora,me,512,more,,\n"
        b"g,me\n"
        b"\x1b[31mred,llama-3-8b,\x1b[2J,lora,,\n"
        b'z,llama-3-8b,t4,lora,"me",\n'
    ))  # fmt: skip
    assert [(row["run_id"], row["error"]) for row in answers] == [
        ("'=cmd|calc", ""), ("b", "line 4: a quote is not closed"),
        ("d", "line 5: not CSV (',' expected after '\"')"), ("e", "line 6: it has bytes that are not UTF-8"),
        ("f", "line 7: it has 9 values for 6 columns"), ("g", "line 8: it has 2 values for 6 columns"),
        ("\ufffd[31mred", "gpu '\ufffd[2J' is not one card of the catalogue"), ("z", ""),
    ]  # fmt: skip
    first, last = answers[0], answers[-1]
    assert first["memory_gib"] == last["memory_gib"] != ""
    assert first["assumptions"].endswith("; ignored columns: sqe_len")
    spreadsheet = b"Run_ID; Model;GPU;method\r\nz;llama-3-8b;t4;lora\r\n"
    (answer,) = estimated(estimator, tmp_path / "runs.csv", spreadsheet)
    assert answer == last | {"assumptions": last["assumptions"].removesuffix("; ignored columns: sqe_len")}


def test_the_error_names_the_form_of_another_file(estimator: Estimator, tmp_path: Path) -> None:
    with pytest.raises(GpufareError, match="is UTF-16: save it as CSV in UTF-8"):
        estimated(estimator, tmp_path / "runs.csv", "model,gpu,method\n".encode("utf-16"))
    for content in (b"", b"a,b\n1,2\n"):
        with pytest.raises(EstimateError, match=r"runs.csv has no columns model and gpu: it is not a file"):
            estimated(estimator, tmp_path / "runs.csv", content)
    with pytest.raises(GpufareError, match="cannot be read"):
        estimate_file(estimator, tmp_path / "missing.csv")
