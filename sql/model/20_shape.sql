-- From settings, model and GPU to the quantities that the formulas need.

CREATE OR REPLACE MACRO adapted_sides(target, hidden, query, key_value, width, mlps, fused) AS
    CASE
        WHEN target = 'q_proj' THEN [hidden, query]
        WHEN target IN ('k_proj', 'v_proj') THEN [hidden, key_value]
        WHEN target = 'o_proj' THEN [query, hidden]
        WHEN target = 'qkv_fused' THEN [hidden, query + 2 * key_value]
        WHEN target IN ('gate_proj', 'up_proj') THEN [hidden * mlps, width * fused]
        WHEN target = 'down_proj' THEN [width, hidden * mlps]
        ELSE error(
            'lora_targets: ' || target || ' is not one of q_proj, k_proj, v_proj, o_proj, qkv_fused, '
            || 'gate_proj, up_proj, down_proj, lm_head'
        )
    END;
COMMENT ON FUNCTION adapted_sides IS
    'The numbers of input and output features of one adapted linear layer: a LoRA adapter of rank r has r x (in + out) parameters (Hu et al. 2021, arXiv 2106.09685). For layers of the MLP, the numbers are sums over all MLPs in a transformer layer (mlps of them, with a total width of width features). fused: 2 if the gate and up projections are one tensor, for which PEFT doubles the rank, otherwise 1.';

CREATE OR REPLACE MACRO adapts_experts(is_trainer, model) AS
    NOT coalesce(is_trainer, FALSE)
    OR NOT regexp_matches(
        lower(model), '^(gemma-4|gpt-oss|granite|llama-4|mistral-small-4|nemotron|qwen3[.])'
    );
COMMENT ON FUNCTION adapts_experts IS
    'True if LoRA on the MLP of a mixture of experts adapts the experts. transformers 5 keeps the experts in one tensor, which PEFT 0.21 (_convert_peft_config_moe in utils/transformers_weight_conversion.py) adapts, except in the model families that this macro lists, where only shared experts and dense layers get adapters (Unsloth''s notebook for gpt-oss-20b trains 3,981,312 parameters at rank 8, all of them in attention). In a mixture of any other family, the experts are assumed to be adapted, which takes more memory and time.';

CREATE OR REPLACE MACRO fuses_experts(stack, experts) AS coalesce(stack = 'liger' AND experts > 1, FALSE);
COMMENT ON FUNCTION fuses_experts IS
    'True if the experts of a layer are one tensor, as in transformers 5, on which the model of the planner''s default stack is based. The measured runs of other stacks used transformers 4 or engines, all of which implement experts as linear layers. QLoRA quantizes linear layers only (replace_with_bnb_linear in transformers 5.23), so fused experts stay in 16 bits.';

CREATE OR REPLACE MACRO window_length(seq_len, sliding_window) AS
    CASE
        WHEN seq_len <= sliding_window THEN seq_len::DOUBLE
        ELSE sliding_window * (2 - sliding_window / seq_len)
    END;
COMMENT ON FUNCTION window_length IS
    'The sequence length at which causal attention without a window reads as many keys per token as attention with a window reads over seq_len tokens. Without a window, a token sees half of the sequence on average; with a window, the first tokens see fewer keys than the window holds.';

CREATE OR REPLACE MACRO linear_mixer_length() AS 512e0;
COMMENT ON FUNCTION linear_mixer_length IS
    'The sequence length at which causal attention costs as much as a linear-time mixer, which works on chunks of 128 to 256 tokens, and reads and writes states of 128 features. Dao and Gu 2024, arXiv 2405.21060.';

CREATE OR REPLACE MACRO attended_length(
    seq_len, layers, full_attention_layers, linear_attention_layers, sliding_window
) AS
    (
        coalesce(
            full_attention_layers,
            CASE WHEN sliding_window IS NULL THEN layers - coalesce(linear_attention_layers, 0) ELSE 0 END
        ) * seq_len
        + coalesce(
            (layers - coalesce(full_attention_layers, 0) - coalesce(linear_attention_layers, 0))
            * window_length(seq_len, sliding_window), 0
        )
        + coalesce(linear_attention_layers, 0) * least(seq_len, linear_mixer_length())
    ) / layers;
