"""Properties of every model, card and setting: each query compares thousands of neighbours at once."""

import itertools

import duckdb
import pytest

from tests.model.conftest import Row, answers, ask

GRID = """
SELECT m.model, g.gpu, t.method, c.checkpointing, k.stack, b.micro_batch, s.seq_len, 0 AS kbit_upcast,
    row_number() OVER () AS job
FROM (VALUES ('smollm2-135m'), ('llama-3.1-8b'), ('mixtral-8x7b'), ('gemma-2-9b')) m(model),
    (VALUES ('t4'), ('rtx-4090'), ('h100-sxm-80gb'), ('mi300x'), ('b200-sxm-180gb')) g(gpu),
    (VALUES ('full'), ('lora'), ('qlora')) t(method),
    (VALUES ('none'), ('sac'), ('full')) c(checkpointing),
    (VALUES ('hf'), ('foak'), ('liger'), ('compile'), ('te')) k(stack),
    (VALUES (1), (2), (8), (32)) b(micro_batch),
    (VALUES (512), (4096), (131072)) s(seq_len)
"""
CONTRADICTIONS = {
    "more batch takes less memory": (
        "WITH _s AS (SELECT *, lag(memory_gib) OVER w AS before, lag(needed_gib) OVER w AS needed_before"
        " FROM found"
        " WINDOW w AS (PARTITION BY model, gpu, method, checkpointing, stack, seq_len ORDER BY micro_batch))"
        " FROM _s WHERE memory_gib < before - 1e-9 OR needed_gib < needed_before - 1e-9"
    ),
    "a longer sequence takes less memory or time": (
        "WITH _s AS (SELECT *, lag(memory_gib) OVER w AS before, lag(step_seconds) OVER w AS time_before"
        " FROM found"
        " WINDOW w AS (PARTITION BY model, gpu, method, checkpointing, stack, micro_batch ORDER BY seq_len))"
        " FROM _s WHERE memory_gib < before - 1e-9 OR step_seconds < time_before"
    ),
    # Where the last layer decides, both need the same: to a hundredth, by which their traces differ.
    "checkpointing takes more memory or less time": (
        "FROM found n JOIN found f USING (model, gpu, method, stack, seq_len, micro_batch)"
        " WHERE n.checkpointing = 'none' AND f.checkpointing = 'full'"
        " AND (f.needed_gib > 1.01 * n.needed_gib OR f.step_seconds < n.step_seconds - 1e-12)"
    ),
    "quantized weights take more memory": (  # In trainers; no trace is of sequences of 131,072 tokens.
        "FROM found q JOIN found l USING (model, gpu, stack, checkpointing, seq_len, micro_batch)"
        " WHERE q.method = 'qlora' AND l.method = 'lora' AND q.stack IN ('foak', 'liger')"
        " AND q.seq_len < 131072 AND q.needed_gib > 1.01 * l.needed_gib"
    ),
    "faster than the peak": "FROM found WHERE NOT mfu BETWEEN 0 AND 1",
    "a figure is missing, infinite or outside its band": (
        "FROM found WHERE NOT (isfinite(memory_gib) AND isfinite(tokens_per_second_per_gpu)"
        " AND memory_gib BETWEEN memory_gib_low AND memory_gib_high"
        " AND tokens_per_second_per_gpu > 0 AND tokens_per_second_per_gpu BETWEEN"
        " tokens_per_second_per_gpu_low AND tokens_per_second_per_gpu_high)"
    ),
}


