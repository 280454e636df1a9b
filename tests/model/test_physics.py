"""Properties of every model, card and setting: each query compares thousands of neighbours at once."""

import duckdb
import pytest

from tests.model.conftest import Row, ask

GRID = """
SELECT m.model, g.gpu, t.method, c.checkpointing, k.stack, b.micro_batch, s.seq_len, 0 AS kbit_upcast,
    row_number() OVER () AS job
FROM (VALUES ('smollm2-135m'), ('llama-3.1-8b'), ('mixtral-8x7b'), ('gemma-2-9b')) m(model),
    (VALUES ('t4'), ('rtx-4090'), ('h100-sxm-80gb'), ('mi300x'), ('b200-sxm-180gb')) g(gpu),
    (VALUES ('full'), ('lora'), ('qlora')) t(method),
    (VALUES ('none'), ('sac'), ('full')) c(checkpointing),
    (VALUES ('hf'), ('foak'), ('liger'), ('compile'), ('te')) k(stack),
    (VALUES (1), (2), (8), (32)) b(micro_batch),
    (VALUES (512), (4096)) s(seq_len)
"""
SHARDED = """
SELECT row_number() OVER () AS job, m.model, t.method, s.sharding, s.level, n.gpu_count,
    'h100-sxm-80gb' AS gpu, 'compile' AS stack, 2 AS micro_batch
FROM (VALUES ('qwen2.5-0.5b'), ('llama-3.1-8b'), ('llama-3.1-70b'), ('mixtral-8x7b')) m(model),
    (VALUES ('full'), ('pretrain'), ('lora'), ('qlora')) t(method),
    (VALUES ('ddp', 0), ('zero2', 1), ('fsdp', 2)) s(sharding, level), (VALUES (2), (8), (64)) n(gpu_count)
"""
NARROW = """
SELECT row_number() OVER () AS job, m.model, g.gpu_id AS gpu, 'full' AS method, f.fp8, k.stack,
    8 AS micro_batch, 8192 AS seq_len, 'none' AS checkpointing
FROM (VALUES ('llama-3.1-8b'), ('llama-3.1-405b')) m(model), (VALUES (1), (2)) f(fp8),
    (VALUES ('te'), ('compile')) k(stack),
    (SELECT gpu_id FROM main.gpus WHERE has_full_specs AND fp8_dense_tflops IS NOT NULL) g
"""
METHODS = """
SELECT row_number() OVER () AS job, model, method, 'a100-sxm-80gb' AS gpu, 0 AS kbit_upcast
FROM main.models, (VALUES ('full'), ('lora'), ('qlora')) t(method)
"""
LINKS = """
SELECT row_number() OVER () AS job, m.model, t.method, s.sharding, n.gpu_count, l.faster, g.card,
    ceil(n.gpu_count / 8) AS node_count, w.node_network_gbps,
    CASE WHEN l.faster THEN g.card || ' faster link' ELSE g.card END AS gpu
FROM (VALUES ('llama-3.1-8b'), ('llama-3.1-70b')) m(model), (VALUES ('full'), ('qlora')) t(method),
    (VALUES ('ddp'), ('zero2'), ('fsdp'), ('zero3')) s(sharding), (VALUES (2), (8), (32)) n(gpu_count),
    (VALUES ('h100-sxm-80gb'), ('l40s'), ('rtx-4090')) g(card), (VALUES (false), (true)) l(faster),
    (VALUES (100), (3200)) w(node_network_gbps)
"""
LENGTHS = """
SELECT row_number() OVER () AS job, m.model, 'h100-sxm-80gb' AS gpu, t.method, k.stack,
    f.flash AS flash_attention, 1 AS micro_batch, (512 * pow(2, l.doublings))::INTEGER AS seq_len,
    0 AS kbit_upcast
FROM (VALUES ('llama-3.1-8b'), ('mixtral-8x7b'), ('gemma-3-12b'), ('mistral-7b')) m(model),
    (VALUES ('full'), ('lora'), ('qlora')) t(method),
    (VALUES ('hf'), ('liger'), ('compile'), ('te'), ('mosaic')) k(stack),
    (VALUES (0), (1)) f(flash), range(0, 12) l(doublings)
"""
GRIDS = {
    "grid": GRID,
    "sharded": SHARDED,
    "narrow": NARROW,
    "methods": METHODS,
    "links": LINKS,
    "lengths": LENGTHS,
}

