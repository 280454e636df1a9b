-- From the settings of a run, as people write them, to the quantities that the formulas need.

CREATE OR REPLACE MACRO adapter_width(target, hidden, query, key_value, intermediate, experts) AS
    CASE target
        WHEN 'q_proj' THEN hidden + query
        WHEN 'k_proj' THEN hidden + key_value
        WHEN 'v_proj' THEN hidden + key_value
        WHEN 'o_proj' THEN query + hidden
        WHEN 'qkv_fused' THEN hidden + query + 2 * key_value
        WHEN 'gate_proj' THEN (hidden + intermediate) * experts
        WHEN 'up_proj' THEN (hidden + intermediate) * experts
        WHEN 'down_proj' THEN (intermediate + hidden) * experts
        ELSE error(
            'lora_targets: ' || target || ' is not one of q_proj, k_proj, v_proj, o_proj, qkv_fused, '
            || 'gate_proj, up_proj, down_proj, lm_head'
        )
    END;
COMMENT ON FUNCTION adapter_width IS
    'in + out of one adapted linear layer, in features: a LoRA adapter of rank r has r x (in + out) parameters (Hu et al. 2021, arXiv 2106.09685).';

CREATE OR REPLACE MACRO ignored_columns(jobs, known) AS TABLE
WITH _columns AS (
    SELECT struct_keys(any_value(_row)) AS given, known AS names
    FROM (SELECT _row FROM query_table(jobs) AS _row LIMIT 1)
)

SELECT
    json_names('ignored_columns', list_filter(given, lambda name: NOT list_contains(names, lower(name))))
        AS ignored
FROM _columns;
COMMENT ON MACRO TABLE ignored_columns IS
    'The columns of a relation that are none of the known ones, as a member of assumptions: a misspelt setting would otherwise silently be a default.';

CREATE OR REPLACE MACRO run_columns() AS (
    SELECT list_concat(struct_keys(_run), ['job', 'calibration', 'carried', 'note', 'recipe'])
    FROM main.measured_runs AS _run
    LIMIT 1
);
COMMENT ON FUNCTION run_columns IS
    'The columns of a relation of runs that are read, or known not to be settings.';

CREATE OR REPLACE MACRO stacks() AS TABLE
FROM (VALUES
    -- stack, kernels, kernels of the working set, loss kernel, bytes of an adapter parameter,
    -- runs in the Transformers Trainer or a patch of it, has the foreach AdamW as its default,
    -- gives tied embeddings a head of their own
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
    'How the training stacks differ in this model. foak: fused kernels such as Unsloth''s; compile: torchtitan and others under torch.compile; te: Megatron with Transformer Engine; mosaic: llm-foundry.';

CREATE OR REPLACE MACRO run_defaults() AS TABLE
SELECT
    'lora' AS method, 1 AS gpu_count, 'hf' AS stack, 'nf4' AS qlora_quantization,
    16 AS lora_rank, 'q_proj+k_proj+v_proj+o_proj+gate_proj+up_proj+down_proj' AS lora_targets,
    'adamw' AS optimizer, 1 AS micro_batch, 2048 AS seq_len, 1 AS grad_accum,
    'full' AS checkpointing, 1 AS flash_attention;
COMMENT ON MACRO TABLE run_defaults IS
    'What a setting is taken to be where a run leaves it open. Settings that follow from others: resolved_settings.';

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
    gpu_count::DOUBLE AS gpu_count, node_count::DOUBLE AS node_count,
    node_network_gbps::DOUBLE AS node_network_gbps,
    method, quantization, kbit_upcast::DOUBLE AS kbit_upcast,
    autocast::DOUBLE AS autocast,
    lora_rank::DOUBLE AS lora_rank, nullif(lora_targets, '') AS lora_targets,
    lora_dropout::DOUBLE AS lora_dropout, adapter_bytes::DOUBLE AS adapter_bytes,
    training_precision, weight_bytes::DOUBLE AS weight_bytes, fp8::DOUBLE AS fp8,
    optimizer, sharding, tensor_parallel::DOUBLE AS tensor_parallel,
    pipeline_parallel::DOUBLE AS pipeline_parallel,
    context_parallel::DOUBLE AS context_parallel, expert_parallel::DOUBLE AS expert_parallel,
    micro_batch::DOUBLE AS micro_batch, seq_len::DOUBLE AS seq_len, grad_accum::DOUBLE AS grad_accum,
    checkpointing, flash_attention::DOUBLE AS flash_attention, stack, loss_kernel, offload, memory_metric,
    nullif(recipe, '')::VARCHAR AS recipe, carried
FROM _settings_given;
COMMENT ON MACRO TABLE given_settings IS
    'The settings of runs in the types of the formulas, null where left open; other columns are left out. carried: whatever the caller wants to find again beside the answer.';

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
            CASE coalesce(s.method, d.method) WHEN 'pretrain' THEN 'amp' ELSE 'bf16' END),
        assumed(TRUE, 'optimizer', s.optimizer, d.optimizer),
        assumed(coalesce(s.gpu_count, d.gpu_count) > 1, 'sharding', s.sharding, 'by_stack_and_method'),
        assumed(TRUE, 'micro_batch', s.micro_batch, d.micro_batch),
        assumed(TRUE, 'seq_len', s.seq_len, d.seq_len),
        assumed(TRUE, 'grad_accum', s.grad_accum, d.grad_accum),
        assumed(TRUE, 'checkpointing', s.checkpointing, d.checkpointing),
        assumed(TRUE, 'flash_attention', s.flash_attention, d.flash_attention),
        assumed(TRUE, 'stack', s.stack, d.stack)
    )) AS assumptions