def test_no_neighbours_contradict_physics(scratch: duckdb.DuckDBPyConnection) -> None:
    scratch.execute(f"CREATE OR REPLACE TEMP TABLE grid AS {GRID}")
    scratch.execute(
        "CREATE OR REPLACE TEMP TABLE found AS"
        " SELECT g.*, m.* EXCLUDE (job, model, gpu), s.step_seconds, s.mfu, s.tokens_per_second_per_gpu,"
        " s.tokens_per_second_per_gpu_low, s.tokens_per_second_per_gpu_high"
        " FROM memory_of('grid') AS m JOIN speed_of('grid') AS s USING (job) JOIN grid AS g ON g.job = m.job"
    )
    counts = scratch.execute("SELECT (SELECT count(*) FROM grid), (SELECT count(*) FROM found)").fetchall()
    assert counts == [(10800, 10800)]
    wrong = {}
    for what, query in CONTRADICTIONS.items():
        if found := ask(scratch, f"{query} LIMIT 3"):
            wrong[what] = found
    assert wrong == {}


def test_a_card_of_unknown_form_is_no_faster_than_any_of_its_forms(model: duckdb.DuckDBPyConnection) -> None:
    pairs = model.execute(
        "SELECT d.gpu_id, s.gpu_id FROM main.gpus AS d JOIN main.gpus AS s USING (model, memory_gb) "
        "WHERE d.derived_from IS NOT NULL AND s.derived_from IS NULL AND s.has_full_specs"
    ).fetchall()
    cards = sorted({gpu for pair in pairs for gpu in pair})
    assert {"v100-16gb", "a100-80gb"} <= set(cards)
    one = {"model": "llama-3.1-8b", "method": "lora", "micro_batch": 4}
    eight = {"model": "llama-3.2-1b", "method": "pretrain", "checkpointing": "none", "gpu_count": 8}
    runs: list[Row] = [kind | {"gpu": card} for kind in (one, eight) for card in cards]
    rows = ask(model, "SELECT job, tokens_per_second_per_gpu AS speed FROM speed_of('runs')", runs)
    speeds = {(runs[int(row["job"])]["model"], runs[int(row["job"])]["gpu"]): row["speed"] for row in rows}
    faster = [
        (kind["model"], derived, stated)
        for kind in (one, eight)
        for derived, stated in pairs
        if speeds[kind["model"], derived] > speeds[kind["model"], stated] * (1 + 1e-9)
    ]
    assert faster == []


SMALLER_MODELS = """
SELECT m.model, t.method, k.stack, s.sharding, s.gpu_count, c.checkpointing, l.seq_len, 0 AS kbit_upcast,
    'h100-sxm-80gb' AS gpu, row_number() OVER () AS job
FROM main.models AS m, (VALUES ('lora'), ('qlora')) AS t(method), (VALUES ('hf'), ('liger')) AS k(stack),
    (VALUES ('none', 1), ('ddp', 2), ('fsdp', 2)) AS s(sharding, gpu_count),
    (VALUES ('none'), ('full')) AS c(checkpointing), (VALUES (512), (8192)) AS l(seq_len)
WHERE m.params_total <= 71e9
"""
"""Every model of up to 70B parameters, as its name rounds them, with frozen weights of either kind."""


def test_quantized_weights_need_no_more_memory_than_whole_ones(scratch: duckdb.DuckDBPyConnection) -> None:
    """Unless k-bit training upcasts, which widens the residual stream."""
    scratch.execute(f"CREATE OR REPLACE TEMP TABLE smaller AS {SMALLER_MODELS}")
    pairs = "model, stack, sharding, checkpointing, seq_len"
    found = ask(
        scratch,
        "WITH _need AS ("
        " SELECT g.*, m.needed_gib FROM memory_of('smaller') AS m JOIN smaller AS g USING (job))"
        f" SELECT {pairs}, q.needed_gib AS quantized, w.needed_gib AS whole"
        f" FROM _need AS q JOIN _need AS w USING ({pairs}) WHERE q.method = 'qlora' AND w.method = 'lora'",
    )
    assert len({row["model"] for row in found}) > 100
    assert [row for row in found if row["quantized"] > row["whole"]] == []


