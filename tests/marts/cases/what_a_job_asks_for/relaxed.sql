WITH done AS (
    FROM completed_jobs('relaxing')
)

SELECT replace(job, chr(31), ' ') AS job, of_job, relaxed, seq_len, micro_batch, min_fit_probability
FROM relaxed_jobs('done')