COMMENT ON FUNCTION attended_length IS
    'The number of tokens that attention spans, averaged over the layers: seq_len if every layer sees the whole sequence. Null arguments mean the same as nulls in the table models.';

CREATE OR REPLACE MACRO of_all_layers(layers, dense_layers, sparse, dense) AS
    CASE
        WHEN dense_layers IS NULL THEN sparse
        ELSE ((layers - dense_layers) * sparse + dense_layers * dense) / layers
    END;
COMMENT ON FUNCTION of_all_layers IS
    'The average of a quantity over all layers of a mixture of experts whose first layers are dense, given the quantity in a sparse layer and in a dense layer.';

CREATE OR REPLACE MACRO runs_every_expert(is_trainer, model) AS
    coalesce(is_trainer, FALSE) AND model LIKE 'llama-4-%';
COMMENT ON FUNCTION runs_every_expert IS
    'True if the training code passes every token through every expert, as Llama4TextMoe in transformers 5.23 (modeling_llama4.py) does, with a router score of zero for the experts that were not chosen. Engines, torchtune (TokenChoiceTopKRouter in modules/moe/moe.py) and LitGPT (LLaMAMoE in model.py) pass each token only through its chosen experts.';

CREATE OR REPLACE MACRO adds_expert_biases(kernels, model) AS kernels = 'engine' AND model LIKE 'gpt-oss-%';
COMMENT ON FUNCTION adds_expert_biases IS
    'True if Megatron adds a bias to the output of each expert, one expert after the other (TEGroupedMLP._apply_bias in Megatron-LM''s moe/experts.py): gpt-oss has such biases.';

CREATE OR REPLACE MACRO slices_experts(stack, model) AS stack = 'hf' AND model LIKE 'granite-%';
COMMENT ON FUNCTION slices_experts IS
    'True if one tensor holds the weights of all experts of a layer, and the code takes a slice of it for the product of each expert (GraniteMoeParallelExperts in transformers).';

CREATE OR REPLACE MACRO settings_of(jobs) AS TABLE
WITH _settings_resolved AS (
    SELECT * FROM resolved_settings(jobs)
),

