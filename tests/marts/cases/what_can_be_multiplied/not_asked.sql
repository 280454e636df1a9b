WITH jobs AS (
    SELECT
        workload AS job, tokens, 1e0 AS epochs, 8 AS max_gpus, ['on_demand'] AS price_kinds,
        FALSE AS assumed_sizes
    FROM main.workloads
),

job_plans AS (
    SELECT 'job' AS job, * FROM main.plans
)

SELECT source, gpu_count, size_evidence, array_to_string(price_assumptions, '; ') AS assumptions
FROM priced_jobs('jobs', 'job_plans')
