-- The planner's result for each recipe (model, method, sequence length, rank) on each number of GPUs, and the
-- recipe's workloads.
SELECT
    w.jobs, p.gpu_id, p.gpu_count, p.node_count, p.fit_probability, p.evidence, p.evidence_run,
    p.tokens_per_second, p.usable_memory_gib - p.memory_margin_gib AS needed_gib
FROM (
    SELECT model, method, seq_len, lora_rank, list(workload ORDER BY workload) AS jobs
    FROM main.workloads
    GROUP BY model, method, seq_len, lora_rank
) AS w
JOIN main.plans AS p
    ON p.model = w.model AND p.method = w.method AND p.seq_len = w.seq_len
    AND p.lora_rank IS NOT DISTINCT FROM w.lora_rank
WHERE p.verdict <> 'does_not_fit'
ORDER BY w.jobs, p.gpu_id, p.gpu_count, p.node_count
