WITH done AS (
    FROM completed_jobs('explained')
),

published AS (
    FROM published_plans('done')
),

planned AS (
    SELECT
        * REPLACE (
            CASE job WHEN 'does not fit' THEN 'does_not_fit' ELSE verdict END AS verdict,
            CASE job WHEN 'might not fit' THEN 0.89 ELSE fit_probability END AS fit_probability,
            CASE WHEN job = 'not so many' AND gpu_id = 'quick' THEN 4 ELSE gpu_count END AS gpu_count,
            CASE WHEN job LIKE '%host memory' THEN 'cpu' ELSE offload END AS offload,
            CASE WHEN job LIKE '%host memory' THEN 5e3 ELSE training_state_gib END AS training_state_gib,
            CASE WHEN job LIKE '%host memory' THEN 10 ELSE model_download_gib END AS model_download_gib,
            CASE
                WHEN job = 'network met' THEN 400
                WHEN job LIKE 'network%' AND gpu_count = 16 THEN 800
                ELSE node_network_gbps
            END AS node_network_gbps
        ),
        CASE job WHEN 'does not fit' THEN 'too_little_memory' END AS infeasible_reason
    FROM published
    WHERE job <> 'another number' OR gpu_count > 1
    UNION ALL BY NAME
    SELECT * REPLACE ('huge' AS gpu_id)
    FROM published
    WHERE job = 'no price' AND gpu_id = 'quick'
    UNION ALL BY NAME
    SELECT * REPLACE (2 AS gpu_count)
    FROM published
    WHERE job = 'host memory' AND gpu_id = 'quick'
),

ranked AS (
    FROM ranked_jobs('done', 'planned')
)

FROM why_not_for('done', 'planned', 'ranked')
