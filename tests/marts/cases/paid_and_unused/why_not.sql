WITH done AS (
    FROM completed_jobs('jobs')
),

planned AS (
    SELECT *, NULL::VARCHAR AS infeasible_reason FROM published_plans('done')
),

ranked AS (
    FROM ranked_jobs('done', 'planned')
)

SELECT
    job, reason, nearest.gpu_count AS gpu_count, nearest.total_usd AS total_usd, nearest.hours AS hours,
    nearest.share_used AS share_used
FROM why_not_for('done', 'planned', 'ranked')
