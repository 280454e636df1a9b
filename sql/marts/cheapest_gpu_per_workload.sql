-- in parts by workload
WITH _workload_jobs AS (
    SELECT
        * REPLACE (
            ['cost', 'time'] AS objectives, TRUE AS ranks_each_kind,
            (SELECT value::INTEGER FROM main.cost_parameters WHERE name = 'ranking_rows') AS most_rows
        ),
        price_kinds() AS price_kinds
    FROM workload_jobs()
    WHERE coalesce(list_contains(getvariable('part'), job), TRUE)
),

_workload_plans AS (
    FROM workload_plans()
    SEMI JOIN _workload_jobs USING (job)
)

SELECT getvariable('as_of_day')::DATE AS day, job AS workload, * EXCLUDE (job, price_age_days)
FROM ranked_workloads('_workload_jobs', '_workload_plans')
ORDER BY workload, price_kind, objective, rank