def test_replicas_need_their_gradients_once_more_than_one_gpu(model: duckdb.DuckDBPyConnection) -> None:
    """For the buckets in which DDP reduces them: whether memory is traced or computed, at any moment."""
    kinds = [
        {"model": name, "method": method, "stack": stack, "checkpointing": checkpointing, "grad_accum": steps,
         "gpu": "h100-sxm-80gb"}
        for name in ("llama-3.1-8b", "mixtral-8x7b", "gemma-2-9b") for method in ("full", "lora", "qlora")
        for stack in ("hf", "foak", "liger", "litgpt", "torchtune", "compile")
        for checkpointing in ("none", "full") for steps in (1, 4)
    ]  # fmt: skip
    alone = answers(model, "memory_terms_of", [kind | {"gpu_count": 1} for kind in kinds])
    both = answers(model, "memory_terms_of", [kind | {"gpu_count": 2, "sharding": "ddp"} for kind in kinds])
    more = [two["peak_bytes"] - one["peak_bytes"] for one, two in zip(alone, both, strict=True)]
    gradients = [one["trainable_params"] * one["gradient_bytes"] for one in alone]
    assert more == pytest.approx(gradients, rel=1e-6)
    assert min(gradients) > 0
    (traced, computed) = answers(
        model, "memory_terms_of",
        [{"model": "llama-3.1-8b", "gpu": "h100-sxm-80gb", "gpu_count": 2, "recipe": recipe,
          "optimizer": "adamw_fused"} for recipe in ("hf-lora-ddp", "hf-lora")],
    )  # fmt: skip
    assert (traced["bucket_bytes"], computed["bucket_bytes"] > 0) == (0, True)
    assert traced["peak_bytes"] == pytest.approx(computed["peak_bytes"], rel=0.01)


def test_two_layers_of_offloaded_checkpoints_are_on_the_gpu(scratch: duckdb.DuckDBPyConnection) -> None:
    """A model with fewer layers keeps all of them there."""
    for layers in (1, 2):
        scratch.execute(
            f"INSERT INTO main.models SELECT * REPLACE ('layers-{layers}' AS model, {layers} AS layers)"
            " FROM main.models WHERE model = 'llama-3.1-8b'"
        )
    shared = {"gpu": "h100-sxm-80gb", "method": "full", "stack": "compile", "checkpointing": "full"}
    on_gpu = {"layers-1": 1, "layers-2": 2, "llama-3.2-1b": 2, "llama-3.1-70b": 2}
    runs: list[Row] = [shared | {"model": name, "offload": kind} for name in on_gpu for kind in ("act", "")]
    found = answers(scratch, "memory_terms_of", runs)
    for (name, kept), left, whole in zip(on_gpu.items(), found[::2], found[1::2], strict=True):
        layers = {"layers-1": 1, "layers-2": 2}.get(name, left["layers"])
        assert left["stored_bytes"] * layers == pytest.approx(whole["stored_bytes"] * kept), name


def test_older_software_is_no_faster(scratch: duckdb.DuckDBPyConnection) -> None:
    """Nor is it slower where no progress is known: with any but engines, and more than three years back."""
    scratch.execute(
        "CREATE OR REPLACE TEMP TABLE dated AS SELECT *, row_number() OVER () AS job"
        " FROM (VALUES ('llama-3.1-8b'), ('mixtral-8x7b'), ('deepseek-v2-lite')) AS m(model),"
        " (VALUES ('rtx-4090'), ('l40s'), ('h100-sxm-80gb'), ('mi300x')) AS g(gpu),"
        " (VALUES ('full'), ('lora'), ('qlora')) AS t(method), (VALUES (1), (16)) AS c(gpu_count),"
        " (SELECT stack FROM stacks()) AS s(stack),"
        " (SELECT newest_software() - unnest([-500, 0, 1, 365, 1096, 3000]) AS software_date)"
    )
    speeds = (
        "WITH _speed AS (SELECT g.*, s.tokens_per_second_per_gpu AS speed"
        " FROM speed_of('dated') AS s JOIN dated AS g USING (job)), _next AS ("
        " SELECT *, lead(software_date) OVER w AS newer, lead(speed) OVER w AS newer_speed FROM _speed"
        " WINDOW w AS (PARTITION BY model, gpu, method, gpu_count, stack ORDER BY software_date)) FROM _next"
    )
    assert ask(scratch, f"{speeds} WHERE speed > newer_speed * (1 + 1e-9)") == []
    ((slower, same),) = scratch.execute(
        f"SELECT list_sort(list(DISTINCT stack) FILTER (speed < newer_speed * 0.99)),"
        f" count(*) FILTER (abs(speed - newer_speed) > 1e-9 * speed AND (software_date >= newest_software()"
        f" OR newer < newest_software() - 1095)) FROM ({speeds})"
    ).fetchall()
    assert (slower, same) == (["te"], 0)


