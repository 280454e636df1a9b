-- Only what is relaxed has plans that fit: half of the sequences on 2 GPUs, a quarter of them on one; a micro-batch
-- of 3; a probability of 0.65 at twice the speed.
WITH done AS (
    FROM completed_jobs('relaxing')
),

planned AS (
    SELECT
        r.job, p.* REPLACE (
            r.seq_len AS seq_len,
            CASE
                WHEN r.relaxed IS NULL THEN 0
                WHEN r.relaxed = 'min_fit_probability' THEN 0.65049
                WHEN r.relaxed = 'seq_len' AND 4 * r.seq_len > o.seq_len AND p.gpu_count = 1 THEN 0
                ELSE p.fit_probability
            END AS fit_probability,
            CASE WHEN r.relaxed IS NULL THEN 'does_not_fit' ELSE 'fits' END AS verdict,
            CASE r.relaxed WHEN 'micro_batch' THEN 3 ELSE p.micro_batch END AS micro_batch,
            p.tokens_per_second * CASE r.relaxed WHEN 'min_fit_probability' THEN 2 ELSE 1 END
                AS tokens_per_second
        )
    FROM relaxed_jobs('done') AS r
    JOIN done AS o ON o.job = r.of_job
    CROSS JOIN main.plans AS p
    WHERE p.gpu_id = 'card'
)

SELECT job, constraints, asked, nearest, total_usd, hours, fit_probability, gpu_count
FROM nearest_answers('done', 'planned')
