-- The settings of a run: their defaults, and the values that are refused.

-- list_value(*COLUMNS(*)) over alias(COLUMNS(*)) is the list of column names that DuckDB 1.4 and DuckDB in a
-- browser have, too. query_table would read a caller's CTE even of the name main.measured_runs.
CREATE OR REPLACE MACRO ignored_columns(jobs, known) AS TABLE
WITH _columns AS (
    SELECT list_value(*COLUMNS(*)) AS given
    FROM (SELECT alias(COLUMNS(*)) FROM query_table(jobs) LIMIT 1)
),

_compared AS (
    SELECT given, known AS names
    FROM _columns
)

SELECT
    json_names('ignored_columns', list_filter(given, lambda name: NOT list_contains(names, lower(name))))
        AS ignored
FROM _compared;
COMMENT ON MACRO TABLE ignored_columns IS
    'The unknown columns of a relation, as a member of assumptions, so that a misspelt setting does not silently fall back to its default.';

CREATE OR REPLACE MACRO run_columns() AS (
    SELECT list_concat(names, ['job', 'calibration', 'carried', 'note', 'recipe'])
    FROM (
        SELECT list_value(*COLUMNS(*)) AS names
        FROM (SELECT alias(COLUMNS(*)) FROM main.measured_runs LIMIT 1)
    )
);
COMMENT ON FUNCTION run_columns IS
    'The columns that may occur in a relation of runs: those that are read, and those known not to be settings.';

CREATE OR REPLACE MACRO stacks() AS TABLE
FROM (VALUES
    -- Columns: the stack, its kernels, the kernels that set its working set, its loss kernel, its bytes per
    -- adapter parameter, and whether it runs in the Transformers Trainer or a patched Trainer, uses foreach
    -- AdamW by default, and gives tied embeddings a head of their own.
    ('hf', 'eager', 'eager', 'hf', 4e0, TRUE, TRUE, FALSE),
    ('foak', 'fused', 'fused', 'fused', 4e0, TRUE, TRUE, FALSE),
    ('liger', 'fused', 'fused', 'liger', 4e0, TRUE, TRUE, FALSE),
    ('litgpt', 'eager', 'eager', 'litgpt', 2e0, FALSE, TRUE, TRUE),
    ('torchtune', 'eager', 'compiled', 'chunked', 2e0, FALSE, FALSE, FALSE),
    ('compile', 'compiled', 'compiled', 'chunked', 2e0, FALSE, FALSE, FALSE),
    ('te', 'engine', 'compiled', 'fused', 4e0, FALSE, FALSE, FALSE),
    ('mosaic', 'mosaic', 'compiled', 'hf', 4e0, FALSE, FALSE, FALSE)
) AS s (
    stack, kernels, working_kernels, loss_kernel, adapter_bytes, is_trainer, has_foreach, unties_head
);
COMMENT ON MACRO TABLE stacks IS
    'The properties by which the model distinguishes training stacks. foak: fused kernels such as Unsloth''s; compile: torchtitan and other code under torch.compile; te: Megatron with Transformer Engine; mosaic: llm-foundry.';

CREATE OR REPLACE MACRO setting_defaults() AS TABLE
SELECT map_from_entries(list((setting, default_value))) AS p
FROM main.job_settings
WHERE default_value IS NOT NULL;
COMMENT ON MACRO TABLE setting_defaults IS
    'The defaults of the settings of a job (main.job_settings), as a map from the name of a setting to its default as text.';

CREATE OR REPLACE MACRO run_defaults() AS TABLE
SELECT
    'lora' AS method, 1 AS gpu_count, 'hf' AS stack, 'nf4' AS qlora_quantization,
    p['lora_rank']::INTEGER AS lora_rank,
    'q_proj+k_proj+v_proj+o_proj+gate_proj+up_proj+down_proj' AS lora_targets,
    'adamw' AS optimizer, 1 AS micro_batch, p['seq_len']::INTEGER AS seq_len, 1 AS grad_accum,
    'full' AS checkpointing, 1 AS flash_attention
