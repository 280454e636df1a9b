-- timeless: depends on the catalogue and the model, not on the day
-- noqa: disable=LT05
WITH _base AS (
    SELECT m.model, g.gpu_id AS gpu, 4 AS micro_batch, 2048 AS seq_len, 8 AS grad_accum, 'smi' AS memory_metric, 0 AS kbit_upcast,
        CASE WHEN g.bf16_dense_tflops IS NULL THEN 'fp16' ELSE 'bf16' END AS training_precision,
        -- Cards that share a machine over PCIe at best are looked at in pairs, others by eights.
        CASE WHEN g.nvlink_gb_s IS NULL THEN 2 ELSE least(8, g.max_gpus_per_node) END AS several,
        g.fp8_dense_tflops IS NOT NULL AS has_fp8
    FROM (SELECT DISTINCT model FROM main.workloads) AS m, main.gpus AS g
    WHERE g.has_full_specs AND g.derived_from IS NULL AND g.architecture NOT IN ('Kepler', 'Maxwell', 'Pascal')
),

-- What changes: settings without the technique, and with it.
_techniques (technique, method, gpus, changed, without_stack, with_stack, without_checkpointing, with_checkpointing, without_flash, with_flash,
    without_optimizer, with_optimizer, without_sharding, with_sharding, without_offload, with_offload, without_method, without_quantization, with_quantization, without_fp8, with_fp8) AS (
    VALUES
    ('gradient checkpointing', 'lora', 'one', 'checkpointing: none to full', 'liger', 'liger', 'none', 'full', 1, 1, 'adamw_fused', 'adamw_fused', 'none', 'none', '', '', 'lora', 'none', 'none', 0, 0),
    ('gradient checkpointing', 'full', 'one', 'checkpointing: none to full', 'liger', 'liger', 'none', 'full', 1, 1, 'adamw_fused', 'adamw_fused', 'none', 'none', '', '', 'full', 'none', 'none', 0, 0),
    ('selective checkpointing', 'full', 'one', 'checkpointing: none to sac', 'liger', 'liger', 'none', 'sac', 1, 1, 'adamw_fused', 'adamw_fused', 'none', 'none', '', '', 'full', 'none', 'none', 0, 0),
    ('flash attention', 'lora', 'one', 'flash_attention: 0 to 1', 'hf', 'hf', 'full', 'full', 0, 1, 'adamw_fused', 'adamw_fused', 'none', 'none', '', '', 'lora', 'none', 'none', 0, 0),
    ('compile', 'full', 'one', 'stack: torchtune to compile', 'torchtune', 'compile', 'full', 'full', 1, 1, 'adamw_fused', 'adamw_fused', 'none', 'none', '', '', 'full', 'none', 'none', 0, 0),
    ('fused kernels', 'lora', 'one', 'stack: hf to foak', 'hf', 'foak', 'full', 'full', 1, 1, 'adamw_fused', 'adamw_fused', 'none', 'none', '', '', 'lora', 'none', 'none', 0, 0),
    ('fused linear loss', 'lora', 'one', 'stack: hf to liger', 'hf', 'liger', 'full', 'full', 1, 1, 'adamw_fused', 'adamw_fused', 'none', 'none', '', '', 'lora', 'none', 'none', 0, 0),
    ('fused optimizer', 'full', 'one', 'optimizer: adamw to adamw_fused', 'liger', 'liger', 'full', 'full', 1, 1, 'adamw', 'adamw_fused', 'none', 'none', '', '', 'full', 'none', 'none', 0, 0),
    ('8-bit optimizer', 'full', 'one', 'optimizer: adamw_fused to adamw8bit', 'liger', 'liger', 'full', 'full', 1, 1, 'adamw_fused', 'adamw8bit', 'none', 'none', '', '', 'full', 'none', 'none', 0, 0),
    ('LoRA', 'lora', 'one', 'method: full to lora', 'liger', 'liger', 'full', 'full', 1, 1, 'adamw_fused', 'adamw_fused', 'none', 'none', '', '', 'full', 'none', 'none', 0, 0),
    ('QLoRA', 'qlora', 'one', 'method: lora to qlora', 'liger', 'liger', 'full', 'full', 1, 1, 'adamw_fused', 'adamw_fused', 'none', 'none', '', '', 'lora', 'none', 'nf4', 0, 0),
    ('double quantization', 'qlora', 'one', 'quantization: nf4 to nf4dq', 'liger', 'liger', 'full', 'full', 1, 1, 'adamw_fused', 'adamw_fused', 'none', 'none', '', '', 'qlora', 'nf4', 'nf4dq', 0, 0),
    ('fp8', 'full', 'one', 'fp8: 0 to 1', 'te', 'te', 'full', 'full', 1, 1, 'adamw_fused', 'adamw_fused', 'none', 'none', '', '', 'full', 'none', 'none', 0, 1),
    ('ZeRO-2', 'full', 'several', 'sharding: ddp to zero2', 'liger', 'liger', 'full', 'full', 1, 1, 'adamw_fused', 'adamw_fused', 'ddp', 'zero2', '', '', 'full', 'none', 'none', 0, 0),
    ('FSDP', 'full', 'several', 'sharding: ddp to fsdp', 'liger', 'liger', 'full', 'full', 1, 1, 'adamw_fused', 'adamw_fused', 'ddp', 'fsdp', '', '', 'full', 'none', 'none', 0, 0),
    ('FSDP', 'lora', 'several', 'sharding: ddp to fsdp', 'liger', 'liger', 'full', 'full', 1, 1, 'adamw_fused', 'adamw_fused', 'ddp', 'fsdp', '', '', 'lora', 'none', 'none', 0, 0),
    ('CPU offload', 'full', 'several', 'offload: none to cpu', 'liger', 'liger', 'full', 'full', 1, 1, 'adamw_fused', 'adamw_fused', 'fsdp', 'fsdp', '', 'cpu', 'full', 'none', 'none', 0, 0),
    ('activation offload', 'lora', 'one', 'offload: none to act', 'liger', 'liger', 'full', 'full', 1, 1, 'adamw_fused', 'adamw_fused', 'none', 'none', '', 'act', 'lora', 'none', 'none', 0, 0)
),

