WITH _workload_jobs AS (
    SELECT *, price_kinds() AS price_kinds
    FROM workload_jobs()
),

_workload_plans AS (
    FROM workload_plans()
),

_fastest_so_far AS (
    SELECT
        *,
        min(hours) OVER (
            PARTITION BY job, price_kind
            ORDER BY total_usd, hours, gpu_count, gpu_id, source, tier NULLS LAST, term_days NULLS LAST
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS best_hours
    FROM priced_jobs('_workload_jobs', '_workload_plans')
),

_front AS (
    SELECT
        *,
        row_number() OVER _by_cost AS position,
        lag(total_usd) OVER _by_cost AS total_usd_before,
        lag(hours) OVER _by_cost AS hours_before
    FROM _fastest_so_far
    WHERE best_hours IS NULL OR hours < best_hours
    WINDOW _by_cost AS (PARTITION BY job, price_kind ORDER BY total_usd, hours)
)

SELECT
    job AS workload, price_kind, position, gpu_id, gpu_count, node_count, gpus_billed, provider, source, tier,
    tier_class, country, continent, term_days,
    total_usd, hours,
    (total_usd - total_usd_before) / (hours_before - hours) AS usd_per_hour_saved,
    hours <= w.max_hours AS meets_deadline,
    verdict, fit_probability, evidence
FROM _front
JOIN main.workloads AS w ON w.workload = job
ORDER BY workload, price_kind, position