FROM given_settings(jobs) AS s
CROSS JOIN run_defaults() AS d;
COMMENT ON MACRO TABLE assumed_settings IS
    'Settings of runs with run_defaults filled in, and assumptions: a JSON object with the value taken for each setting that was left open, or by what it is chosen. Settings that follow from others are still open.';

CREATE OR REPLACE MACRO least_tensor_parallel(weight_gib, usable_gib, gpu_count) AS
    least(8e0, gpu_count, pow(2, greatest(0, ceil(log2(weight_gib / (0.8e0 * usable_gib))))));
COMMENT ON FUNCTION least_tensor_parallel IS
    'GPUs that Megatron-style engines split a model over by tensors: the least power of two that holds the weights in 80% of the memory, at most the 8 GPUs of one node.';

CREATE OR REPLACE MACRO usual_network_gbps(nvlink_topology, gpus_per_node, gpu_count, gpu_year) AS
    CASE
        WHEN nvlink_topology = 'switched' AND gpus_per_node = 4 AND gpu_count <= 72 THEN 14400e0
        WHEN gpu_year >= 2022 THEN 3200e0
        ELSE 1600e0
    END;
COMMENT ON FUNCTION usual_network_gbps IS
    'Network of a node in Gbit/s where none is given. Assumed: 14,400 within a rack of four-GPU nodes, whose NVLink domain is 72 GPUs; else 3,200 where the GPU is of 2022 or later, 1,600 where it is older.';

CREATE OR REPLACE MACRO nvlinked_gpus(nvlink_topology, gpus_per_node) AS
    CASE
        WHEN nvlink_topology = 'bridge' THEN 2e0
        WHEN nvlink_topology = 'switched' AND gpus_per_node = 4 THEN 72e0
    END;
COMMENT ON FUNCTION nvlinked_gpus IS
    'GPUs that NVLink joins where they are not just those of a node: a bridge has two, the NVLink domain of a rack of four-GPU nodes 72. Else null.';

CREATE OR REPLACE MACRO impossible_groups(
    gpu_count, node_count, tensor_parallel, pipeline_parallel, context_parallel, expert_parallel,
    layers, experts
) AS
    CASE
        WHEN gpu_count % node_count <> 0
            THEN 'node_count: ' || gpu_count::BIGINT || ' GPUs are not spread evenly over '
                || node_count::BIGINT || ' nodes'
        WHEN pipeline_parallel > layers
            THEN 'pipeline_parallel: ' || pipeline_parallel::BIGINT || ' stages, but the model has '
                || layers || ' layers'
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
    'Why GPUs cannot be grouped as a run says, naming the setting; null where they can. Null arguments are left open.';

