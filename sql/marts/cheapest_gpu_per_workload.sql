WITH _workload_jobs AS (
    SELECT *, price_kinds() AS price_kinds
    FROM workload_jobs()
),

_workload_plans AS (
    FROM workload_plans()
),

_workload_costs AS (
    SELECT *, concat_ws(' ', job, price_kind) AS ranking
    FROM priced_jobs('_workload_jobs', '_workload_plans')
),

_workload_in_time AS (
    SELECT * FROM within_deadline('_workload_costs', '_workload_jobs')
),

_workload_ranked AS (
    SELECT
        c.*,
        o.objective,
        row_number() OVER (
            PARTITION BY c.job, c.price_kind, o.objective
            ORDER BY
                CASE o.objective WHEN 'cost' THEN c.total_usd ELSE round(c.hours, 2) END,
                c.total_usd, c.hours,
                c.gpu_count, c.gpu_id, c.source, c.tier NULLS LAST, c.region NULLS LAST,
                c.instance_type NULLS LAST, c.raw_label,
                c.term_days NULLS LAST
        ) AS rank
    FROM _workload_in_time AS c
    CROSS JOIN (SELECT unnest(['cost', 'time']) AS objective) AS o
    QUALIFY rank <= (SELECT value FROM main.cost_parameters WHERE name = 'ranking_rows')
)

SELECT
    getvariable('as_of_day')::DATE AS day,
    b.job AS workload, w.model, w.method,
    b.* EXCLUDE (job, price_age_days)
FROM with_cost_bands('_workload_ranked') AS b
JOIN main.workloads AS w ON w.workload = b.job
ORDER BY workload, price_kind, objective, rank
