-- As asked, the jobs might fit, at twice the speed, or not at all (unsure); half of the sequences fits on 2 GPUs, a
-- quarter of them on one; and a micro-batch of 3. What else can be changed fits on one.
WITH done AS (
    FROM completed_jobs('relaxing')
),

as_asked AS (
    SELECT
        d.job, p.* REPLACE (
            d.seq_len AS seq_len,
            CASE d.job WHEN 'unsure' THEN 0 ELSE 0.65049 END AS fit_probability,
            CASE d.job WHEN 'unsure' THEN 'does_not_fit' ELSE 'tight' END AS verdict,
            2 * p.tokens_per_second AS tokens_per_second
        )
    FROM done AS d
    CROSS JOIN main.plans AS p
    WHERE p.gpu_id = 'card'
),

planned AS (
    FROM as_asked
    UNION ALL BY NAME
    SELECT
        r.job, p.* REPLACE (
            r.seq_len AS seq_len,
            CASE
                WHEN r.relaxed.setting = 'seq_len' AND 4 * r.seq_len > o.seq_len AND p.gpu_count = 1 THEN 0
                WHEN r.of_job = 'unsure' AND r.relaxed.setting <> 'seq_len' THEN 0
                ELSE p.fit_probability
            END AS fit_probability,
            'fits' AS verdict,
            CASE r.relaxed.setting WHEN 'micro_batch' THEN 3 ELSE p.micro_batch END AS micro_batch
        )
    FROM relaxed_jobs('done', 'as_asked') AS r
    JOIN done AS o ON o.job = r.of_job
    CROSS JOIN main.plans AS p
    WHERE p.gpu_id = 'card' AND r.relaxed IS NOT NULL
)

SELECT job, constraints, asked, nearest, total_usd, hours, fit_probability, gpu_count
FROM nearest_answers('done', 'planned')