CREATE OR REPLACE MACRO window_length(seq_len, sliding_window) AS
    CASE
        WHEN seq_len <= sliding_window THEN seq_len::DOUBLE
        ELSE sliding_window * (2 - sliding_window / seq_len)
    END;
COMMENT ON FUNCTION window_length IS
    'Length of a sequence without window in which causal attention reads as many keys per token as with a window in seq_len: half of it on average, as the first tokens see fewer.';

CREATE OR REPLACE MACRO linear_mixer_length() AS 512e0;
COMMENT ON FUNCTION linear_mixer_length IS
    'Length of the sequence in which causal attention costs what a linear-time mixer does: chunks of 128 to 256 tokens, and states of 128 features read and written. Dao and Gu 2024, arXiv 2405.21060.';

CREATE OR REPLACE MACRO attended_length(
    seq_len, layers, full_attention_layers, linear_attention_layers, sliding_window
) AS
    CASE
        WHEN sliding_window IS NULL
            THEN (
                coalesce(full_attention_layers, layers - coalesce(linear_attention_layers, 0)) * seq_len
                + coalesce(linear_attention_layers, 0) * least(seq_len, linear_mixer_length())
            ) / layers
        ELSE (
            coalesce(full_attention_layers, 0) * seq_len
            + (layers - coalesce(full_attention_layers, 0) - coalesce(linear_attention_layers, 0))
            * window_length(seq_len, sliding_window)
            + coalesce(linear_attention_layers, 0) * least(seq_len, linear_mixer_length())
        ) / layers
    END;
COMMENT ON FUNCTION attended_length IS
    'Tokens that attention would span in each layer, were all layers alike: seq_len where all of them see the whole sequence; null arguments as in models.';

CREATE OR REPLACE MACRO of_all_layers(layers, dense_layers, sparse, dense) AS
    CASE
        WHEN dense_layers IS NULL THEN sparse
        ELSE ((layers - dense_layers) * sparse + dense_layers * dense) / layers
    END;
COMMENT ON FUNCTION of_all_layers IS
    'Average over the layers of a mixture of experts of which the first are dense.';

CREATE OR REPLACE MACRO runs_every_expert(is_trainer, model) AS
    coalesce(is_trainer, FALSE) AND model LIKE 'llama-4-%';
COMMENT ON FUNCTION runs_every_expert IS
    'Whether the training code passes every token through every expert, those that it was not sent to with a weight of zero: transformers does for Llama 4 (Llama4TextMoe of modeling_llama4.py, 5.23).';

