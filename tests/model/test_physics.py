"""Properties of every model, card and setting: each query compares thousands of neighbours at once."""

import duckdb

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