PLANNED = """
SELECT concat_ws(' ', model, method, seq_len) AS job, *
FROM (VALUES ('qwen2.5-0.5b'), ('llama-3.1-8b'), ('gemma-2-9b'), ('mixtral-8x7b'), ('llama-3.1-70b'))
    AS m(model),
    (VALUES ('full'), ('lora'), ('qlora')) AS t(method), (VALUES (2048), (32768)) AS l(seq_len)
"""


@pytest.fixture(scope="module")
def plans(model: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    model.execute(f"CREATE OR REPLACE TEMP TABLE planned AS {PLANNED}")
    model.execute(
        "CREATE OR REPLACE TEMP TABLE planned_on AS SELECT p.*, g.year < 2020 AS is_old,"
        " gpu_family(g.architecture, g.segment) AS family FROM plans_for('planned') AS p"
        " JOIN main.gpus AS g USING (gpu_id) WHERE p.infeasible_reason IS DISTINCT FROM 'no_bf16'"
    )
    return model


def test_a_larger_card_of_the_family_fits_as_likely(plans: duckdb.DuckDBPyConnection) -> None:
    """Older cards, whose drivers take less memory, are compared with older ones."""
    pairs = (
        "FROM planned_on AS s JOIN planned_on AS l"
        " ON (l.job, l.family, l.is_old, l.gpu_count) = (s.job, s.family, s.is_old, s.gpu_count)"
        " AND l.usable_memory_gib > s.usable_memory_gib"
    )
    ((compared, likelier),) = plans.execute(
        f"SELECT count(*), count(*) FILTER (l.fit_probability > s.fit_probability + 0.1) {pairs}"
    ).fetchall()
    assert compared > likelier > 1000
    less = f"SELECT s.job, s.gpu_id, l.gpu_id AS larger, s.gpu_count {pairs}"
    assert ask(plans, f"{less} WHERE l.fit_probability < s.fit_probability - 1e-9") == []


def test_twice_the_gpus_fit_as_likely(plans: duckdb.DuckDBPyConnection) -> None:
    """From two on: one GPU needs neither collectives nor, if nothing is sharded, buckets of gradients."""
    pairs = (
        "FROM planned_on AS f JOIN planned_on AS t"
        " ON (t.job, t.gpu_id, t.gpu_count) = (f.job, f.gpu_id, 2 * f.gpu_count)"
    )
    ((compared,),) = plans.execute(f"SELECT count(*) {pairs} WHERE f.gpu_count > 1").fetchall()
    assert compared > 1000
    less = f"SELECT f.job, f.gpu_id, f.gpu_count, f.fit_probability - t.fit_probability AS fall {pairs}"
    assert ask(plans, f"{less} WHERE fall > 1e-9 AND f.gpu_count > 1") == []
    ((context, ratio),) = plans.execute(
        "SELECT k.context_multi_gpu_gib, k.fit_reserved_ratio FROM constants() WHERE calibration = 'all'"
    ).fetchall()
    more = ask(
        plans,
        f"SELECT f.job, f.gpu_id, t.sharding, t.least_needed_gib - f.least_needed_gib AS more,"
        f" f.gradients_gib {pairs} WHERE f.gpu_count = 1 AND more > 0",
    )
    assert more
    wrong = [row for row in more if row["more"] > context + ratio * row["gradients_gib"] + 1e-9]
    assert wrong == []


def test_full_training_is_no_faster_than_adapters_over_pcie(model: duckdb.DuckDBPyConnection) -> None:
    for gpu in ("rtx-4090", "l40s"):
        job: Row = {
            "model": "llama-3.1-70b", "gpu": gpu, "gpu_count": 8, "tensor_parallel": 8, "stack": "te",
            "micro_batch": 1, "seq_len": 2048,
        }  # fmt: skip
        full, lora = answers(model, "speed_of", [job | {"method": "full"}, job | {"method": "lora"}])
        assert lora["tokens_per_second_per_gpu"] >= full["tokens_per_second_per_gpu"], gpu


def test_frozen_weights_of_a_pipeline_have_no_gradients(model: duckdb.DuckDBPyConnection) -> None:
    job: Row = {
        "model": "llama-3.1-70b", "gpu": "h100-sxm-80gb", "gpu_count": 16, "method": "lora",
        "stack": "compile", "sharding": "fsdp", "grad_accum": 8, "pipeline_parallel": 2,
    }  # fmt: skip
    (found,) = answers(model, "memory_of", [job])
    # Half of the model's weights stay gathered, in 16 bits.
    assert found["memory_gib"] < 2 * 71e9 / 2 / 2**30 * 1.3


def test_what_is_exposed_of_hidden_work(model: duckdb.DuckDBPyConnection) -> None:
    """Nothing of no work, all of work without a cover, and at most the work: never less, the more of it."""

    def exposed(work: float, cover: float, spread: float) -> float:
        query = "SELECT exposed_seconds($1, $2, $3)"
        ((seconds,),) = model.execute(query, [work, cover, spread]).fetchall()
        return float(seconds)

    assert [exposed(work, cover, 0.0) for work, cover in ((3, 1), (1, 3), (2, 2), (0, 0))] == [2, 0, 0, 0]
    assert exposed(2, 2, 0.5) == pytest.approx(0.5 * 2 / 2)
    assert exposed(1, 1e9, 0.5) == pytest.approx(0.5**2 / 4)
    assert exposed(0, 2, 0.5) == 0
    assert exposed(2, 0, 0.5) == 2
    grid = [exposed(work / 10, 1, 0.5) for work in range(40)]
    assert all(0 <= later - earlier <= 0.1 + 1e-12 for earlier, later in itertools.pairwise(grid))


def test_hot_ranks_of_experts_are_in_the_verdict_alone(model: duckdb.DuckDBPyConnection) -> None:
    job: Row = {
        "model": "qwen3-30b-a3b", "gpu": "h100-sxm-80gb", "gpu_count": 8, "stack": "te", "method": "full",
        "checkpointing": "none", "micro_batch": 1, "seq_len": 4096,
    }  # fmt: skip
    runs = [job | {"expert_parallel": ranks} for ranks in (1, 2, 8)]
    alone, two, eight = answers(model, "memory_terms_of", runs)
    assert alone["crowded_bytes"] == 0 < two["crowded_bytes"] < eight["crowded_bytes"]
    assert eight["crowded_bytes"] == pytest.approx(two["crowded_bytes"] * (1 - 1 / 8) / (1 - 1 / 2))
    assert eight["needed_gib"] > eight["peak_bytes"] / 2**30 + eight["process_gib"]
    (dense,) = answers(model, "memory_terms_of", [job | {"model": "llama-3.1-8b"}])
    assert dense["crowded_bytes"] == 0


def test_biases_of_experts_cost_time_in_engines(model: duckdb.DuckDBPyConnection) -> None:
    job: Row = {
        "model": "gpt-oss-20b", "gpu": "h100-sxm-80gb", "gpu_count": 8, "stack": "te", "method": "full",
        "micro_batch": 1, "seq_len": 2048,
    }  # fmt: skip
    many, few = answers(model, "speed_terms_of", [job | {"expert_parallel": 1}, job | {"expert_parallel": 8}])
    assert many["host_seconds"] > 1.2 * few["host_seconds"]  # 32 experts on the rank, and four
    loops = [run["host_floor_seconds"] for run in answers(model, "speed_terms_of", [
        job | {"model": name, "expert_parallel": ranks} for name in ("gpt-oss-20b", "qwen3-30b-a3b")
        for ranks in (1, 8)
    ])]  # fmt: skip
    # Two tensors more per expert, and a loop over the biases.
    assert (loops[0] - loops[1]) / 24 / 28 > 2 * (loops[2] - loops[3]) / 48 / 112
    assert many["expert_bias_seconds_per_token"] == few["expert_bias_seconds_per_token"] > 0
    others = answers(model, "speed_terms_of", [job | {"model": "qwen3-30b-a3b"}, job | {"stack": "hf"}])
    assert [other["expert_bias_seconds_per_token"] for other in others] == [0, 0]


def test_packed_sequences_take_time_one_by_one(model: duckdb.DuckDBPyConnection) -> None:
    job: Row = {
        "model": "qwen3-8b", "gpu": "h100-sxm-80gb", "gpu_count": 4, "tensor_parallel": 4, "stack": "te",
        "method": "full", "checkpointing": "none", "micro_batch": 1, "seq_len": 32768,
    }  # fmt: skip
    none, few, many = answers(
        model, "speed_terms_of", [job | {"looped_sequences": count} for count in (None, 8, 80)]
    )
    assert many["host_floor_seconds"] - none["host_floor_seconds"] == pytest.approx(
        10 * (few["host_floor_seconds"] - none["host_floor_seconds"])
    )
    # Tokens attend to their own sequence only, but to launch kernels for each costs more than this saves.
    assert many["attention_seconds"] < few["attention_seconds"] < none["attention_seconds"]
    assert many["tokens_per_second_per_gpu"] < 0.7 * none["tokens_per_second_per_gpu"]


def test_cuda_graphs_take_launches_from_the_host(model: duckdb.DuckDBPyConnection) -> None:
    job: Row = {
        "model": "qwen3-30b-a3b", "gpu": "h100-sxm-80gb", "gpu_count": 16, "stack": "te", "method": "full",
        "expert_parallel": 16, "micro_batch": 1, "seq_len": 4096, "checkpointing": "none",
    }  # fmt: skip
    assumed, none, parts, step = answers(
        model, "speed_terms_of", [job | {"cuda_graph": what} for what in (None, "none", "parts", "step")]
    )
    assert assumed["step_seconds"] == none["step_seconds"] > parts["step_seconds"] > step["step_seconds"]
    assert step["host_seconds"] == 0 < parts["host_seconds"]


def test_embeddings_and_head_of_a_sharded_model_are_sent_in_the_open(
    model: duckdb.DuckDBPyConnection,
) -> None:
    job: Row = {
        "model": "llama-3.1-8b", "gpu": "h100-sxm-80gb", "gpu_count": 8, "stack": "compile", "method": "full",
        "micro_batch": 64, "seq_len": 8192,
    }  # fmt: skip
    fsdp, zero3, ddp = answers(
        model, "speed_terms_of", [job | {"sharding": kind} for kind in ("fsdp", "zero3", "ddp")]
    )
    assert 0 < fsdp["root_seconds"] < fsdp["communication_seconds"] < fsdp["collective_seconds"]
    assert zero3["root_seconds"] == ddp["root_seconds"] == 0
    (alone,) = answers(model, "speed_terms_of", [job | {"sharding": "fsdp", "gpu_count": 1}])
    assert alone["communication_seconds"] == 0
