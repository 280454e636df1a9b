"""The planner: what it chooses can be checked against every candidate it had."""

import duckdb
import pytest

JOB = "WITH mine AS (SELECT {columns}) "


def _job(**settings: object) -> str:
    columns = ", ".join(f"{value!r} AS {name}" for name, value in settings.items())
    return JOB.format(columns=columns)


def _plans(
    connection: duckdb.DuckDBPyConnection, where: str = "true", /, **settings: object
) -> list[dict[str, object]]:
    cursor = connection.execute(
        _job(**settings) + f"FROM plans_for('mine') WHERE {where} ORDER BY gpu_id, gpu_count"
    )
    names = [column[0] for column in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def test_one_row_per_gpu_and_count_with_a_verdict_a_band_and_a_reason(
    model: duckdb.DuckDBPyConnection,
) -> None:
    plans = _plans(model, job="j", model="llama-3.1-8b", method="lora")
    keys = [(p["gpu_id"], p["gpu_count"]) for p in plans]
    assert len(keys) == len(set(keys))
    assert len({gpu for gpu, _ in keys}) >= 90
    for plan in plans:
        assert plan["verdict"] in ("fits", "tight", "does_not_fit")
        assert (plan["infeasible_reason"] is None) == (plan["verdict"] != "does_not_fit")
        assert plan["evidence"] in ("measured", "interpolated", "extrapolated")
        assert (plan["evidence_run"] is not None) == (plan["evidence"] == "measured")
        assert plan["memory_gib_low"] <= plan["memory_gib"] <= plan["memory_gib_high"]
        assert plan["tokens_per_second_low"] <= plan["tokens_per_second"] <= plan["tokens_per_second_high"]
        if plan["verdict"] != "does_not_fit":
            assert plan["memory_margin_gib"] >= 0


@pytest.mark.parametrize("method", ["full", "lora", "qlora", "pretrain"])
def test_the_plan_is_the_fastest_that_fits_with_the_probability_wanted(
    model: duckdb.DuckDBPyConnection, method: str
) -> None:
    """If no setting reaches 90%, the plan is the one most likely to fit."""
    differ = model.execute(
        _job(model="llama-2-13b", method=method)
        + """,
        c AS (SELECT *, fit_probability >= 0.9 AND needed_gib <= usable_memory_gib AS safe
            FROM judged_candidates('mine')),
        best AS (SELECT gpu, gpu_count, bool_or(safe) AS safe,
            max(tokens_per_second_per_gpu) FILTER (safe) AS speed, max(fit_probability) AS likeliest
            FROM c GROUP BY ALL)
        SELECT p.gpu_id, p.gpu_count, p.verdict, p.fit_probability, p.tokens_per_second_per_gpu, b.*
        FROM plans_for('mine') p JOIN best b ON b.gpu = p.gpu_id AND b.gpu_count = p.gpu_count
        WHERE infeasible_reason IS NULL AND ((p.verdict = 'fits') <> b.safe
            OR (b.safe AND abs(p.tokens_per_second_per_gpu / b.speed - 1) > 1e-3)
            OR (NOT b.safe AND p.fit_probability < b.likeliest - 1e-3)) LIMIT 5
        """
    ).fetchall()
    assert differ == []


def test_a_verdict_is_a_range_of_probability(model: duckdb.DuckDBPyConnection) -> None:
    plans = _plans(model, model="llama-2-13b", method="lora")
    by_verdict = {
        verdict: [p["fit_probability"] for p in plans if p["verdict"] == verdict]
        for verdict in ("fits", "tight", "does_not_fit")
    }
    assert all(by_verdict.values())
    assert min(by_verdict["fits"]) >= 0.9 > max(by_verdict["tight"])
    assert min(by_verdict["tight"]) >= 0.5 > max(by_verdict["does_not_fit"])
    # What the GPU cannot run at all does not run with enough memory either.
    assert {p["fit_probability"] for p in plans if p["gpu_id"] == "p40"} == {0}


def test_plans_do_not_depend_on_threads(model: duckdb.DuckDBPyConnection) -> None:
    answers = []
    before = model.execute("SELECT current_setting('threads')").fetchall()[0][0]
    for threads in (1, 2, 4):
        model.execute(f"SET threads = {threads}")
        answers.append(_plans(model, model="qwen2.5-14b", method="qlora"))
    model.execute(f"SET threads = {before}")
    assert answers[0] == answers[1] == answers[2]


def test_plan_agrees_with_memory_of_and_speed_of(
    model: duckdb.DuckDBPyConnection,
) -> None:
    apart = model.execute(
        _job(job="j", model="llama-3.1-8b", method="lora")
        + """,
        p AS (SELECT * FROM plans_for('mine') WHERE gpu_id IN ('h100-sxm-80gb', 'rtx-4090', 't4', 'mi300x')),
        again AS (SELECT concat_ws(' ', gpu_id, gpu_count) AS job, model, method, gpu_id AS gpu,
            gpu_count, node_count,
            CASE WHEN gpu_id = 'rtx-4090' THEN 400 ELSE node_network_gbps END AS node_network_gbps,
            seq_len, micro_batch, grad_accum, checkpointing, sharding, offload, quantization, optimizer,
                training_precision, stack FROM p)
        SELECT m.job, m.memory_gib, p.memory_gib, s.tokens_per_second_per_gpu, p.tokens_per_second_per_gpu
        FROM memory_of('again') m JOIN speed_of('again') s USING (job) JOIN p ON concat_ws(' ', p.gpu_id,
            p.gpu_count) = m.job
        WHERE abs(m.memory_gib / p.memory_gib - 1) > 1e-9 OR abs(s.tokens_per_second_per_gpu /
            p.tokens_per_second_per_gpu - 1) > 1e-9
        """
    ).fetchall()
    assert apart == []


def test_no_plan_exceeds_the_cards_abilities(model: duckdb.DuckDBPyConnection) -> None:
    plans = _plans(model, model="llama-3.2-3b", method="full")
    by_gpu = {plan["gpu_id"]: plan for plan in plans if plan["gpu_count"] == 1}
    assert by_gpu["t4"]["training_precision"] == "fp16"
    assert by_gpu["v100-sxm-32gb"]["training_precision"] == "fp16"
    assert by_gpu["a100-sxm-80gb"]["training_precision"] == "bf16"
    assert by_gpu["p40"]["verdict"] == "does_not_fit"
    assert by_gpu["p40"]["infeasible_reason"] == "unsupported_architecture"
    wanted = _plans(model, "gpu_count = 1", model="llama-3.2-3b", method="lora", training_precision="bf16")
    assert {p["infeasible_reason"] for p in wanted if p["gpu_id"] in ("t4", "v100-sxm-32gb")} == {"no_bf16"}
    narrow = {
        p["gpu_id"]: p["infeasible_reason"]
        for p in _plans(model, "gpu_count = 1", model="llama-3.2-3b", method="lora", fp8=1)
    }
    assert narrow["a100-sxm-80gb"] == "no_fp8"
    assert narrow["h100-sxm-80gb"] is None
    assert narrow["l40s"] is None


def test_nodes_are_joined_only_with_a_fabric(model: duckdb.DuckDBPyConnection) -> None:
    plans = _plans(model, model="llama-3.1-8b", method="lora")
    assert all(p["gpu_count"] <= 8 for p in plans if p["gpu_id"] == "rtx-4090")
    sixty_four = next(p for p in plans if p["gpu_id"] == "h100-sxm-80gb" and p["gpu_count"] == 64)
    assert (sixty_four["node_count"], sixty_four["node_network_gbps"]) == (8, 3200)
    assert max(p["gpu_count"] for p in _plans(model, model="llama-3.1-8b", method="lora", max_gpus=4)) == 4


def test_wishes_are_kept(model: duckdb.DuckDBPyConnection) -> None:
    plans = _plans(
        model,
        model="mistral-7b",
        method="qlora",
        seq_len=1024,
        micro_batch=3,
        checkpointing="full",
        stack="hf",
        quantization="nf4",
    )
    assert {
        (p["micro_batch"], p["checkpointing"], p["stack"], p["quantization"], p["seq_len"]) for p in plans
    } == {(3, "full", "hf", "nf4", 1024)}
    assert "seq_len" not in str(plans[0]["assumptions"])
    assert '"lora_rank":16' in str(plans[0]["assumptions"])


@pytest.mark.parametrize("method", ["lora", "full"])
def test_weights_are_offloaded_on_request_only(model: duckdb.DuckDBPyConnection, method: str) -> None:
    proposed = _plans(model, model="llama-3.1-70b", method=method)
    asked = _plans(model, model="llama-3.1-70b", method=method, offload="cpu")
    assert {p["offload"] for p in proposed} == {""}
    assert {p["offload"] for p in asked} == {"cpu"}
    fit = {(p["gpu_id"], p["gpu_count"]) for p in proposed if p["verdict"] == "fits"}
    fit_offloaded = {(p["gpu_id"], p["gpu_count"]) for p in asked if p["verdict"] == "fits"}
    assert ("a100-sxm-80gb", 2) in fit_offloaded - fit


def test_seventy_billion_parameters_need_the_documented_memory(model: duckdb.DuckDBPyConnection) -> None:
    lora = {
        (p["gpu_id"], p["gpu_count"]): p["verdict"]
        for p in _plans(model, model="llama-3.1-70b", method="lora")
    }
    assert lora["a100-sxm-80gb", 1] == "does_not_fit"
    assert lora["h100-sxm-80gb", 4] in ("fits", "tight")
    full = {
        (p["gpu_id"], p["gpu_count"]): p["verdict"]
        for p in _plans(model, model="llama-3.1-70b", method="full")
    }
    assert full["h100-sxm-80gb", 4] == "does_not_fit"
    assert full["h100-sxm-80gb", 64] == "fits"


def test_many_jobs_at_once_keep_their_keys(model: duckdb.DuckDBPyConnection) -> None:
    model.execute(
        "CREATE OR REPLACE TEMP TABLE many AS SELECT i AS job, 'llama-3.2-1b' AS model, 'lora' AS method, 512 * i AS seq_len FROM range(1, 5) t(i)"  # noqa: E501
    )
    rows = model.execute(
        "SELECT job, min(seq_len), max(seq_len) FROM plans_for('many') GROUP BY job ORDER BY job"
    ).fetchall()
    assert rows == [("1", 512, 512), ("2", 1024, 1024), ("3", 1536, 1536), ("4", 2048, 2048)]


def test_pretraining_keeps_fp32_masters(model: duckdb.DuckDBPyConnection) -> None:
    (plan,) = _plans(
        model, "gpu_id = 'h100-sxm-80gb' AND gpu_count = 8", model="llama-3.2-1b", method="pretrain"
    )
    assert (plan["method"], plan["training_precision"]) == ("pretrain", "amp")
    # 4 bytes of weights and 8 of moments per parameter, and the 2 bytes that are kept at the end.
    assert plan["training_state_gib"] == pytest.approx(1_235_814_400 * 12 / 2**30)
    assert plan["result_gib"] == pytest.approx(1_235_814_400 * 2 / 2**30)


def test_a_plan_has_the_precision_of_its_own_sharding(model: duckdb.DuckDBPyConnection) -> None:
    """ZeRO keeps fp32 masters and FSDP none: what is said of a plan is said of the candidate that won."""
    rows = model.execute(
        "WITH mine AS (SELECT 'llama-2-13b' AS model, 'full' AS method) "
        "SELECT sharding, training_precision FROM plans_for('mine') WHERE gpu_count = 2"
    ).fetchall()
    assert {sharding for sharding, _ in rows} > {"fsdp"}
    assert all((precision == "deepspeed_bf16") == sharding.startswith("zero") for sharding, precision in rows)


def test_a_micro_batch_beyond_any_memory_does_not_fit(model: duckdb.DuckDBPyConnection) -> None:
    plans = _plans(model, model="llama-3.1-8b", method="full", seq_len=10**9, micro_batch=10**6, max_gpus=1)
    assert {plan["verdict"] for plan in plans} == {"does_not_fit"}