FROM setting_defaults();
COMMENT ON MACRO TABLE run_defaults IS
    'Defaults of the settings that a run does not state; sequence length and rank default to the same values as for a job. resolved_settings derives the settings that follow from other settings.';

CREATE OR REPLACE MACRO newest_software() AS (SELECT max(r.software_date) FROM main.measured_runs AS r);
COMMENT ON FUNCTION newest_software IS
    'The month of the newest software among the measured runs; a run or job that states no software_date is assumed to use it.';

CREATE OR REPLACE MACRO software_age_years(software_date) AS
    coalesce(least(3e0, greatest(0e0, date_diff('day', software_date, newest_software()) / 365.25e0)), 0e0);
COMMENT ON FUNCTION software_age_years IS
    'Years by which a run''s software is older than newest_software, at most 3; 0 if no date is given.';

CREATE OR REPLACE MACRO given_settings(jobs) AS TABLE
WITH _settings_template AS (
    SELECT
        *, NULL::VARCHAR AS job, NULL::VARCHAR AS calibration, NULL::VARCHAR AS recipe, NULL AS carried
    FROM main.measured_runs
    LIMIT 0
),

_settings_given AS (
    FROM _settings_template
    UNION ALL BY NAME
    FROM query_table(jobs)
)

SELECT
    job::VARCHAR AS job, run_id::VARCHAR AS run_id, coalesce(calibration, 'all') AS calibration, model, gpu,
    method, quantization, nullif(lora_targets, '') AS lora_targets, training_precision, optimizer, sharding,
    checkpointing, stack, loss_kernel, offload, memory_metric, nullif(recipe, '')::VARCHAR AS recipe,
    cuda_graph::VARCHAR AS cuda_graph, software_date::DATE AS software_date,
    COLUMNS([
        'gpu_count', 'node_count', 'node_network_gbps', 'kbit_upcast', 'autocast', 'lora_rank',
        'lora_dropout', 'adapter_bytes', 'weight_bytes', 'fp8', 'tensor_parallel', 'pipeline_parallel',
        'virtual_pipeline', 'context_parallel', 'expert_parallel', 'micro_batch', 'seq_len',
        'looped_sequences', 'grad_accum', 'flash_attention'
    ])::DOUBLE,
    carried
FROM _settings_given;
COMMENT ON MACRO TABLE given_settings IS
    'The settings of runs, converted to the types that the formulas use, null if left open; other columns are dropped. carried: any value that the caller wants to get back with the result.';

CREATE OR REPLACE MACRO usual_precision(method) AS
    CASE WHEN method IN ('full', 'pretrain') THEN 'amp' ELSE 'bf16' END;
COMMENT ON FUNCTION usual_precision IS
    'The training precision of a run or job that states none. If all weights are trained, most trainers keep them in fp32 (catalog/frameworks.yaml).';

CREATE OR REPLACE MACRO splits_by_weights(stack, gpu_count, sharding) AS
    stack = 'te' AND gpu_count > 1 AND sharding IS NULL;
COMMENT ON FUNCTION splits_by_weights IS
    'True if tensor parallelism, where a run does not state it, is chosen for the weights to fit (least_tensor_parallel); otherwise it is 1.';

