WITH done AS (
    FROM completed_jobs('asked')
),

planned AS (
    FROM published_plans('done')
)

FROM kept_machines('done', 'planned', 52)
