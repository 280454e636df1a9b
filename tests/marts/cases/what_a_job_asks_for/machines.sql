WITH done AS (
    FROM completed_jobs('listed')
),

planned AS (
    SELECT *, NULL::VARCHAR AS infeasible_reason
    FROM published_plans('done')
),

ranked AS (
    FROM cheapest_published('listed')
)

FROM machine_ranks('done', 'planned', 'ranked')
