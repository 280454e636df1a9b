-- timeless: filled for one model at a time, named by the variable grid_model
WITH _grid_model_jobs AS (
    SELECT *
    FROM grid_jobs()
    WHERE model = getvariable('grid_model')
)

SELECT
    j.model, j.method, j.seq_len, j.lora_rank, p.lora_targets, p.gpu_id, p.gpu_count, p.node_count,
    p.node_network_gbps, p.micro_batch, p.grad_accum, p.checkpointing, p.sharding, p.quantization,
    p.optimizer, p.training_precision, p.stack, p.memory_gib, p.needed_gib, p.least_needed_gib,
    p.usable_memory_gib, p.fit_probability, p.memory_low_ratio, p.memory_high_ratio,
    p.tokens_per_second, p.speed_low_ratio,
    p.speed_high_ratio, p.bottleneck, p.evidence, p.evidence_run, p.assumptions, p.training_state_gib,
    p.result_gib, p.model_download_gib
FROM plans_in_full('_grid_model_jobs') AS p
JOIN _grid_model_jobs AS j USING (job)
WHERE p.verdict <> 'does_not_fit'
ORDER BY j.model, j.method, j.seq_len, j.lora_rank, p.gpu_id, p.gpu_count, p.node_count
