WITH done AS (
    FROM completed_jobs('asked')
),

ranked AS (
    FROM cheapest_published('asked')
)

FROM cost_history('done', 'ranked')
