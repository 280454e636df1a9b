WITH jobs AS (
    SELECT * REPLACE (0.5 AS min_fit_probability), ['on_demand'] AS price_kinds
    FROM workload_jobs()
),

job_plans AS (
    FROM workload_plans()
)

FROM ranked_jobs('jobs', 'job_plans')