CREATE OR REPLACE MACRO resolved_settings(jobs) AS TABLE
SELECT
    s.* REPLACE (
        CASE
            WHEN impossible_groups(
                s.gpu_count, s.node_count, s.tensor_parallel, s.pipeline_parallel, s.context_parallel,
                s.expert_parallel, m.layers, m.experts
            ) IS NULL THEN s.gpu_count
            ELSE error(impossible_groups(
                s.gpu_count, s.node_count, s.tensor_parallel, s.pipeline_parallel, s.context_parallel,
                s.expert_parallel, m.layers, m.experts
            ))
        END AS gpu_count,
        coalesce(s.node_count, ceil(s.gpu_count / g.max_gpus_per_node)) AS node_count,
        coalesce(s.node_network_gbps,
            usual_network_gbps(g.nvlink_topology, g.max_gpus_per_node, s.gpu_count, g.year)
        ) AS node_network_gbps,
        coalesce(s.kbit_upcast,
            CASE WHEN is_quantized AND s.stack = 'hf' THEN 1e0 ELSE 0e0 END) AS kbit_upcast,
        coalesce(s.autocast, CASE WHEN k.is_trainer THEN 1e0 ELSE 0e0 END) AS autocast,
        coalesce(s.adapter_bytes, k.adapter_bytes, bytes_fp32()) AS adapter_bytes,
        -- DeepSpeed trains 16-bit weights with masters in fp32, whatever the precision is called.
        CASE
            WHEN k.is_trainer AND is_full AND s.sharding IN ('zero1', 'zero2', 'zero3')
                AND coalesce(s.training_precision, 'bf16') IN ('bf16', 'fp16') THEN 'deepspeed_bf16'
            ELSE coalesce(s.training_precision, CASE WHEN s.method = 'pretrain' THEN 'amp' ELSE 'bf16' END)
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
        -- Assumed: 6 bytes per weight that trains, for itself, its gradient and a share of the optimizer.
        coalesce(s.tensor_parallel, CASE
            WHEN s.stack = 'te' AND s.sharding IS NULL AND s.gpu_count > 1 THEN least_tensor_parallel(
                gib(m.params_total * CASE WHEN is_full THEN 6e0 ELSE bytes_16bit() END),
                g.usable_memory_gib,
                s.gpu_count / (coalesce(s.pipeline_parallel, 1) * coalesce(s.context_parallel, 1))
            )
            ELSE 1e0
        END) AS tensor_parallel,
        coalesce(s.pipeline_parallel, 1e0) AS pipeline_parallel,
        coalesce(s.context_parallel, 1e0) AS context_parallel,
        -- Engines spread the experts over the ranks that do not split the model.
        coalesce(s.expert_parallel, CASE
            WHEN s.stack = 'te' AND m.experts > 1 THEN least(
                m.experts, s.gpu_count / (coalesce(s.tensor_parallel, 1) * coalesce(s.pipeline_parallel, 1))
            )
            ELSE 1e0
        END) AS expert_parallel,
        coalesce(s.loss_kernel, k.loss_kernel, 'hf') AS loss_kernel,
        coalesce(s.offload, '') AS offload,
        coalesce(s.memory_metric, 'smi') AS memory_metric
    ),
    k.kernels, k.working_kernels, k.is_trainer, k.has_foreach,
    coalesce(k.loss_kernel, 'hf') AS stack_loss_kernel,
    CASE WHEN has_adapters AND regexp_matches(s.lora_targets, 'gate_proj|up_proj|down_proj') THEN 1 ELSE 0 END
        AS adapts_mlp,
    m.* EXCLUDE (
        model, title, max_context, licence, hf_id, source,
        sliding_window, full_attention_layers, linear_attention_layers, kv_latent, q_latent, rope_head_dim,
        value_head_dim, shared_intermediate, dense_layers, dense_intermediate,
        cross_attention_layers, linear_mixer_params, extra_linear_params, extra_embedding_params
    ) REPLACE (
        CASE WHEN runs_every_expert(k.is_trainer, m.model) THEN m.params_total ELSE m.params_active END
            AS params_active,
        CASE WHEN runs_every_expert(k.is_trainer, m.model) THEN m.experts ELSE m.experts_active END
            AS experts_active
    ),
    CASE WHEN k.unties_head AND m.tied_embeddings = 1 THEN m.vocab::DOUBLE * m.hidden ELSE 0e0 END
        AS untied_params,
    -- Latent attention: values are narrower than queries and keys.
    m.heads * (m.head_dim + coalesce(m.value_head_dim, m.head_dim)) / 2e0 AS query_width,
    m.kv_heads * (m.head_dim + coalesce(m.value_head_dim, m.head_dim)) / 2e0 AS key_value_width,
    attended_length(
        s.seq_len, m.layers, m.full_attention_layers, m.linear_attention_layers, m.sliding_window
    )::DOUBLE AS attended_length,
    of_all_layers(
        m.layers, m.dense_layers,
        m.experts_active * m.intermediate + coalesce(m.shared_intermediate, 0), m.dense_intermediate
    )::DOUBLE AS active_intermediate,
    CASE
        -- At most all, where a model's experts are not in all its layers and its row does not say so.
        WHEN m.experts > 1 THEN least(
            m.params_linear,
            (m.layers - coalesce(m.dense_layers, 0))::DOUBLE
            * m.experts * m.hidden * m.intermediate * (2 + m.gated_mlp)
        )
        ELSE 0e0
    END AS expert_params,
    g.vendor, g.architecture, g.segment, g.year AS gpu_year, g.max_gpus_per_node,
    g.usable_memory_gib, g.bandwidth_gb_s * 1e9 AS memory_bytes_per_second,
    g.bf16_dense_tflops, g.fp16_dense_tflops, g.fp8_dense_tflops, g.fp4_dense_tflops, g.fp32_tflops,
    g.gemm_bf16_measured_tflops, g.gemm_fp16_measured_tflops, g.tdp_w,
    g.nvlink_gb_s, nvlinked_gpus(g.nvlink_topology, g.max_gpus_per_node) AS nvlinked_gpus,
    g.pcie_gen, g.peer_to_peer, coalesce(f.gemm_log_offset, 0e0) AS gemm_log_offset
