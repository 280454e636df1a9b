-- One GPU might fit; sixteen, which are two machines, do fit.
WITH done AS (
    FROM completed_jobs('relaxing')
),

planned AS (
    SELECT
        d.job,
        p.* REPLACE (CASE p.gpu_count WHEN 16 THEN p.fit_probability ELSE 0.65049 END AS fit_probability)
    FROM done AS d
    CROSS JOIN main.plans AS p
    WHERE p.gpu_id = 'card'
)

SELECT
    replace(job, chr(31), ' ') AS job, of_job, relaxed.setting AS relaxed, method, seq_len, micro_batch, offload,
    optimizer, training_precision, lora_rank
FROM relaxed_jobs('done', 'planned')
