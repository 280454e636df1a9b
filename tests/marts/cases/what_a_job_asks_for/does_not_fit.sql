WITH done AS (
    FROM completed_jobs('sure')
),

planned AS (
    SELECT * REPLACE (
        'does_not_fit' AS verdict,
        memory_margin_gib - CASE job WHEN 'bold' THEN 38 WHEN 'bolder' THEN 20 ELSE 50 END AS memory_margin_gib
    )
    FROM published_plans('done')
)

FROM nearest_answers('done', 'planned')