_settings_shape AS (
    SELECT
        s.*, c.k,
        software_age_years(s.software_date) AS software_age_years,
        CASE
            WHEN s.is_full THEN []::VARCHAR[]
            ELSE list_filter(string_split(s.lora_targets, '+'), lambda target: target <> 'lm_head')
        END AS linear_targets,
        m.params_total, m.params_linear, m.layers, m.hidden, m.intermediate, m.heads, m.vocab,
        m.tied_embeddings, m.experts,
        runs_every_expert(s.is_trainer, m.model) AS runs_every_expert,
        CASE WHEN runs_every_expert THEN m.params_total ELSE m.params_active END AS params_active,
        CASE WHEN runs_every_expert THEN m.experts ELSE m.experts_active END AS experts_active,
        coalesce(m.shared_intermediate, 0) AS shared_width,
        adds_expert_biases(s.kernels, m.model)::INTEGER AS adds_expert_biases,
        slices_experts(s.stack, m.model) AS slices_experts,
        m.experts > 1 AND adapts_experts(s.is_trainer, m.model) AS adapts_experts,
        -- PEFT adds the adapters of an expert tensor to that tensor before each matrix product.
        (fuses_experts(s.stack, m.experts) AND adapts_experts AND s.adapts_mlp = 1)::INTEGER
            AS folds_adapters,
        -- The number of MLPs per layer (on average) that lora_targets can name, and their total width.
        CASE
            WHEN adapts_experts THEN of_all_layers(m.layers, m.dense_layers, m.experts, 0e0)
            WHEN m.experts > 1 THEN of_all_layers(m.layers, m.dense_layers, (shared_width > 0)::INTEGER, 1e0)
            ELSE 1e0
        END AS adapted_mlps,
        CASE
            WHEN adapts_experts OR m.experts = 1 THEN adapted_mlps * m.intermediate
            ELSE of_all_layers(m.layers, m.dense_layers, shared_width, m.dense_intermediate)
        END AS adapted_mlp_width,
        -- The share of the adapted MLPs whose adapters process a given token.
        (1 - folds_adapters)
        * CASE WHEN adapts_experts THEN m.experts_active / m.experts ELSE 1e0 END AS token_share,
        CASE WHEN s.unties_head AND m.tied_embeddings = 1 THEN m.vocab::DOUBLE * m.hidden ELSE 0e0 END
            AS untied_params,
        -- In latent attention, values are narrower than queries and keys.
        m.heads * (m.head_dim + coalesce(m.value_head_dim, m.head_dim)) / 2e0 AS query_width,
        m.kv_heads * (m.head_dim + coalesce(m.value_head_dim, m.head_dim)) / 2e0 AS key_value_width,
        CASE WHEN m.gated_mlp = 1 THEN 4e0 ELSE 2e0 END AS mlp_tensors,
        attended_length(
            s.seq_len / greatest(1e0, s.looped_sequences), m.layers, m.full_attention_layers,
            m.linear_attention_layers, m.sliding_window
        )::DOUBLE AS attended_length,
        of_all_layers(m.layers, m.dense_layers, 1e0, 0e0) AS sparse_share,
        of_all_layers(
            m.layers, m.dense_layers,
            CASE WHEN runs_every_expert THEN m.experts ELSE m.experts_active END * m.intermediate
            + shared_width, m.dense_intermediate
        )::DOUBLE AS active_intermediate,
        list_transform(linear_targets, lambda target: adapted_sides(
            target, m.hidden, query_width, key_value_width, token_share * adapted_mlp_width,
            token_share * adapted_mlps, 1
        )) AS adapted,
        -- Capped at params_linear: a model's row might not state that only some layers have experts.
        (m.experts > 1)::INTEGER * least(
            m.params_linear,
            (m.layers - coalesce(m.dense_layers, 0))::DOUBLE
            * m.experts * m.hidden * m.intermediate * (2 + m.gated_mlp)
        ) AS expert_params,
        g.vendor, g.architecture, g.memory_type, g.year AS gpu_year,
        g.max_gpus_per_node, g.usable_memory_gib, g.bandwidth_gb_s * 1e9 AS memory_bytes_per_second,
        coalesce(g.cache_mib, 0e0) * 1048576e0 AS cache_bytes,
        g.bf16_dense_tflops, g.fp16_dense_tflops, g.fp8_dense_tflops, g.fp4_dense_tflops, g.fp32_tflops,
        g.gemm_bf16_measured_tflops, g.gemm_fp16_measured_tflops, g.tdp_w,
        g.nvlink_gb_s,
        -- Number of GPUs that NVLink joins, if not simply those of a node: 72 in the NVLink domain of a rack.
        CASE
            WHEN g.nvlink_topology = 'bridge' THEN 2e0
            WHEN g.nvlink_topology = 'switched' AND g.max_gpus_per_node = 4 THEN 72e0
        END AS nvlinked_gpus,
        g.pcie_gen, g.peer_to_peer, coalesce(f.gemm_log_offset, 0e0) AS gemm_log_offset
    FROM with_recipes('_settings_resolved') AS s
    JOIN main.models AS m ON m.model = s.model
    JOIN main.gpus AS g ON g.gpu_id = s.gpu
    JOIN constants() AS c ON c.calibration = s.calibration
    LEFT JOIN gemm_families() AS f
        ON f.calibration = s.calibration AND f.family = gpu_family(g.architecture, g.segment)
)

