-- What the planner says of each workload on each number of GPUs.
SELECT
    job, gpu_id, gpu_count, node_count, fit_probability, evidence, evidence_run, tokens_per_second,
    usable_memory_gib - memory_margin_gib AS needed_gib
FROM workload_plans()
WHERE verdict <> 'does_not_fit'