FROM assumed_settings(jobs) AS s
JOIN main.models AS m ON m.model = s.model
JOIN main.gpus AS g ON g.gpu_id = s.gpu
LEFT JOIN stacks() AS k ON k.stack = s.stack
LEFT JOIN gemm_families() AS f
    ON f.calibration = s.calibration AND f.family = gpu_family(g.architecture, g.segment);
COMMENT ON MACRO TABLE resolved_settings IS
    'Settings of runs joined to model, GPU and stack, with every setting filled in.';

CREATE OR REPLACE MACRO settings_of(jobs) AS TABLE
WITH _settings_resolved AS (
    SELECT * FROM resolved_settings(jobs)
),

_settings_derived AS (
    SELECT
        s.*,
        c.* EXCLUDE (calibration),
        CASE loss_kernel
            WHEN 'fused' THEN logits_fused
            WHEN 'chunked' THEN logits_chunked
            WHEN 'liger' THEN logits_liger
            WHEN 'litgpt' THEN logits_litgpt
            WHEN 'titan' THEN logits_titan
            WHEN 'fp32std' THEN logits_fp32std
            WHEN '16bit' THEN logits_16bit
            WHEN 'outside' THEN logits_outside
            ELSE logits_hf
        -- An adapter on the head adds its own outputs, and the sum with the head's, in 16 bits.
        END + CASE WHEN contains(lora_targets, 'lm_head') THEN 2e0 * bytes_16bit() ELSE 0e0 END
            AS logit_bytes,
        sharding IN ('fsdp', 'zero3') AS shards_weights,
        sharding IN ('fsdp', 'zero3', 'zero2') AS shards_gradients,
        sharding IN ('fsdp', 'zero3', 'zero2', 'zero1') AS shards_optimizer,
        optimizer LIKE '%8bit%' AS is_8bit_optimizer,
        optimizer LIKE '%inbwd%' AS is_optimizer_in_backward,
        optimizer LIKE 'paged%' AS is_paged_optimizer,
        params_total - params_linear::DOUBLE AS params_unquantized,
        params_active - (params_total - params_linear)::DOUBLE AS linear_active,
        -- Transformers' code of Llama 4 passes each token through all experts, most of them with zeros.
        CASE
            WHEN model LIKE 'llama-4-%' AND kernels IN ('eager', 'fused') THEN params_linear::DOUBLE
            ELSE linear_active
        END AS linear_computed,
        CASE WHEN is_full THEN 0e0 ELSE
            lora_rank * (
                layers * coalesce(list_sum(list_transform(
                    list_filter(string_split(lora_targets, '+'), lambda target: target <> 'lm_head'),
                    lambda target:
                        adapter_width(target, hidden, query_width, key_value_width, intermediate, experts)
                ))::DOUBLE, 0e0)
                + CASE WHEN contains(lora_targets, 'lm_head') THEN hidden + vocab ELSE 0 END
            )
        END AS adapter_params,
        quantized_weight_bytes(quantization) AS quantized_bytes,
        -- Adapters with dropout keep each input, as the adapter computes with it, and a mask of a byte per
        -- element.
        CASE
            WHEN has_adapters THEN (bytes_16bit() + 1) * list_sum(list_transform(
                string_split(lora_targets, '+'),
                lambda target: CASE target
                    WHEN 'o_proj' THEN query_width
                    WHEN 'down_proj' THEN active_intermediate
                    WHEN 'lm_head' THEN 0
                    ELSE hidden
                END
            ))::DOUBLE
            ELSE 0e0
        END AS dropout_bytes_per_token,
        coalesce(lora_dropout > 0, FALSE)::INTEGER::DOUBLE AS has_dropout,
        CASE WHEN training_precision IN ('amp', 'fp32', 'fp16') THEN bytes_fp32() ELSE weight_bytes END
            AS full_weight_bytes,
        -- The residual stream is fp32 in fp32 runs, under autocast on unsharded fp32 weights, and where k-bit
        -- training upcasts the norms; FSDP's own mixed precision keeps it in 16 bits.
        CASE
            WHEN training_precision = 'fp32' THEN 1e0
            WHEN is_trainer AND NOT shards_weights
                AND (kbit_upcast = 1 OR (is_full AND training_precision = 'amp')) THEN 1e0
            ELSE 0e0
        END AS fp32_residual,
        -- Adapters under accelerate's FSDP hold the checkpoints once more during the backward pass.
        is_trainer AND sharding = 'fsdp' AND has_adapters AS doubles_checkpoints,
        CASE WHEN gated_mlp = 1 THEN 4e0 ELSE 2e0 END AS mlp_tensors
    FROM with_recipes('_settings_resolved') AS s
    JOIN constants() AS c ON c.calibration = s.calibration
)

