-- timeless: depends on the catalogue and the model, not on the day
WITH _base AS (
    SELECT
        m.model, g.gpu_id AS gpu, 4 AS micro_batch, d.seq_len, 8 AS grad_accum, d.lora_rank,
        'smi' AS memory_metric, 0 AS kbit_upcast,
        CASE WHEN g.bf16_dense_tflops IS NULL THEN 'fp16' ELSE 'bf16' END AS training_precision,
        -- Cards without NVLink are compared in pairs, other cards in groups of up to eight.
        CASE WHEN g.nvlink_gb_s IS NULL THEN 2 ELSE least(8, g.max_gpus_per_node) END AS several,
        g.fp8_dense_tflops IS NOT NULL AS has_fp8
    FROM (SELECT DISTINCT model FROM main.workloads) AS m, main.gpus AS g, plan_defaults() AS d
    WHERE g.has_full_specs AND g.derived_from IS NULL
        AND g.architecture NOT IN ('Kepler', 'Maxwell', 'Pascal')
),

-- Each technique changes one setting; all other settings are the same on both sides.
_techniques (technique, method, gpus, stack, sharding, setting, value_without, value_with) AS (
    VALUES
    ('gradient checkpointing', 'lora', 'one', 'liger', 'none', 'checkpointing', 'none', 'full'),
    ('gradient checkpointing', 'full', 'one', 'liger', 'none', 'checkpointing', 'none', 'full'),
    ('selective checkpointing', 'full', 'one', 'liger', 'none', 'checkpointing', 'none', 'sac'),
    ('flash attention', 'lora', 'one', 'hf', 'none', 'flash_attention', '0', '1'),
    ('compile', 'full', 'one', NULL, 'none', 'stack', 'torchtune', 'compile'),
    ('fused kernels', 'lora', 'one', NULL, 'none', 'stack', 'hf', 'foak'),
    ('fused linear loss', 'lora', 'one', NULL, 'none', 'stack', 'hf', 'liger'),
    ('fused optimizer', 'full', 'one', 'liger', 'none', 'optimizer', 'adamw', 'adamw_fused'),
    ('8-bit optimizer', 'full', 'one', 'liger', 'none', 'optimizer', 'adamw_fused', 'adamw8bit'),
    ('LoRA', 'lora', 'one', 'liger', 'none', 'method', 'full', 'lora'),
    ('QLoRA', 'qlora', 'one', 'liger', 'none', 'method', 'lora', 'qlora'),
    ('double quantization', 'qlora', 'one', 'liger', 'none', 'quantization', 'nf4', 'nf4dq'),
    ('fp8', 'full', 'one', 'te', 'none', 'fp8', '0', '1'),
    ('ZeRO-2', 'full', 'several', 'liger', NULL, 'sharding', 'ddp', 'zero2'),
    ('FSDP', 'full', 'several', 'liger', NULL, 'sharding', 'ddp', 'fsdp'),
    ('FSDP', 'lora', 'several', 'liger', NULL, 'sharding', 'ddp', 'fsdp'),
    ('CPU offload', 'full', 'several', 'liger', 'fsdp', 'offload', 'none', 'cpu'),
    ('activation offload', 'lora', 'one', 'liger', 'none', 'offload', 'none', 'act')
),

_pairs AS (
    SELECT
        b.*, t.*,
        to_json({'setting': t.setting, 'without': t.value_without, 'with': t.value_with}) AS changed,
        CASE t.gpus WHEN 'one' THEN 1 ELSE b.several END AS gpu_count
    FROM _base AS b, _techniques AS t
    WHERE (t.technique <> 'fp8' OR b.has_fp8) AND (t.gpus = 'one' OR b.several > 1)
),

_sides AS (
    SELECT p.*, s.side, CASE s.side WHEN 'with' THEN p.value_with ELSE p.value_without END AS value
    FROM _pairs AS p, (VALUES ('with'), ('without')) AS s (side)
),

_jobs AS (
    SELECT
        concat_ws('|', model, gpu, technique, method, side) AS job,
        model, gpu, gpu_count, micro_batch, seq_len, grad_accum, lora_rank, memory_metric, kbit_upcast,
        training_precision,
        CASE setting WHEN 'method' THEN value ELSE method END AS method,
        CASE setting WHEN 'stack' THEN value ELSE stack END AS stack,
        CASE setting WHEN 'checkpointing' THEN value ELSE 'full' END AS checkpointing,
        CASE setting WHEN 'flash_attention' THEN value::INTEGER ELSE 1 END AS flash_attention,
        CASE setting WHEN 'optimizer' THEN value ELSE 'adamw_fused' END AS optimizer,
        CASE setting WHEN 'sharding' THEN value ELSE sharding END AS sharding,
        CASE WHEN setting = 'offload' AND value <> 'none' THEN value ELSE '' END AS offload,
        CASE
            WHEN setting = 'quantization' THEN value
            WHEN setting = 'method' AND value = 'qlora' THEN 'nf4'
            ELSE 'none'
        END AS quantization,
        CASE setting WHEN 'fp8' THEN value::INTEGER ELSE 0 END AS fp8
    FROM _sides
),

_memory AS (SELECT job, memory_gib, fits FROM memory_of('_jobs', with_own := FALSE)),

_speed AS (SELECT job, tokens_per_second_per_gpu FROM speed_of('_jobs', with_own := FALSE))

SELECT
    p.model, p.gpu AS gpu_id, p.technique, p.method, p.gpu_count, p.changed,
    mo.memory_gib AS memory_gib_without, mw.memory_gib AS memory_gib_with,
    1 - mw.memory_gib / mo.memory_gib AS memory_saved_share,
    so.tokens_per_second_per_gpu AS tokens_per_second_per_gpu_without,
    sw.tokens_per_second_per_gpu AS tokens_per_second_per_gpu_with,
    so.tokens_per_second_per_gpu / sw.tokens_per_second_per_gpu - 1 AS time_cost_share,
    mo.fits AS fits_without, mw.fits AS fits_with,
    to_json({
        'micro_batch': p.micro_batch, 'seq_len': p.seq_len, 'grad_accum': p.grad_accum,
        'lora_rank': p.lora_rank, 'lora_targets': 'all_linear'
    }) AS settings
FROM _pairs AS p
JOIN _memory AS mw ON mw.job = concat_ws('|', p.model, p.gpu, p.technique, p.method, 'with')
JOIN _memory AS mo ON mo.job = concat_ws('|', p.model, p.gpu, p.technique, p.method, 'without')
JOIN _speed AS sw ON sw.job = mw.job
JOIN _speed AS so ON so.job = mo.job
ORDER BY ALL
