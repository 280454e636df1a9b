-- Which published measurements of training on an RTX 4090 is the model calibrated on?
SELECT run_id, source, model, method, seq_len, micro_batch, measured_memory_gib,
    measured_tokens_per_second_per_gpu
FROM measured_runs
WHERE gpu = 'rtx-4090'
ORDER BY source, run_id
LIMIT 20