CREATE OR REPLACE MACRO assumed_settings(jobs) AS TABLE
SELECT
    coalesce(s.method, d.method) IN ('full', 'pretrain') AS is_full,
    coalesce(s.method, d.method) IN ('lora', 'qlora') AS has_adapters,
    coalesce(s.method, d.method) = 'qlora' AS is_quantized,
    s.* REPLACE (
        coalesce(s.method, d.method) AS method,
        coalesce(s.gpu_count, d.gpu_count) AS gpu_count,
        coalesce(s.stack, d.stack) AS stack,
        coalesce(s.lora_rank, d.lora_rank) AS lora_rank,
        coalesce(s.lora_targets, d.lora_targets) AS lora_targets,
        coalesce(s.optimizer, d.optimizer) AS optimizer,
        coalesce(s.micro_batch, d.micro_batch) AS micro_batch,
        coalesce(s.seq_len, d.seq_len) AS seq_len,
        coalesce(s.grad_accum, d.grad_accum) AS grad_accum,
        coalesce(s.checkpointing, d.checkpointing) AS checkpointing,
        coalesce(s.flash_attention, d.flash_attention) AS flash_attention,
        CASE
            WHEN is_quantized THEN coalesce(nullif(s.quantization, 'none'), d.qlora_quantization)
            ELSE coalesce(s.quantization, 'none')
        END AS quantization
    ),
    json_object_of(concat_ws(',',
        assumed(TRUE, 'method', s.method, d.method),
        assumed(TRUE, 'gpu_count', s.gpu_count, d.gpu_count),
        assumed(is_quantized, 'quantization', s.quantization, d.qlora_quantization),
        assumed(is_quantized, 'kbit_upcast', s.kbit_upcast, 'by_stack'),
        assumed(has_adapters, 'autocast', s.autocast, 'by_stack'),
        assumed(has_adapters, 'lora_rank', s.lora_rank, d.lora_rank),
        assumed(has_adapters, 'lora_targets', s.lora_targets, 'all_linear'),
        assumed(TRUE, 'training_precision', s.training_precision,
            usual_precision(coalesce(s.method, d.method))),
        assumed(TRUE, 'optimizer', s.optimizer, d.optimizer),
        assumed(coalesce(s.gpu_count, d.gpu_count) > 1, 'sharding', s.sharding, 'by_stack_and_method'),
        assumed(TRUE, 'micro_batch', s.micro_batch, d.micro_batch),
        assumed(TRUE, 'seq_len', s.seq_len, d.seq_len),
        assumed(TRUE, 'grad_accum', s.grad_accum, d.grad_accum),
        assumed(TRUE, 'checkpointing', s.checkpointing, d.checkpointing),
        assumed(TRUE, 'flash_attention', s.flash_attention, d.flash_attention),
        assumed(TRUE, 'stack', s.stack, d.stack),
        assumed(s.stack = 'te', 'cuda_graph', s.cuda_graph, 'by_method_and_gpu'),
        assumed(splits_by_weights(s.stack, s.gpu_count, s.sharding), 'tensor_parallel', s.tensor_parallel,
            'by_weights'),
        assumed(TRUE, 'software_date', s.software_date, strftime(newest_software(), '%Y-%m')),
        CASE
            WHEN software_age_years(s.software_date) >= 1
                THEN json_member('old_software', strftime(s.software_date, '%Y-%m'))
        END
    )) AS assumptions
FROM given_settings(jobs) AS s
CROSS JOIN run_defaults() AS d;
COMMENT ON MACRO TABLE assumed_settings IS
    'The settings of runs with run_defaults filled in, and assumptions: a JSON object that gives, for each setting left open, the assumed value or the way in which the value is chosen. Settings that follow from other settings are not yet filled in.';

CREATE OR REPLACE MACRO least_tensor_parallel(weight_gib, usable_gib, gpu_count) AS
    least(8e0, gpu_count, pow(2, greatest(0, ceil(log2(weight_gib / (0.8e0 * usable_gib))))));
COMMENT ON FUNCTION least_tensor_parallel IS
    'Number of GPUs over which Megatron-style engines split a model by tensor parallelism: the smallest power of two at which the weights fit in 80% of the memory, but at most the 8 GPUs of one node.';

CREATE OR REPLACE MACRO usual_expert_parallel(stack, experts, data_parallel) AS
    CASE WHEN stack = 'te' AND experts > 1 THEN least(experts, data_parallel) ELSE 1e0 END;
COMMENT ON FUNCTION usual_expert_parallel IS
    'Number of GPUs over which the experts are spread if a run does not state it: Megatron-style engines spread them over the data-parallel ranks.';

CREATE OR REPLACE MACRO usual_cuda_graph(
    kernels, is_full, experts, linear_attention_layers, fp8, architecture, segment, software_date
) AS
    CASE
        WHEN kernels = 'engine' AND is_full AND experts > 1 AND linear_attention_layers IS NULL AND fp8 >= 1
            AND architecture LIKE 'Blackwell%' AND segment = 'datacenter'
            AND coalesce(software_date >= DATE '2026-05-01', TRUE) THEN 'step'
        ELSE 'none'
    END;