_pairs AS (
    SELECT b.*, t.*, CASE t.gpus WHEN 'one' THEN 1 ELSE b.several END AS gpu_count
    FROM _base AS b, _techniques AS t
    WHERE (t.with_fp8 = 0 OR b.has_fp8) AND (t.gpus = 'one' OR b.several > 1)
),

_jobs AS (
    SELECT
        concat_ws('|', model, gpu, technique, method, side) AS job, model, gpu, gpu_count, micro_batch, seq_len, grad_accum, memory_metric, kbit_upcast, training_precision,
        CASE side WHEN 'with' THEN method ELSE without_method END AS method,
        CASE side WHEN 'with' THEN with_stack ELSE without_stack END AS stack,
        CASE side WHEN 'with' THEN with_checkpointing ELSE without_checkpointing END AS checkpointing,
        CASE side WHEN 'with' THEN with_flash ELSE without_flash END AS flash_attention,
        CASE side WHEN 'with' THEN with_optimizer ELSE without_optimizer END AS optimizer,
        CASE side WHEN 'with' THEN with_sharding ELSE without_sharding END AS sharding,
        CASE side WHEN 'with' THEN with_offload ELSE without_offload END AS offload,
        CASE side WHEN 'with' THEN with_quantization ELSE without_quantization END AS quantization,
        CASE side WHEN 'with' THEN with_fp8 ELSE without_fp8 END AS fp8
    FROM _pairs, (VALUES ('with'), ('without')) AS s (side)
),

_memory AS (SELECT job, memory_gib, fits FROM memory_of('_jobs')),

_speed AS (SELECT job, tokens_per_second_per_gpu FROM speed_of('_jobs'))

SELECT
    p.model, p.gpu AS gpu_id, p.technique, p.method, p.gpu_count, p.changed,
    mo.memory_gib AS memory_gib_without, mw.memory_gib AS memory_gib_with,
    1 - mw.memory_gib / mo.memory_gib AS memory_saved_share,
    so.tokens_per_second_per_gpu AS tokens_per_second_per_gpu_without, sw.tokens_per_second_per_gpu AS tokens_per_second_per_gpu_with,
    so.tokens_per_second_per_gpu / sw.tokens_per_second_per_gpu - 1 AS time_cost_share,
    mo.fits AS fits_without, mw.fits AS fits_with,
    'micro-batch 4 of 2,048 tokens, 8 accumulated, LoRA rank 16 on all linear layers' AS settings
FROM _pairs AS p
JOIN _memory AS mw ON mw.job = concat_ws('|', p.model, p.gpu, p.technique, p.method, 'with')
JOIN _memory AS mo ON mo.job = concat_ws('|', p.model, p.gpu, p.technique, p.method, 'without')
JOIN _speed AS sw ON sw.job = mw.job
JOIN _speed AS so ON so.job = mo.job
ORDER BY ALL
