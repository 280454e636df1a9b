"""The macros' answers: terms checked by hand, stated defaults, names that do not leak."""

import json

import duckdb
import pytest

from pipeline.warehouse.sql_files import macro_scripts
from tests.model.conftest import Estimate

GIB = 2**30


def test_weights_and_states_of_llama_3_8b_by_hand(memory: Estimate) -> None:
    answer = memory(
        model="llama-3-8b",
        gpu="a100-sxm-80gb",
        method="full",
        training_precision="bf16",
        stack="hf",
        optimizer="adamw",
    )
    params = 8_030_261_248
    # What is learned from traces of many models is right to a thousandth for each.
    assert answer["weights_gib"] == pytest.approx(params * 2 / GIB, rel=1e-3)
    assert answer["gradients_gib"] == pytest.approx(params * 2 / GIB, rel=1e-3)
    assert answer["optimizer_gib"] == pytest.approx(params * 4 / GIB, rel=1e-3)
    assert answer["optimizer_copy_gib"] == pytest.approx(params * 2 / GIB, rel=1e-3)


def test_pure_bf16_full_fine_tuning_peaks_at_ten_bytes_per_parameter(memory: Estimate) -> None:
    # Published: 7.24B parameters 67.5 GiB, 8.03B 74.8 GiB, micro-batch 4 or 8 alike.
    for name, params, measured in (("mistral-7b", 7_241_732_096, 67.5), ("llama-3-8b", 8_030_261_248, 74.8)):
        answer = memory(
            model=name,
            gpu="a100-sxm-80gb",
            method="full",
            training_precision="bf16",
            optimizer="adamw",
            stack="liger",
            micro_batch=4,
            seq_len=4096,
            checkpointing="full",
            memory_metric="alloc",
        )
        assert answer["peak_phase"] == "optimizer step"
        assert answer["memory_gib"] == pytest.approx(params * 10 / GIB, rel=0.01)
        assert answer["memory_gib"] == pytest.approx(measured, rel=0.01)


def test_lora_parameters_from_the_true_shapes(memory: Estimate) -> None:
    # llama-3-8b, q_proj and v_proj, rank 16, 32 layers: 16 x 32 x ((4096 + 4096) + (4096 + 1024)), 4 bytes each.  # noqa: E501
    answer = memory(
        model="llama-3-8b",
        gpu="a100-sxm-80gb",
        method="lora",
        lora_rank=16,
        lora_targets="q_proj+v_proj",
        adapter_bytes=4,
    )
    assert answer["adapter_gib"] == pytest.approx(16 * 32 * (8192 + 5120) * 4 / GIB)
    assert answer["optimizer_gib"] == pytest.approx(2 * answer["adapter_gib"])


@pytest.mark.parametrize(
    ("targets", "width"),
    [("q_proj+lm_head", 32 * (4096 + 4096) + 4096 + 128_256), ("lm_head", 4096 + 128_256)],
)
def test_the_head_has_one_adapter_and_not_one_per_layer(memory: Estimate, targets: str, width: int) -> None:
    answer = memory(
        model="llama-3-8b", gpu="a100-sxm-80gb", method="lora", lora_rank=8, lora_targets=targets,
        adapter_bytes=2,
    )  # fmt: skip
    assert answer["adapter_gib"] == pytest.approx(8 * width * 2 / GIB)


def test_embeddings_and_head_are_not_quantized(memory: Estimate) -> None:
    answer = memory(
        model="llama-3-8b", gpu="a100-sxm-80gb", method="qlora", quantization="nf4", kbit_upcast=0
    )
    linear, rest = 6_979_321_856, 8_030_261_248 - 6_979_321_856
    assert answer["weights_gib"] == pytest.approx((linear * 0.5625 + rest * 2) / GIB)


def test_seventy_billion_parameters_in_four_bits_do_not_fit_a_24_gb_card(memory: Estimate) -> None:
    answer = memory(
        model="llama-2-70b", gpu="rtx-4090", method="qlora", quantization="nf4dq", micro_batch=1, seq_len=512
    )
    assert answer["weights_gib"] > 33
    assert not answer["fits"]


def test_misspelt_column_is_reported_as_ignored(memory: Estimate, model: duckdb.DuckDBPyConnection) -> None:
    answer = memory(model="llama-3.1-8b", gpu="h100-sxm-80gb", method="lora", sqe_len=512, note="mine")
    taken = json.loads(answer["assumptions"])
    assert (taken["ignored_columns"], taken["seq_len"]) == (["sqe_len"], 2048)
    said = model.execute(
        "WITH mine AS (SELECT 'llama-3.1-8b' AS model, 'lora' AS method, 4 AS micro_bach) "
        "SELECT DISTINCT assumptions FROM plans_for('mine')"
    ).fetchall()
    assert len(said) == 1
    assert json.loads(said[0][0])["ignored_columns"] == ["micro_bach"]