CONTRADICTIONS = {
    "more batch takes less memory": (
        "WITH _s AS (SELECT *, lag(memory_gib) OVER w AS before, lag(needed_gib) OVER w AS needed_before"
        " FROM grid_answers"
        " WINDOW w AS (PARTITION BY model, gpu, method, checkpointing, stack, seq_len ORDER BY micro_batch))"
        " FROM _s WHERE memory_gib < before - 1e-9 OR needed_gib < needed_before - 1e-9"
    ),
    # Where the last layer decides, both need the same: to a thousandth.
    "checkpointing takes more memory or less time": (
        "FROM grid_answers n JOIN grid_answers f USING (model, gpu, method, stack, seq_len, micro_batch)"
        " WHERE n.checkpointing = 'none' AND f.checkpointing = 'full'"
        " AND (f.needed_gib > 1.001 * n.needed_gib OR f.step_seconds < n.step_seconds - 1e-12)"
    ),
    "faster than the peak": "FROM grid_answers WHERE NOT mfu BETWEEN 0 AND 1",
    "more GPUs take more memory each": (
        "WITH _s AS (SELECT *, lag(memory_gib) OVER (PARTITION BY model, method, sharding ORDER BY gpu_count)"
        " AS before FROM sharded_answers) FROM _s WHERE memory_gib > before + 1e-9"
    ),
    "more sharding takes more memory": (
        "FROM sharded_answers a JOIN sharded_answers b USING (model, method, gpu_count)"
        " WHERE b.level = a.level + 1 AND (b.state_gib > a.state_gib + 1e-9"
        " OR (method IN ('full', 'pretrain') AND b.memory_gib > a.memory_gib + 1e-9))"
    ),
    "faster than the peak in fp8 or fp4": (
        "FROM narrow_answers a JOIN main.gpus g ON g.gpu_id = a.gpu"
        " WHERE a.mfu * g.bf16_dense_tflops > coalesce(g.fp4_dense_tflops, g.fp8_dense_tflops)"
    ),
    "weights and state do not shrink from full to lora to qlora": (
        "FROM methods_answers f JOIN methods_answers l USING (model) JOIN methods_answers q USING (model)"
        " WHERE f.method = 'full' AND l.method = 'lora' AND q.method = 'qlora'"
        " AND NOT (q.weights_gib < l.weights_gib AND l.weights_gib <= 1.001 * f.weights_gib"
        " AND q.state_gib < l.state_gib AND l.state_gib < f.state_gib)"
    ),
    "a faster link is slower": (
        "FROM links_answers a JOIN links_answers b USING (model, method, sharding, gpu_count, card)"
        " WHERE (b.faster > a.faster AND a.node_network_gbps = b.node_network_gbps"
        " OR a.faster = b.faster AND b.node_network_gbps > a.node_network_gbps)"
        " AND b.tokens_per_second_per_gpu < a.tokens_per_second_per_gpu - 1e-9"
    ),
    "a longer sequence takes less memory or time": (
        "WITH _s AS (SELECT *, lag(memory_gib) OVER w AS before, lag(step_seconds) OVER w AS time_before"
        " FROM lengths_answers"
        " WINDOW w AS (PARTITION BY model, method, stack, flash_attention ORDER BY seq_len))"
        " FROM _s WHERE memory_gib < before - 1e-9 OR step_seconds < time_before"
    ),
    "a figure is missing, infinite or outside its band": (
        "FROM grid_answers WHERE NOT (isfinite(memory_gib) AND isfinite(tokens_per_second_per_gpu)"
        " AND memory_gib BETWEEN memory_gib_low AND memory_gib_high"
        " AND tokens_per_second_per_gpu > 0 AND tokens_per_second_per_gpu BETWEEN"
        " tokens_per_second_per_gpu_low AND tokens_per_second_per_gpu_high)"
    ),
}  # fmt: skip


def test_no_neighbours_contradict_physics(scratch: duckdb.DuckDBPyConnection) -> None:
    """All grids are asked about together: planning the query takes longer than answering it."""
    scratch.execute(
        "INSERT INTO main.gpus BY NAME SELECT * REPLACE (gpu_id || ' faster link' AS gpu_id,"
        " nvlink_gb_s * 2 AS nvlink_gb_s, pcie_gen + 1 AS pcie_gen)"
        " FROM main.gpus WHERE gpu_id IN ('h100-sxm-80gb', 'l40s', 'rtx-4090')"
    )
    for name, grid in GRIDS.items():
        scratch.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {grid}")
    parts = (f"SELECT * REPLACE ('{name} ' || job AS job) FROM {name}" for name in GRIDS)
    scratch.execute(f"CREATE OR REPLACE TEMP TABLE every AS {' UNION ALL BY NAME '.join(parts)}")
    scratch.execute(
        "CREATE OR REPLACE TEMP TABLE every_answer AS"
        " SELECT m.*, weights_gib + gradients_gib + optimizer_gib + adapter_gib AS state_gib, s.step_seconds,"
        " s.mfu, s.tokens_per_second_per_gpu, s.tokens_per_second_per_gpu_low,"
        " s.tokens_per_second_per_gpu_high"
        " FROM memory_of('every') AS m JOIN speed_of('every') AS s USING (job)"
    )
    for name in GRIDS:
        scratch.execute(
            f"CREATE OR REPLACE TEMP TABLE {name}_answers AS SELECT g.*, a.* EXCLUDE (job, model, gpu)"
            f" FROM {name} AS g JOIN every_answer AS a ON a.job = '{name} ' || g.job"
        )
        (counted,) = ask(scratch, f"SELECT (SELECT count(*) FROM {name}) AS asked,"
                                  f" (SELECT count(*) FROM {name}_answers) AS answered")  # fmt: skip
        assert counted["asked"] == counted["answered"] > 0
    wrong = {}
    for what, query in CONTRADICTIONS.items():
        if found := ask(scratch, f"{query} LIMIT 3"):
            wrong[what] = found
    assert wrong == {}


