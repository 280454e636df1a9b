-- The planner's result for each combination of model, method, sequence length and rank on each number of
-- GPUs, and the workloads with that combination.
SELECT
    list(job ORDER BY job) AS jobs, gpu_id, gpu_count, node_count,
    any_value(COLUMNS(['fit_probability', 'evidence', 'evidence_run', 'tokens_per_second'])),
    any_value(usable_memory_gib - memory_margin_gib) AS needed_gib
FROM workload_plans()
WHERE verdict <> 'does_not_fit'
GROUP BY model, method, seq_len, lora_rank, gpu_id, gpu_count, node_count
ORDER BY jobs, gpu_id, gpu_count, node_count
