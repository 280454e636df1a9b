WITH jobs AS (
    SELECT * REPLACE (TRUE AS assumed_sizes), ['on_demand'] AS price_kinds
    FROM workload_jobs()
),

job_plans AS (
    SELECT 'job' AS job, * FROM main.plans
)

SELECT source, gpu_count, size_evidence, assumptions
FROM ranked_jobs('jobs', 'job_plans')
