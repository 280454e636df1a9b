-- fail: published plans contradict physics, or are far from anything that was measured
WITH _limits AS (
    SELECT
        -- The first is for ties and buffers of dequantized weights, the second for needs to a tenth of a GiB.
        0.02 AS slack, 0.05 AS probability_slack,
        -- The highest measured share of the 16-bit peak is 0.60. Cards with more bandwidth per FLOP than any
        -- that was measured (H20) lose less time to memory traffic; their large matrix products reach 0.96.
        0.65 AS most_utilization, 0.96 AS most_with_much_bandwidth, 0.02 AS much_bandwidth_per_flop,
        0.05 AS least_utilization
),

_plans AS (
    SELECT
        p.*, concat_ws(' ', p.model, p.method, p.seq_len, p.lora_rank) AS job, l.*,
        p.usable_memory_gib - p.memory_margin_gib AS needed_gib,
        coalesce(g.bf16_dense_tflops, g.fp16_dense_tflops) AS dense_tflops,
        p.tokens_per_second_per_gpu * 2e-12 * (m.params_active - (m.params_total - m.params_linear))
        * CASE WHEN p.method IN ('full', 'pretrain') THEN 3 ELSE 2 END
        -- The products of some consumer cards were measured above the peak of their datasheets, and those
        -- of others are expected up to most_above_datasheet.
        / greatest(dense_tflops, coalesce(
            g.gemm_bf16_measured_tflops, dense_tflops * most_above_datasheet()
        )) AS utilization,
        g.bandwidth_gb_s / dense_tflops / 1000 > l.much_bandwidth_per_flop AS has_much_bandwidth,
        -- Their data pass through host memory, which is enough for two cards (speed_terms).
        p.bottleneck = 'communication' AND NOT g.peer_to_peer AS is_bound_by_host
    FROM main.plans AS p
    JOIN main.models AS m USING (model)
    JOIN main.gpus AS g USING (gpu_id)
    CROSS JOIN _limits AS l
    -- A card that was measured may well be slower than the model says of its peers.
    WHERE p.verdict = 'fits' AND NOT is_own_corrected(p.assumptions)
),

-- Cards that are at least as good as another in all that a plan depends on. Measured rates of matrix products
-- are not compared with estimated ones.
_better AS (
    SELECT o.gpu_id AS lesser, n.gpu_id AS better
    FROM main.gpus AS o
    JOIN main.gpus AS n
        ON n.gpu_id <> o.gpu_id AND n.vendor = o.vendor AND n.year >= o.year
        AND n.usable_memory_gib >= o.usable_memory_gib AND n.bandwidth_gb_s >= o.bandwidth_gb_s
        AND n.bf16_dense_tflops >= o.bf16_dense_tflops AND n.fp32_tflops >= o.fp32_tflops
        AND coalesce(n.gemm_bf16_measured_tflops >= o.gemm_bf16_measured_tflops,
            n.gemm_bf16_measured_tflops IS NULL AND o.gemm_bf16_measured_tflops IS NULL)
        AND n.tdp_w >= o.tdp_w AND coalesce(n.cache_mib, 0) >= coalesce(o.cache_mib, 0)
        AND n.pcie_gen >= o.pcie_gen AND n.peer_to_peer >= o.peer_to_peer
        AND coalesce(n.nvlink_gb_s, 0) >= coalesce(o.nvlink_gb_s, 0)
        AND (n.nvlink_topology, n.max_gpus_per_node)
        IS NOT DISTINCT FROM (o.nvlink_topology, o.max_gpus_per_node)
),

_findings AS (
    SELECT 'a better card is slower' AS kind, n.job, n.gpu_id, n.gpu_count,
        o.tokens_per_second / n.tokens_per_second AS ratio
    FROM _better AS b
    JOIN _plans AS o ON o.gpu_id = b.lesser
    JOIN _plans AS n ON n.gpu_id = b.better AND n.job = o.job AND n.gpu_count = o.gpu_count
    WHERE ratio > 1 + n.slack
    UNION ALL
    SELECT 'more GPUs in one machine are slower', n.job, n.gpu_id, n.gpu_count,
        o.tokens_per_second / n.tokens_per_second AS ratio
    FROM _plans AS n
    JOIN _plans AS o ON o.job = n.job AND o.gpu_id = n.gpu_id AND 2 * o.gpu_count = n.gpu_count
    WHERE n.node_count = 1 AND ratio > 1 + n.slack AND NOT n.is_bound_by_host
    UNION ALL
    SELECT s.method || ' needs more memory than ' || o.method, s.job, s.gpu_id, s.gpu_count,
        s.needed_gib / o.needed_gib AS ratio
    FROM _plans AS s
    JOIN _plans AS o
        ON (s.method, o.method) IN (('lora', 'full'), ('qlora', 'lora')) AND o.model = s.model
        AND (o.seq_len, o.gpu_id, o.gpu_count, o.sharding, o.checkpointing, o.micro_batch)
        = (s.seq_len, s.gpu_id, s.gpu_count, s.sharding, s.checkpointing, s.micro_batch)
        -- Under FSDP, adapters hold a second copy of the checkpoints, which outweighs what is left of the
        -- training state on many GPUs (doubles_checkpoints).
        AND NOT (s.method = 'lora' AND s.sharding = 'fsdp' AND s.gpu_count > 8)
    WHERE ratio > 1 + s.slack
    UNION ALL
    SELECT 'more of the peak than any run reached', job, gpu_id, gpu_count, utilization FROM _plans
    WHERE utilization > CASE WHEN has_much_bandwidth THEN most_with_much_bandwidth ELSE most_utilization END
    UNION ALL
    SELECT 'less of the peak than links explain', job, gpu_id, gpu_count, 1 / utilization FROM _plans
    WHERE utilization < least_utilization AND node_count = 1 AND bottleneck <> 'communication'
    UNION ALL
    SELECT 'the same need has another P(fits)', job, min(gpu_id), gpu_count,
        max(fit_probability) - min(fit_probability) AS ratio FROM _plans
    GROUP BY job, gpu_count, round(least_needed_gib, 1), round(usable_memory_gib, 1), probability_slack
    HAVING ratio > probability_slack
)

SELECT kind, count(*) AS plans, max(ratio) AS worst, arg_max((job, gpu_count, gpu_id), ratio) AS plan
FROM _findings
GROUP BY kind
ORDER BY kind
