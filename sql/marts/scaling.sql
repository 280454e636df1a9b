WITH _workload_jobs AS (
    SELECT * REPLACE (8 AS max_gpus), ['on_demand'] AS price_kinds
    FROM workload_jobs()
    WHERE scenario
),

_workload_plans AS (
    FROM workload_plans()
    SEMI JOIN _workload_jobs USING (job)
    WHERE node_count = 1 AND gpu_count <= 8 AND verdict = 'fits' AND tokens_per_second > 0
),

_cheapest AS (
    SELECT *
    FROM priced_jobs('_workload_jobs', '_workload_plans')
    QUALIFY row_number() OVER (
        PARTITION BY job, gpu_id, gpu_count ORDER BY total_usd, hours, source, tier NULLS LAST
    ) = 1
),

_scaled AS (
    SELECT
        p.job AS workload, p.gpu_id, p.gpu_count, p.tokens_per_second,
        j.tokens / p.tokens_per_second / 3600 AS train_hours,
        first_value(p.gpu_count) OVER _series AS least_gpu_count,
        first_value(p.tokens_per_second) OVER _series AS least_tokens_per_second,
        c.source, c.hours, c.total_usd,
        first_value(c.total_usd) OVER _series AS least_total_usd
    FROM _workload_plans AS p
    JOIN _workload_jobs AS j USING (job)
    LEFT JOIN _cheapest AS c USING (job, gpu_id, gpu_count)
    WINDOW _series AS (PARTITION BY p.job, p.gpu_id ORDER BY p.gpu_count)
)

SELECT
    workload, gpu_id, gpu_count, tokens_per_second, least_gpu_count,
    tokens_per_second / least_tokens_per_second AS speedup,
    tokens_per_second / least_tokens_per_second * least_gpu_count / gpu_count AS efficiency,
    train_hours, source, hours, total_usd,
    total_usd / least_total_usd AS cost_ratio
FROM _scaled
ORDER BY workload, gpu_id, gpu_count
