-- As asked, the jobs might fit, at twice the speed, or not at all (unsure); half of the sequences fits on 2 GPUs, a
-- quarter of them on one; and a micro-batch of 3.
WITH done AS (
    FROM completed_jobs('relaxing')
),

planned AS (
    SELECT
        r.job, p.* REPLACE (
            r.seq_len AS seq_len,
            CASE
                WHEN r.relaxed IS NULL THEN CASE r.job WHEN 'unsure' THEN 0 ELSE 0.65049 END
                WHEN r.relaxed = 'seq_len' AND 4 * r.seq_len > o.seq_len AND p.gpu_count = 1 THEN 0
                ELSE p.fit_probability
            END AS fit_probability,
            CASE
                WHEN r.relaxed IS NOT NULL THEN 'fits' WHEN r.job = 'unsure' THEN 'does_not_fit' ELSE 'tight'
            END AS verdict,
            CASE r.relaxed WHEN 'micro_batch' THEN 3 ELSE p.micro_batch END AS micro_batch,
            p.tokens_per_second * CASE WHEN r.relaxed IS NULL THEN 2 ELSE 1 END AS tokens_per_second
        )
    FROM relaxed_jobs('done') AS r
    JOIN done AS o ON o.job = r.of_job
    CROSS JOIN main.plans AS p
    WHERE p.gpu_id = 'card'
)

SELECT job, constraints, asked, nearest, total_usd, hours, fit_probability, gpu_count
FROM nearest_answers('done', 'planned')