SELECT
    *,
    CASE loss_kernel
        -- Megatron works in place on a copy in fp32 of 16-bit logits (tensor_parallel/cross_entropy.py).
        WHEN 'fused' THEN CASE
            WHEN kernels = 'engine' THEN bytes_16bit() + bytes_fp32()
            ELSE k.logits_fused
        END
        WHEN 'chunked' THEN k.logits_chunked
        WHEN 'liger' THEN k.logits_liger
        WHEN 'litgpt' THEN k.logits_litgpt
        -- A compiled loss casts to fp32 inside its kernel, as torchtitan's has since October 2024 (e10cb94).
        WHEN 'titan' THEN 2e0 * bytes_16bit()
        -- Logits, their softmax and their gradient.
        WHEN 'fp32std' THEN 3e0 * bytes_fp32()
        WHEN '16bit' THEN 3e0 * bytes_16bit()
        WHEN 'outside' THEN k.logits_outside
        ELSE k.logits_hf
    -- An adapter on the head adds its own outputs, and their sum with the head's outputs, in 16 bits.
    END + CASE WHEN contains(lora_targets, 'lm_head') THEN 2e0 * bytes_16bit() ELSE 0e0 END
        AS logit_bytes,
    sharding IN ('fsdp', 'zero3') AS shards_weights,
    sharding IN ('fsdp', 'zero3', 'zero2') AS shards_gradients,
    sharding IN ('fsdp', 'zero3', 'zero2', 'zero1') AS shards_optimizer,
    optimizer LIKE '%8bit%' AS is_8bit_optimizer,
    optimizer LIKE '%inbwd%' AS is_optimizer_in_backward,
    optimizer LIKE 'paged%' AS is_paged_optimizer,
    optimizer = 'adamw_foreach' OR optimizer = 'adamw' AND has_foreach AS steps_foreach,
    params_total - params_linear::DOUBLE AS params_unquantized,
    params_active - (params_total - params_linear)::DOUBLE AS linear_active,
    CASE WHEN is_full THEN 0e0 ELSE
        lora_rank * (
            layers * coalesce(list_sum(flatten(list_transform(linear_targets, lambda target:
                adapted_sides(target, hidden, query_width, key_value_width, adapted_mlp_width, adapted_mlps,
                    1 + folds_adapters)
            )))::DOUBLE, 0e0)
            + CASE WHEN contains(lora_targets, 'lm_head') THEN hidden + vocab ELSE 0 END
        )
    END AS adapter_params,
    coalesce(list_sum(list_transform(adapted, lambda sides: sides[1]))::DOUBLE, 0e0) AS adapted_in,
    coalesce(list_sum(list_transform(adapted, lambda sides: sides[2]))::DOUBLE, 0e0) AS adapted_out,
    -- A second copy of the experts, with the adapters added.
    folds_adapters * bytes_16bit() * expert_params AS folded_bytes,
    quantized_weight_bytes(quantization) AS quantized_bytes,
    CASE WHEN fuses_experts(stack, experts) THEN expert_params / params_linear ELSE 0e0 END
        AS unquantized_share,
    CASE
        WHEN is_quantized THEN quantized_bytes + (bytes_16bit() - quantized_bytes) * unquantized_share
        ELSE bytes_16bit()
    END AS linear_width,
    -- Adapters with dropout keep each input, in the format of the products, and a mask of 1 byte per element.
    -- In LitGPT, query, key and value have one adapter (LoRAQKVLinear in litgpt/lora.py).
    CASE WHEN has_adapters THEN (bytes_16bit() + 1) ELSE 0e0 END * (
        adapted_in - CASE
            WHEN stack = 'litgpt' THEN hidden * greatest(0, len(
                list_intersect(linear_targets, ['q_proj', 'k_proj', 'v_proj'])
            ) - 1)
            ELSE 0e0
        END
    ) AS dropout_bytes_per_token,
    coalesce(lora_dropout > 0, FALSE)::INTEGER::DOUBLE AS has_dropout,
    CASE WHEN training_precision IN ('amp', 'fp32', 'fp16') THEN bytes_fp32() ELSE weight_bytes END
        AS full_weight_bytes,
    -- Megatron keeps fp32 copies of 16-bit weights in its optimizer, and by default also sums gradients in a
    -- buffer of fp32 (accumulate_allreduce_grads_in_fp32 in megatron/training/arguments.py); fp16 leaves them
    -- in 16 bits, and so do NVIDIA's performance recipes, which are entered as deepspeed_bf16.
    is_full AND kernels = 'engine' AND training_precision = 'amp' AS has_gradient_buffer,
    has_gradient_buffer OR training_precision = 'deepspeed_bf16' AS has_masters,
    CASE WHEN has_masters THEN bytes_16bit() ELSE full_weight_bytes END AS trained_weight_bytes,
    -- The residual stream is fp32 in fp32 runs, under autocast with unsharded fp32 weights, and when k-bit
    -- training upcasts the norms; FSDP's own mixed precision keeps the stream in 16 bits.
    CASE
        WHEN training_precision = 'fp32' THEN 1e0
        WHEN is_trainer AND NOT shards_weights
            AND (kbit_upcast = 1 OR (is_full AND training_precision = 'amp')) THEN 1e0
        ELSE 0e0
    END AS fp32_residual,
    -- With adapters under accelerate's FSDP, the backward pass holds another copy of the checkpoints.
    is_trainer AND sharding = 'fsdp' AND has_adapters AS doubles_checkpoints,
    -- One layer's 16-bit activations per token: 8 x hidden for norms and residuals, 3 x query and 3 x
    -- key-value width for attention, and 4 x intermediate for the MLP (2 x if it is not gated). Korthikanti
    -- et al. 2022, arXiv 2205.05198. A mixture also holds a copy of the hidden states going into and coming
    -- out of each chosen expert.
    bytes_16bit() * (
        8e0 * hidden + 3e0 * query_width + 3e0 * key_value_width
        -- LitGPT repeats keys and values for each query head (CausalSelfAttention in litgpt/model.py).
        + CASE WHEN stack = 'litgpt' THEN 2e0 * (query_width - key_value_width) ELSE 0e0 END
    ) AS attention_bytes_per_token,
    attention_bytes_per_token + bytes_16bit() * (
        CASE WHEN experts > 1 THEN 2e0 * experts_active * hidden ELSE 0e0 END
        + mlp_tensors * active_intermediate
    ) AS layer_bytes_per_token,
    -- The share of these bytes that belongs to the tokens' experts, not to shared experts or dense layers.
    CASE
        WHEN experts > 1 THEN bytes_16bit() * sparse_share * experts_active
            * (2e0 * hidden + mlp_tensors * intermediate) / layer_bytes_per_token
        ELSE 0e0
    END AS routed_share,
    -- The inputs of linear layers that no trained weight or adapter needs in the backward pass; with dropout,
    -- an adapter needs the input after dropout instead, which dropout_bytes_per_token counts.
    bytes_16bit() * CASE
        WHEN is_full THEN 0e0
        WHEN has_dropout = 1 THEN 2e0 * hidden + query_width + active_intermediate
        ELSE hidden * (1 - list_has_any(linear_targets, ['q_proj', 'k_proj', 'v_proj', 'qkv_fused'])::INTEGER)
        + query_width * (1 - list_contains(linear_targets, 'o_proj')::INTEGER)
        + hidden * (1 - list_has_any(linear_targets, ['gate_proj', 'up_proj'])::INTEGER)
        + active_intermediate * (1 - list_contains(linear_targets, 'down_proj')::INTEGER)
    END AS frozen_input_bytes_per_token