COMMENT ON FUNCTION usual_cuda_graph IS
    'How much of a step is captured in CUDA graphs if a run does not state it: the whole step of a mixture of experts that an engine trains in fp8 on Blackwell, as in Megatron''s recipes for MXFP8 since May 2026 (_enable_hybridep_full_iteration_mxfp8 in Megatron-Bridge''s perf_recipes/qwen/common.py), except hybrids with state-space layers; nothing otherwise.';

CREATE OR REPLACE MACRO usual_network_gbps(nvlink_topology, gpus_per_node, gpu_count, gpu_year) AS
    CASE
        WHEN nvlink_topology = 'switched' AND gpus_per_node = 4 AND gpu_count <= 72 THEN 14400e0
        WHEN gpu_year >= 2022 THEN 3200e0
        ELSE 1600e0
    END;
COMMENT ON FUNCTION usual_network_gbps IS
    'Network bandwidth of a node in Gbit/s, if a run does not state the bandwidth. Assumed: 14,400 within a rack of four-GPU nodes, which forms an NVLink domain of 72 GPUs; otherwise 3,200 if the GPU was released in 2022 or later, and 1,600 if the GPU is older.';

CREATE OR REPLACE MACRO impossible_groups(
    gpu_count, node_count, tensor_parallel, pipeline_parallel, context_parallel, expert_parallel,
    layers, experts, virtual_pipeline := NULL
) AS
    CASE
        WHEN gpu_count % node_count <> 0
            THEN 'node_count: ' || gpu_count::BIGINT || ' GPUs are not spread evenly over '
                || node_count::BIGINT || ' nodes'
        WHEN pipeline_parallel > layers
            THEN 'pipeline_parallel: ' || pipeline_parallel::BIGINT || ' stages, but the model has '
                || layers || ' layers'
        -- Embeddings and head may count as a layer each: Llama 3.1 405B has 126, in 16 x 8 stages.
        WHEN pipeline_parallel * virtual_pipeline > layers + 2
            THEN 'virtual_pipeline: ' || virtual_pipeline::BIGINT || ' stages on each of '
                || pipeline_parallel::BIGINT || ' GPUs, but the model has ' || layers || ' layers'
        WHEN expert_parallel > experts
            THEN 'expert_parallel: ' || expert_parallel::BIGINT || ' ranks, but the model has '
                || experts || CASE WHEN experts = 1 THEN ' expert: it is dense' ELSE ' experts' END
        WHEN expert_parallel > gpu_count / coalesce(pipeline_parallel, 1)
            THEN 'expert_parallel: ' || expert_parallel::BIGINT || ' ranks, but a pipeline stage has '
                || (gpu_count / coalesce(pipeline_parallel, 1))::BIGINT || ' GPUs'
        WHEN gpu_count % (
            coalesce(tensor_parallel, 1) * coalesce(pipeline_parallel, 1) * coalesce(context_parallel, 1)
        ) <> 0
            THEN concat_ws(' x ',
                'tensor_parallel ' || nullif(tensor_parallel, 1)::BIGINT,
                'pipeline_parallel ' || nullif(pipeline_parallel, 1)::BIGINT,
                'context_parallel ' || nullif(context_parallel, 1)::BIGINT
            ) || ': does not divide gpu_count ' || gpu_count::BIGINT
    END;
COMMENT ON FUNCTION impossible_groups IS
    'The reason why GPUs cannot be grouped as a run requests, naming the setting that makes the grouping impossible; null if the grouping is possible. Null arguments are settings left open.';

