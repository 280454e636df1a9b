WITH done AS (
    FROM completed_jobs('unanswered')
),

planned AS (
    FROM published_plans('done')
)

FROM nearest_answers('done', 'planned')