FROM _settings_shape;
COMMENT ON MACRO TABLE settings_of IS
    'The settings of runs (columns of catalog/measured_runs.csv; missing columns get their defaults), joined to the model, GPU and stack of each run, as numbers.';

CREATE OR REPLACE MACRO scale_of(coefficients) AS TABLE
SELECT
    *,
    -- Each context-parallel rank holds the same weights and a part of every sequence: the state is sharded
    -- over these ranks as over data-parallel ranks.
    micro_batch * seq_len / context_parallel AS micro_step_tokens,
    gpu_count / (tensor_parallel * pipeline_parallel) AS data_parallel,
    tensor_parallel * pipeline_parallel AS model_parallel,
    -- Number of GPUs over which a copy of the model is split; expert-parallel ranks also split its experts.
    CASE
        WHEN expert_parallel > 1 AND expert_params > 0 THEN model_parallel * params_total / (
            params_total - expert_params
            + expert_params / least(expert_parallel, data_parallel)
        )
        ELSE model_parallel
    END AS model_shards,
    -- The number of GPUs over which each part of the state is split.
    CASE WHEN shards_weights THEN gpu_count ELSE model_shards END AS weight_shards,
    CASE WHEN shards_gradients THEN gpu_count ELSE model_shards END AS gradient_shards,
    CASE WHEN shards_optimizer THEN gpu_count ELSE model_shards END AS optimizer_shards,
    shards_weights AND data_parallel > 1 AS gathers_weights
FROM query_table(coefficients);
COMMENT ON MACRO TABLE scale_of IS
    'The tokens of one micro-step on one rank, and the sizes of the groups of GPUs over which a run and its state are split.';
