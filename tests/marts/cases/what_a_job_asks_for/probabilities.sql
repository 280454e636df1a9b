WITH usual AS (
    FROM completed_jobs('sure')
),

planned AS (
    FROM published_plans('usual')
),

done AS (
    SELECT
        * REPLACE (
            CASE job WHEN 'bold' THEN 0.95 WHEN 'bolder' THEN 0.97 WHEN 'sure' THEN 0.999 ELSE min_fit_probability END
                AS min_fit_probability,
            map {'min_fit_probability': 'as asked'} AS asked
        )
    FROM usual
)

SELECT job, raw_label, total_usd, NULL AS constraints, NULL AS asked, NULL AS nearest
FROM ranked_jobs('done', 'planned')
UNION ALL
SELECT job, NULL, total_usd, constraints, asked, nearest
FROM nearest_answers('done', 'planned')
