-- in parts by workload
WITH _workload_jobs AS (
    SELECT
        * REPLACE (
            ['pareto'] AS objectives, TRUE AS ranks_each_kind,
            'infinity'::DOUBLE AS max_hours
        ),
        max_hours AS deadline_hours, price_kinds() AS price_kinds
    FROM workload_jobs()
    WHERE coalesce(list_contains(getvariable('part'), job), TRUE)
),

_workload_plans AS (
    FROM workload_plans()
    SEMI JOIN _workload_jobs USING (job)
),

_front AS (
    SELECT
        *,
        lag(total_usd) OVER _by_cost AS total_usd_before,
        lag(hours) OVER _by_cost AS hours_before
    FROM ranked_workloads('_workload_jobs', '_workload_plans')
    WINDOW _by_cost AS (PARTITION BY job, price_kind ORDER BY rank)
)

SELECT
    f.job AS workload, f.price_kind, f.rank AS position, f.gpu_id, f.gpu_count, f.node_count, f.gpus_billed,
    f.provider, f.source, f.tier, f.tier_class, f.country, f.continent, f.term_days,
    f.total_usd, f.hours,
    (f.total_usd - f.total_usd_before) / (f.hours_before - f.hours) AS usd_per_hour_saved,
    f.hours <= j.deadline_hours AS meets_deadline,
    f.verdict, f.fit_probability, f.evidence
FROM _front AS f
JOIN _workload_jobs AS j USING (job)
ORDER BY workload, f.price_kind, position
