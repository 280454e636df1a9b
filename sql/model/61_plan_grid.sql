-- Plans computed in advance, so that the most common jobs need no planner.

CREATE OR REPLACE MACRO grid_methods() AS TABLE
SELECT m.method, CASE WHEN m.method <> 'full' THEN d.lora_rank END AS lora_rank
FROM (VALUES ('full'), ('lora'), ('qlora')) AS m (method)
CROSS JOIN plan_defaults() AS d;
COMMENT ON MACRO TABLE grid_methods IS 'The methods of plan_grid and fits_on, with the rank of the adapters (null for full fine-tuning).';

CREATE OR REPLACE MACRO grid_jobs() AS TABLE
SELECT
    concat_ws(' ', m.model, s.method, l.seq_len, s.lora_rank) AS job,
    m.model, s.method, l.seq_len, s.lora_rank
FROM main.models AS m
CROSS JOIN grid_methods() AS s
CROSS JOIN (SELECT unnest([seq_len, 2 * seq_len, 4 * seq_len]) AS seq_len FROM plan_defaults()) AS l
-- The plans of the catalogue's workloads are in main.plans.
ANTI JOIN main.workloads AS w
    ON w.model = m.model AND w.method = s.method AND w.seq_len = l.seq_len
    AND w.lora_rank IS NOT DISTINCT FROM s.lora_rank;
COMMENT ON MACRO TABLE grid_jobs IS
    'The jobs of plan_grid: every combination of model, method and sequence length in the grid, except those of the catalogue''s workloads.';

CREATE OR REPLACE MACRO grid_plans() AS TABLE
SELECT
    model, method, seq_len, lora_rank, lora_targets, gpu_id, gpu_count, node_count, node_network_gbps,
    micro_batch, grad_accum, checkpointing, sharding, offload, quantization, optimizer, training_precision,
    stack, memory_gib, memory_gib_low, memory_gib_high, usable_memory_gib, memory_margin_gib,
    least_needed_gib, verdict,
    fit_probability, tokens_per_second, tokens_per_second_low, tokens_per_second_high,
    tokens_per_second_per_gpu, bottleneck, evidence, evidence_run, assumptions, training_state_gib,
    result_gib, model_download_gib
FROM main.plans
WHERE verdict <> 'does_not_fit'
UNION ALL BY NAME
SELECT
    * EXCLUDE (needed_gib, memory_low_ratio, memory_high_ratio, speed_low_ratio, speed_high_ratio),
    '' AS offload, memory_gib * memory_low_ratio AS memory_gib_low,
    high_memory_gib(memory_gib, needed_gib, usable_memory_gib, memory_high_ratio) AS memory_gib_high,
    usable_memory_gib - needed_gib AS memory_margin_gib,
    plan_verdict(needed_gib, usable_memory_gib, fit_probability) AS verdict,
    tokens_per_second * speed_low_ratio AS tokens_per_second_low,
    tokens_per_second * speed_high_ratio AS tokens_per_second_high,
    tokens_per_second / gpu_count AS tokens_per_second_per_gpu
FROM main.plan_grid;
COMMENT ON MACRO TABLE grid_plans IS
    'The plans that the file contains, for workloads (plans) and for the grid (plan_grid), with the columns of job_plans except the terms of memory and time; plans that do not fit are omitted. A combination of model, method, sequence length and rank without a row is outside the grid, or does not fit on any GPU.';