def test_an_unknown_lora_target_is_an_error_not_a_zero(memory: Estimate) -> None:
    with pytest.raises(duckdb.Error, match="lora_targets: q_prj is not one of"):
        memory(model="llama-3.1-8b", gpu="h100-sxm-80gb", method="lora", lora_targets="q_prj+v_proj")


def test_defaults_are_stated(memory: Estimate) -> None:
    answer = memory(model="llama-3.1-8b", gpu="h100-sxm-80gb", method="qlora", seq_len=1024)
    taken = json.loads(answer["assumptions"])
    assert (taken["quantization"], taken["lora_rank"]) == ("nf4", 16)
    assert "seq_len" not in taken


def test_a_cte_named_like_our_tables_is_not_captured(model: duckdb.DuckDBPyConnection) -> None:
    tables = [
        row[0]
        for row in model.execute("SELECT table_name FROM duckdb_tables() WHERE NOT temporary").fetchall()
    ]
    assert {"gpus", "models", "model_constants", "model_bands", "measured_runs"} <= set(tables)
    traps = ", ".join(f"{table} AS (SELECT 'trap' AS trap)" for table in tables)
    job = "mine AS (SELECT 'llama-3.1-8b' AS model, 'lora' AS method, 'rtx-4090' AS gpu)"
    for macro, figure in (
        ("memory_of", "memory_gib"),
        ("speed_of", "tokens_per_second_per_gpu"),
        ("plans_for", "memory_gib"),
    ):
        plain = model.execute(f"WITH {job} SELECT {figure} FROM {macro}('mine') ORDER BY ALL").fetchall()
        trapped = model.execute(
            f"WITH {traps}, {job} SELECT {figure} FROM {macro}('mine') ORDER BY ALL"
        ).fetchall()
        assert plain == trapped


def test_every_macro_is_commented(model: duckdb.DuckDBPyConnection) -> None:
    bare = model.execute(
        "SELECT function_name FROM duckdb_functions() WHERE NOT internal AND function_type LIKE '%macro' AND comment IS NULL"  # noqa: E501
    ).fetchall()
    assert bare == []


def test_every_constant_has_a_value_a_unit_and_a_meaning(model: duckdb.DuckDBPyConnection) -> None:
    from pipeline.home import paths

    parameters = paths.CATALOG_DIR / "model_parameters.csv"
    described = model.execute(
        f"SELECT name FROM read_csv('{parameters}') WHERE unit IS NOT NULL AND meaning IS NOT NULL AND source IS NOT NULL"  # noqa: E501
    ).fetchall()
    valued = model.execute("SELECT name FROM main.model_constants WHERE calibration = 'all'").fetchall()
    assert sorted(described) == sorted(valued)
    formulas = "".join(path.read_text(encoding="utf-8") for path in macro_scripts())
    unused = [name for (name,) in valued if f"k.{name}" not in formulas]
    assert unused == []


def test_no_estimate_is_missing_for_any_model_and_gpu_of_the_run_files(
    model: duckdb.DuckDBPyConnection,
) -> None:
    gpus = [
        "t4",
        "a10g",
        "rtx-3090",
        "rtx-a5000",
        "rtx-a6000",
        "rtx-4090",
        "rtx-4080",
        "rtx-6000-ada",
        "a100-sxm-40gb",
        "a100-sxm-80gb",
        "h100-sxm-80gb",
        "h100-sxm-96gb",
        "h200-sxm-141gb",
        "b200-sxm-180gb",
        "gb200",
        "gb300",
    ]
    model.execute(
        "CREATE OR REPLACE TEMP TABLE everything AS SELECT m.model, g.gpu, t.method FROM main.models m, "
        "(SELECT unnest($1::varchar[]) AS gpu) g, (VALUES ('full'), ('lora'), ('qlora'), ('pretrain')) t(method)",  # noqa: E501
        [gpus],
    )
    wanted = model.execute("SELECT count(*) FROM everything").fetchall()[0][0]
    for macro, figure in (("memory_of", "memory_gib"), ("speed_of", "tokens_per_second_per_gpu")):
        answered = model.execute(
            f"SELECT count(*) FROM {macro}('everything') WHERE {figure} > 0 AND isfinite({figure}) "
            f"AND {figure}_low <= {figure} AND {figure} <= {figure}_high"
        ).fetchall()[0][0]
        assert answered == wanted
