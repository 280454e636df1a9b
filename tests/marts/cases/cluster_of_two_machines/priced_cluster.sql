WITH jobs AS (
    SELECT * REPLACE (16 AS max_gpus), ['on_demand', 'spot'] AS price_kinds
    FROM workload_jobs()
),

job_plans AS (
    SELECT 'job' AS job, * FROM main.plans
)

FROM ranked_jobs('jobs', 'job_plans')