VARIANTS: dict[str, tuple[str, str, tuple[float | None, ...]]] = {
    "a wider window": ("llama-3.1-8b", "sliding_window", (256, 512, 4096, 16384, 32768, 65536, None)),
    "more layers with full attention": ("gemma-3-12b", "full_attention_layers", (0, 4, 16, 32)),
    "fewer linear layers": ("llama-3.1-8b", "linear_attention_layers", (32, 24, 8, 0, None)),
    "more active experts": ("mixtral-8x7b", "experts_active", (1, 2, 4, 8)),
    "more active experts of many": ("qwen3-30b-a3b", "experts_active", (1, 2, 4, 8)),
}  # fmt: skip
"""Changes of one column of a model that may not make it cheaper."""


def test_no_larger_model_is_cheaper(scratch: duckdb.DuckDBPyConnection) -> None:
    runs: list[Row] = []
    for like, column, values in VARIANTS.values():
        for value in values:
            scratch.execute(
                f"INSERT INTO main.models SELECT * REPLACE (model || ' {column} {value}' AS model,"
                f" $1::INTEGER AS {column}, params_active + CASE '{column}' WHEN 'experts_active'"
                " THEN (coalesce($1, 0) - experts_active)::BIGINT * 3 * layers * hidden * intermediate"
                " ELSE 0 END"
                " AS params_active) FROM main.models WHERE model = $2",
                [value, like],
            )
    groups = []
    for what, (like, column, values) in VARIANTS.items():
        for stack in ("hf", "liger", "te"):
            for seq_len in (1024, 32768):
                names = [f"{like} {column} {value}" for value in values]
                groups.append((f"{what}, {stack}, {seq_len} tokens", len(names)))
                runs += [{"model": name, "gpu": "h100-sxm-80gb", "method": "lora", "stack": stack,
                          "seq_len": seq_len} for name in names]  # fmt: skip
    rows = ask(
        scratch,
        "SELECT s.step_seconds, m.memory_gib FROM speed_of('runs') AS s"
        " JOIN memory_of('runs') AS m USING (job) ORDER BY job::INTEGER",
        runs,
    )
    assert len(rows) == len(runs)
    wrong = []
    for what, count in groups:
        seconds = [row["step_seconds"] for row in rows[:count]]
        memory = [row["memory_gib"] for row in rows[:count]]
        rows = rows[count:]
        if seconds != sorted(seconds) or memory != sorted(memory):
            wrong.append((what, seconds, memory))
        if "window" in what:  # as long as the sequence is none
            assert seconds[-3 if "32768" in what else 2] == pytest.approx(seconds[-1])
    assert wrong == []


def test_a_card_of_unknown_form_is_no_faster_than_any_of_its_forms(model: duckdb.DuckDBPyConnection) -> None:
    pairs = model.execute(
        "SELECT d.gpu_id, s.gpu_id FROM main.gpus AS d JOIN main.gpus AS s USING (model, memory_gb) "
        "WHERE d.derived_from IS NOT NULL AND s.derived_from IS NULL AND s.has_full_specs"
    ).fetchall()
    cards = sorted({gpu for pair in pairs for gpu in pair})
    assert {"v100-16gb", "a100-80gb"} <= set(cards)
    kinds: tuple[Row, ...] = (
        {"model": "llama-3.1-8b", "method": "lora", "micro_batch": 4},
        {
            "model": "llama-3.2-1b",
            "method": "pretrain",
            "micro_batch": 4,
            "checkpointing": "none",
            "gpu_count": 8,
        },
    )
    runs = [kind | {"gpu": card} for kind in kinds for card in cards]
    rows = ask(model, "SELECT job, tokens_per_second_per_gpu AS speed FROM speed_of('runs')", runs)
    speeds = {(runs[int(row["job"])]["model"], runs[int(row["job"])]["gpu"]): row["speed"] for row in rows}
    faster = {
        (kind["model"], *pair): ratio
        for kind in kinds
        for pair in pairs
        if (ratio := speeds[kind["model"], pair[0]] / speeds[kind["model"], pair[1]]) > 1 + 1e-9
    }
    assert faster == {}