SELECT
    * EXCLUDE (
        has_adapters, loss_kernel, stack_loss_kernel, adapts_mlp, gated_mlp, kv_heads, head_dim,
        logits_hf, logits_fused, logits_chunked,
        logits_liger, logits_litgpt, logits_titan, logits_fp32std, logits_16bit, logits_outside
    ),
    -- One layer's activations, of 16 bits each, per token: norms and residuals 8 x hidden, attention
    -- 3 x query and 3 x key and value, MLP 4 x intermediate (2 x where it is not gated). Korthikanti et al.
    -- 2022, arXiv 2205.05198. A mixture has its hidden states once more for each chosen expert, in and out.
    bytes_16bit() * (
        (8e0 + CASE WHEN experts > 1 THEN 2e0 * experts_active ELSE 0e0 END) * hidden
        + 3e0 * query_width + 3e0 * key_value_width + mlp_tensors * active_intermediate
    ) AS layer_bytes_per_token
FROM _settings_derived;
COMMENT ON MACRO TABLE settings_of IS
    'Settings of runs (columns of catalog/measured_runs.csv, those left out filled with stated defaults) joined to model, GPU and stack, as numbers.';

CREATE OR REPLACE MACRO scale_of(coefficients) AS TABLE
SELECT
    *,
    -- Ranks of context parallelism have the same weights and a part of each sequence: to the state they are
    -- data-parallel ranks.
    micro_batch * seq_len / context_parallel AS micro_step_tokens,
    gpu_count / (tensor_parallel * pipeline_parallel) AS data_parallel,
    tensor_parallel * pipeline_parallel AS model_parallel,
    -- GPUs over which one copy of the model is split, its experts among expert-parallel ranks, too.
    CASE
        WHEN expert_parallel > 1 AND expert_params > 0 THEN model_parallel * params_total / (
            params_total - expert_params
            + expert_params / least(expert_parallel, data_parallel)
        )
        ELSE model_parallel
    END AS model_shards,
    -- Over how many GPUs each part of the state is split.
    CASE WHEN shards_weights THEN gpu_count ELSE model_shards END AS weight_shards,
    CASE WHEN shards_gradients THEN gpu_count ELSE model_shards END AS gradient_shards,
    CASE WHEN shards_optimizer THEN gpu_count ELSE model_shards END AS optimizer_shards,
    shards_weights AND data_parallel > 1 AS gathers_weights
FROM query_table(coefficients);
COMMENT ON MACRO TABLE scale_of IS
    'Tokens of one micro-step on one rank, and the sizes of the groups that a run and its state are split over.';
