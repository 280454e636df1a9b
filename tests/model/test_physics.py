"""Properties of every model, GPU and setting: each test compares thousands of neighbours at once."""

from collections.abc import Iterator

import duckdb
import pytest

GRID = """
CREATE OR REPLACE TEMP TABLE grid AS
SELECT m.model, g.gpu, t.method, c.checkpointing, k.stack, b.micro_batch, s.seq_len, 0 AS kbit_upcast,
    row_number() OVER () AS job
FROM (VALUES ('smollm2-135m'), ('qwen2.5-1.5b'), ('llama-3.1-8b'), ('mixtral-8x7b'), ('llama-3.1-70b'),
    ('gemma-2-9b')) m(model),
    (VALUES ('t4'), ('rtx-4090'), ('l40s'), ('a100-sxm-80gb'), ('h100-sxm-80gb'), ('mi300x'),
        ('b200-sxm-180gb')) g(gpu),
    (VALUES ('full'), ('lora'), ('qlora')) t(method),
    (VALUES ('none'), ('sac'), ('full')) c(checkpointing),
    (VALUES ('hf'), ('foak'), ('liger'), ('compile'), ('te')) k(stack),
    (VALUES (1), (2), (4), (8), (16), (32)) b(micro_batch),
    (VALUES (512), (4096)) s(seq_len)
"""


