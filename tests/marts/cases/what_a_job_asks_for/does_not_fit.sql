WITH done AS (
    FROM completed_jobs('sure')
),

planned AS (
    SELECT * REPLACE (
        'does_not_fit' AS verdict,
        CASE gpu_count WHEN 16 THEN 'huge' ELSE gpu_id END AS gpu_id,
        memory_margin_gib - CASE job WHEN 'bold' THEN 38 WHEN 'bolder' THEN 20 ELSE 50 END AS memory_margin_gib
    )
    FROM published_plans('done')
)

FROM nearest_answers('done', 'planned')