CREATE OR REPLACE MACRO resolved_settings(jobs) AS TABLE
SELECT
    s.* REPLACE (
        coalesce(error(impossible_groups(
            s.gpu_count, s.node_count, s.tensor_parallel, s.pipeline_parallel, s.context_parallel,
            s.expert_parallel, m.layers, m.experts, virtual_pipeline := s.virtual_pipeline
        )), s.gpu_count) AS gpu_count,
        coalesce(s.node_count, ceil(s.gpu_count / g.max_gpus_per_node)) AS node_count,
        coalesce(s.node_network_gbps,
            usual_network_gbps(g.nvlink_topology, g.max_gpus_per_node, s.gpu_count, g.year)
        ) AS node_network_gbps,
        coalesce(s.kbit_upcast,
            CASE WHEN is_quantized AND s.stack = 'hf' THEN 1e0 ELSE 0e0 END) AS kbit_upcast,
        coalesce(s.autocast, CASE WHEN t.is_trainer THEN 1e0 ELSE 0e0 END) AS autocast,
        coalesce(s.adapter_bytes, t.adapter_bytes, bytes_fp32()) AS adapter_bytes,
        -- DeepSpeed trains 16-bit weights with fp32 masters, whether the run states bf16 or fp16.
        CASE
            WHEN t.is_trainer AND is_full AND s.sharding IN ('zero1', 'zero2', 'zero3')
                AND coalesce(s.training_precision, 'bf16') IN ('bf16', 'fp16') THEN 'deepspeed_bf16'
            ELSE coalesce(s.training_precision, usual_precision(s.method))
        END AS training_precision,
        coalesce(s.weight_bytes,
            CASE WHEN s.training_precision = 'fp32' THEN bytes_fp32() ELSE bytes_16bit() END
        ) AS weight_bytes,
        coalesce(s.fp8, 0e0) AS fp8,
        coalesce(s.sharding, CASE
            WHEN s.gpu_count = 1 THEN 'none'
            WHEN s.stack = 'te' THEN 'zero1'
            WHEN is_full THEN 'fsdp'
            ELSE 'ddp'
        END) AS sharding,
        -- Assumed: 6 bytes per trained weight, for the weight, its gradient and some optimizer state.
        coalesce(s.tensor_parallel, CASE
            WHEN splits_by_weights(s.stack, s.gpu_count, s.sharding) THEN least_tensor_parallel(
                gib(m.params_total * CASE WHEN is_full THEN 6e0 ELSE bytes_16bit() END),
                g.usable_memory_gib,
                s.gpu_count / (coalesce(s.pipeline_parallel, 1) * coalesce(s.context_parallel, 1))
            )
            ELSE 1e0
        END) AS tensor_parallel,
        coalesce(s.pipeline_parallel, 1e0) AS pipeline_parallel,
        coalesce(s.context_parallel, 1e0) AS context_parallel,
        coalesce(s.expert_parallel, usual_expert_parallel(
            s.stack, m.experts,
            s.gpu_count / (coalesce(s.tensor_parallel, 1) * coalesce(s.pipeline_parallel, 1))
        )) AS expert_parallel,
        coalesce(s.looped_sequences, 0e0) AS looped_sequences,
        coalesce(s.loss_kernel, t.loss_kernel, 'hf') AS loss_kernel,
        coalesce(s.cuda_graph, usual_cuda_graph(
            t.kernels, is_full, m.experts, m.linear_attention_layers, s.fp8, g.architecture, g.segment,
            s.software_date
        )) AS cuda_graph,
        coalesce(s.offload, '') AS offload,
        coalesce(s.memory_metric, 'smi') AS memory_metric
    ),
    t.kernels, t.working_kernels, t.is_trainer, t.has_foreach, t.unties_head,
    coalesce(t.loss_kernel, 'hf') AS stack_loss_kernel,
    CASE WHEN has_adapters AND regexp_matches(s.lora_targets, 'gate_proj|up_proj|down_proj') THEN 1 ELSE 0 END
        AS adapts_mlp
FROM assumed_settings(jobs) AS s
JOIN main.models AS m ON m.model = s.model
JOIN main.gpus AS g ON g.gpu_id = s.gpu
LEFT JOIN stacks() AS t ON t.stack = s.stack;
COMMENT ON MACRO TABLE resolved_settings IS
    'The settings of runs with every setting filled in, and the properties of each run''s stack. Raises an error if GPUs cannot be grouped as a run requests.';