@pytest.fixture(scope="module")
def grid(model: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    model.execute(GRID)
    return model


def _violations(model: duckdb.DuckDBPyConnection, query: str) -> list[tuple[object, ...]]:
    return model.execute(query + " LIMIT 5").fetchall()


def test_more_batch_never_needs_less_memory(grid: duckdb.DuckDBPyConnection) -> None:
    assert (
        _violations(
            grid,
            """
        WITH _m AS (SELECT g.*, m.memory_gib, m.needed_gib FROM memory_of('grid') m JOIN grid g ON g.job =
            m.job::BIGINT),
        _steps AS (SELECT *, lag(memory_gib) OVER w AS before, lag(needed_gib) OVER w AS needed_before FROM _m
            WINDOW w AS (PARTITION BY model, gpu, method, checkpointing, stack, seq_len ORDER BY micro_batch))
        SELECT * FROM _steps WHERE memory_gib < before - 1e-9 OR needed_gib < needed_before - 1e-9
        """,
        )
        == []
    )


def test_more_checkpointing_never_needs_more_memory_nor_less_time(grid: duckdb.DuckDBPyConnection) -> None:
    assert (
        _violations(
            grid,
            """
        WITH _a AS (SELECT g.*, m.needed_gib, s.step_seconds FROM memory_of('grid') m JOIN
            speed_of('grid') s USING (job)
            JOIN grid g ON g.job = m.job::BIGINT)
        SELECT * FROM _a n JOIN _a f USING (model, gpu, method, stack, seq_len, micro_batch)
        WHERE n.checkpointing = 'none' AND f.checkpointing = 'full'
            -- Where the last layer decides, both need the same: to a thousandth.
            AND (f.needed_gib > 1.001 * n.needed_gib OR f.step_seconds < n.step_seconds - 1e-12)
        """,
        )
        == []
    )


def test_more_sharding_never_more_per_gpu(model: duckdb.DuckDBPyConnection) -> None:
    model.execute(
        """
        CREATE OR REPLACE TEMP TABLE sharded AS
        SELECT row_number() OVER () AS job, m.model, t.method, s.sharding, n.gpu_count, 'h100-sxm-80gb' AS
            gpu, 'compile' AS stack, 2 AS micro_batch
        FROM (VALUES ('qwen2.5-0.5b'), ('llama-3.1-8b'), ('llama-3.1-70b'), ('mixtral-8x7b')) m(model),
            (VALUES ('full'), ('pretrain'), ('lora'), ('qlora')) t(method),
            (VALUES ('ddp', 0), ('zero2', 1), ('fsdp', 2)) s(sharding, level), (VALUES (2), (4), (8),
                (16), (64)) n(gpu_count)
        """
    )
    # The same sharding over more GPUs.
    assert (
        _violations(
            model,
            """
        WITH _m AS (SELECT s.*, m.memory_gib FROM memory_of('sharded') m JOIN sharded s ON s.job =
            m.job::BIGINT),
        _steps AS (SELECT *, lag(memory_gib) OVER (PARTITION BY model, method, sharding ORDER BY
            gpu_count) AS before FROM _m)
        SELECT * FROM _steps WHERE memory_gib > before + 1e-9
        """,
        )
        == []
    )
    # More of the state sharded over the same GPUs.
    assert (
        _violations(
            model,
            """
        WITH _m AS (SELECT s.*, weights_gib + gradients_gib + optimizer_gib + adapter_gib AS state_gib,
            memory_gib
            FROM memory_of('sharded') m JOIN sharded s ON s.job = m.job::BIGINT)
        SELECT * FROM _m a JOIN _m b USING (model, method, gpu_count)
        WHERE (a.sharding, b.sharding) IN (('ddp', 'zero2'), ('zero2', 'fsdp'))
            AND (b.state_gib > a.state_gib + 1e-9 OR (method IN ('full', 'pretrain') AND b.memory_gib >
                a.memory_gib + 1e-9))
        """,
        )
        == []
    )


def test_speed_is_never_above_the_peak(grid: duckdb.DuckDBPyConnection) -> None:
    assert (
        _violations(grid, "SELECT model, gpu, mfu FROM speed_of('grid') WHERE NOT mfu BETWEEN 0 AND 1") == []
    )


def test_fp8_speed_is_never_above_the_fp8_peak(model: duckdb.DuckDBPyConnection) -> None:
    model.execute(
        """
        CREATE OR REPLACE TEMP TABLE narrow AS
        SELECT m.model, g.gpu_id AS gpu, 'full' AS method, f.fp8, k.stack, 8 AS micro_batch, 8192 AS
            seq_len, 'none' AS checkpointing
        FROM (VALUES ('llama-3.1-8b'), ('llama-3.1-405b')) m(model), (VALUES (1), (2)) f(fp8), (VALUES
            ('te'), ('compile')) k(stack),
            (SELECT gpu_id FROM main.gpus WHERE has_full_specs AND fp8_dense_tflops IS NOT NULL) g
        """
    )
    assert (
        _violations(
            model,
            """
        SELECT s.model, s.gpu, s.mfu FROM speed_of('narrow') s JOIN main.gpus g ON g.gpu_id = s.gpu
        WHERE s.mfu * g.bf16_dense_tflops > coalesce(g.fp4_dense_tflops, g.fp8_dense_tflops)
        """,
        )
        == []
    )


def test_weights_shrink_from_full_to_lora_to_qlora(model: duckdb.DuckDBPyConnection) -> None:
    model.execute(
        """
        CREATE OR REPLACE TEMP TABLE methods AS
        SELECT row_number() OVER () AS job, model, method, 'a100-sxm-80gb' AS gpu, 0 AS kbit_upcast
        FROM main.models, (VALUES ('full'), ('lora'), ('qlora')) t(method)
        """
    )
    assert (
        _violations(
            model,
            """
        WITH _m AS (SELECT j.model, j.method, weights_gib, weights_gib + adapter_gib + gradients_gib +
            optimizer_gib AS state_gib
            FROM memory_of('methods') m JOIN methods j ON j.job = m.job::BIGINT)
        SELECT * FROM _m f JOIN _m l USING (model) JOIN _m q USING (model)
        WHERE f.method = 'full' AND l.method = 'lora' AND q.method = 'qlora'
            AND NOT (q.weights_gib < l.weights_gib AND l.weights_gib <= 1.001 * f.weights_gib
                AND q.state_gib < l.state_gib AND l.state_gib < f.state_gib)
        """,
        )
        == []
    )


def test_a_faster_link_is_never_slower(model: duckdb.DuckDBPyConnection) -> None:
    cursor = model.cursor()
    cursor.execute("BEGIN")
    try:
        cursor.execute(
            "INSERT INTO main.gpus BY NAME SELECT * REPLACE (gpu_id || ' faster link' AS gpu_id, nvlink_gb_s * 2 AS nvlink_gb_s, "  # noqa: E501
            "pcie_gen + 1 AS pcie_gen) FROM main.gpus WHERE gpu_id IN ('h100-sxm-80gb', 'l40s', 'rtx-4090')"
        )
        cursor.execute(
            """
            CREATE OR REPLACE TEMP TABLE links AS
            SELECT row_number() OVER () AS job, m.model, t.method, s.sharding, n.gpu_count,
                ceil(n.gpu_count / 8) AS node_count, g.gpu, l.faster,
                w.node_network_gbps, CASE WHEN l.faster THEN g.gpu || ' faster link' ELSE g.gpu END AS gpu
            FROM (VALUES ('llama-3.1-8b'), ('llama-3.1-70b')) m(model), (VALUES ('full'), ('lora'),
                ('qlora')) t(method),
                (VALUES ('ddp'), ('zero2'), ('fsdp'), ('zero3')) s(sharding), (VALUES (2), (8), (32))
                    n(gpu_count),
                (VALUES ('h100-sxm-80gb'), ('l40s'), ('rtx-4090')) g(gpu), (VALUES (false), (true)) l(faster),
                (VALUES (100), (400), (3200)) w(node_network_gbps)
            """.replace("g.gpu, l.faster", "g.gpu AS card, l.faster")
        )
        assert (
            cursor.execute(
                """
            WITH _s AS (SELECT j.*, s.tokens_per_second_per_gpu AS speed FROM speed_of('links') s JOIN
                links j ON j.job = s.job::BIGINT)
            SELECT * FROM _s a JOIN _s b USING (model, method, sharding, gpu_count, card)
            WHERE (b.faster > a.faster AND a.node_network_gbps = b.node_network_gbps OR a.faster =
                b.faster AND b.node_network_gbps > a.node_network_gbps)
                AND b.speed < a.speed - 1e-9
            LIMIT 5
            """
            ).fetchall()
            == []
        )
    finally:
        cursor.execute("ROLLBACK")
        cursor.close()


def test_longer_sequences_never_take_less_time_or_memory(model: duckdb.DuckDBPyConnection) -> None:
    model.execute(
        """
        CREATE OR REPLACE TEMP TABLE lengths AS
        SELECT row_number() OVER () AS job, m.model, 'h100-sxm-80gb' AS gpu, t.method, k.stack, f.flash AS
            flash_attention, 1 AS micro_batch, (512 * pow(2, l.doublings))::INTEGER AS seq_len,
            0 AS kbit_upcast
        FROM (VALUES ('llama-3.1-8b'), ('mixtral-8x7b'), ('gemma-3-12b'), ('mistral-7b')) m(model),
            (VALUES ('full'), ('lora'), ('qlora')) t(method),
            (VALUES ('hf'), ('liger'), ('compile'), ('te'), ('mosaic')) k(stack),
            (VALUES (0), (1)) f(flash), range(0, 12) l(doublings)
        """
    )
    assert (
        _violations(
            model,
            """
        WITH _both AS (SELECT l.*, m.memory_gib, s.step_seconds
            FROM lengths l JOIN memory_of('lengths') m ON m.job::BIGINT = l.job
            JOIN speed_of('lengths') s ON s.job::BIGINT = l.job),
        _steps AS (SELECT *, lag(memory_gib) OVER w AS memory_before, lag(step_seconds) OVER w AS time_before
            FROM _both WINDOW w AS (PARTITION BY model, method, stack, flash_attention ORDER BY seq_len))
        SELECT * FROM _steps WHERE memory_gib < memory_before - 1e-9 OR step_seconds < time_before
        """,
        )
        == []
    )


def _variants(model: duckdb.DuckDBPyConnection, like: str, **columns: list[int | None]) -> list[str]:
    """Models like one of the catalogue that differ from it in one column each; their names, in order."""
    names = []
    for column, values in columns.items():
        for value in values:
            names.append(f"{like} {column} {value}")
            model.execute(
                f"INSERT INTO main.models SELECT * REPLACE ($name AS model, $value::INTEGER AS {column}) "
                "FROM main.models WHERE model = $like",
                {"name": names[-1], "value": value, "like": like},
            )
    return names


def _costs(
    model: duckdb.DuckDBPyConnection, names: list[str], **settings: object
) -> list[tuple[float, float]]:
    """Seconds of a micro-step and needed memory in GiB of each model."""
    columns = "".join(f", ${name} AS {name}" for name in settings)
    jobs = f"SELECT unnest($names) AS model, unnest(range(len($names))) AS job{columns}"
    rows = model.execute(
        f"WITH jobs AS ({jobs}) SELECT s.step_seconds, m.memory_gib FROM speed_of('jobs') AS s "
        "JOIN memory_of('jobs') AS m USING (job) ORDER BY job::INTEGER",
        {"names": names, **settings},
    ).fetchall()
    assert len(rows) == len(names)
    return rows


@pytest.fixture
def scratch(model: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """The model's database; what a test changes is undone."""
    cursor = model.cursor()
    cursor.execute("BEGIN")
    yield cursor
    cursor.execute("ROLLBACK")
    cursor.close()


@pytest.mark.parametrize("stack", ["hf", "liger", "te"])
@pytest.mark.parametrize("seq_len", [1024, 32768])
def test_wider_windows_and_more_full_attention_never_cost_less(
    scratch: duckdb.DuckDBPyConnection, stack: str, seq_len: int
) -> None:
    settings = {"gpu": "h100-sxm-80gb", "method": "lora", "stack": stack, "seq_len": seq_len}
    windows = [256, 512, 4096, 16384, 32768, 65536, None]
    names = _variants(scratch, "llama-3.1-8b", sliding_window=windows)
    costs = _costs(scratch, names, **settings)
    assert costs == sorted(costs)
    # A window as long as the sequence is no window.
    assert costs[-3 if seq_len == 32768 else 2][0] == pytest.approx(costs[-1][0])
    mixed = _variants(scratch, names[1], full_attention_layers=[0, 4, 16, 32])
    costs = _costs(scratch, mixed, **settings)
    assert costs == sorted(costs)
    linear = _variants(scratch, "llama-3.1-8b", linear_attention_layers=[32, 24, 8, 0, None])
    costs = _costs(scratch, linear, **settings)
    assert costs == sorted(costs)
    assert costs[-2] == costs[-1]


@pytest.mark.parametrize("stack", ["hf", "liger", "te"])
def test_more_active_experts_are_never_faster(scratch: duckdb.DuckDBPyConnection, stack: str) -> None:
    scratch.execute(
        "INSERT INTO main.models SELECT m.* REPLACE (m.model || ' ' || active AS model, "
        "active AS experts_active, m.params_active "
        "+ (active - m.experts_active)::BIGINT * 3 * m.layers * m.hidden * m.intermediate AS params_active) "
        "FROM main.models AS m, (SELECT unnest([1, 2, 4, 8])::INTEGER AS active) "
        "WHERE m.model IN ('mixtral-8x7b', 'qwen3-30b-a3b')"
    )
    for like in ("mixtral-8x7b", "qwen3-30b-a3b"):
        for tokens in (256, 8192):
            costs = _costs(
                scratch, [f"{like} {active}" for active in (1, 2, 4, 8)],
                gpu="b200-sxm-180gb", gpu_count=8, method="full", stack=stack, seq_len=tokens,
            )  # fmt: skip
            assert [seconds for seconds, _ in costs] == sorted(seconds for seconds, _ in costs)


def test_the_weights_of_any_parallelism_sum_to_the_model(model: duckdb.DuckDBPyConnection) -> None:
    model.execute(
        """
        CREATE OR REPLACE TEMP TABLE parallel AS
        SELECT row_number() OVER () AS job, m.model, t.method, s.sharding, 'h100-sxm-80gb' AS gpu,
            'te' AS stack, 64 AS gpu_count, tp.n AS tensor_parallel, pp.n AS pipeline_parallel,
            cp.n AS context_parallel, ep.n AS expert_parallel, 8192 AS seq_len
        FROM (VALUES ('llama-3.1-70b'), ('mixtral-8x7b'), ('qwen3-235b-a22b')) m(model),
            (VALUES ('full'), ('lora'), ('qlora')) t(method),
            (VALUES ('none'), ('zero1'), ('fsdp')) s(sharding),
            (VALUES (1), (4)) tp(n), (VALUES (1), (4)) pp(n), (VALUES (1), (2), (4)) cp(n),
            (VALUES (1), (4)) ep(n)
        -- A dense model has no experts to spread.
        WHERE ep.n = 1 OR m.model <> 'llama-3.1-70b'
        """
    )
    assert (
        _violations(
            model,
            """
        WITH _t AS (
            SELECT t.*, d.experts FROM memory_terms_of('parallel') t JOIN main.models d USING (model)
        ),
        -- On 64 GPUs there are as many copies of what is split over n of them as 64 / n.
        _copies AS (
            SELECT *,
                CASE WHEN sharding = 'fsdp' THEN 64
                    ELSE tensor_parallel * pipeline_parallel END AS dense_split,
                CASE WHEN sharding = 'fsdp' THEN 64
                    ELSE tensor_parallel * pipeline_parallel * expert_parallel END AS expert_split,
                CASE WHEN experts > 1 THEN expert_params / params_total ELSE 0 END AS expert_share
            FROM _t
        )
        SELECT model, method, sharding, tensor_parallel, pipeline_parallel, context_parallel, expert_parallel
        FROM _copies
        WHERE abs(
            weight_bytes_per_gpu / weight_total_bytes
            / ((1 - expert_share) / dense_split + expert_share / expert_split) - 1
        ) > 1e-9
        """,
        )
        == []
    )


def test_context_parallelism_divides_tokens_and_not_weights(model: duckdb.DuckDBPyConnection) -> None:
    model.execute(
        """
        CREATE OR REPLACE TEMP TABLE context AS
        SELECT row_number() OVER () AS job, n.cp AS context_parallel, 8 AS gpu_count, 'llama-3.1-8b' AS model,
            'h200-sxm-141gb' AS gpu, 'full' AS method, 'te' AS stack, 'zero1' AS sharding, 32768 AS seq_len,
            'full' AS checkpointing
        FROM (VALUES (1), (2), (8)) n(cp)
        """
    )
    rows = model.execute(
        "SELECT m.weights_gib, m.optimizer_gib, m.activations_gib, t.collective_bytes, s.step_seconds, "
        "t.context_parallel_seconds FROM memory_of('context') m JOIN speed_of('context') s USING (job) "
        "JOIN speed_terms_of('context') t USING (job) ORDER BY job::INTEGER"
    ).fetchall()
    for quantity in (0, 1, 3):  # weights, optimizer, gradients on the links
        assert len({row[quantity] for row in rows}) == 1
    assert rows[0][2] == pytest.approx(2 * rows[1][2]) == pytest.approx(8 * rows[2][2])
    assert rows[0][4] > rows[1][4] > rows[2][4]
    assert rows[0][5] == 0
