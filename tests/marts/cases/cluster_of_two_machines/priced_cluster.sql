WITH jobs AS (
    SELECT
        workload AS job, tokens, 1e0 AS epochs, 16 AS max_gpus, 0.9 AS min_fit_probability,
        ['on_demand', 'spot'] AS price_kinds, FALSE AS assumed_sizes
    FROM main.workloads
),

job_plans AS (
    SELECT 'job' AS job, * FROM main.plans
),

priced AS (
    FROM priced_jobs('jobs', 'job_plans')
)

SELECT *
FROM with_cost_bands('priced')
