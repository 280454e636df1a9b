WITH done AS (
    FROM completed_jobs('jobs')
),

planned AS (
    SELECT *, NULL::VARCHAR AS infeasible_reason FROM published_plans('done')
),

ranked AS (
    FROM ranked_jobs('done', 'planned')
)

SELECT job, reason, constraints, asked, cheapest.provider AS provider, cheapest.usd AS usd
FROM why_not_for('done', 'planned', 'ranked')
