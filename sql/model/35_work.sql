-- The work of a training step, from the coefficients learned from traces (catalog/recipe_work.csv).

CREATE OR REPLACE MACRO work_recipe(
    is_full, is_quantized, kbit_upcast, autocast, training_precision, adapter_bytes, shards_weights
) AS
    CASE
        -- Sharded weights are gathered in 16 bits.
        WHEN is_full AND NOT shards_weights AND training_precision IN ('amp', 'fp16') THEN 'full-amp'
        WHEN is_full AND training_precision = 'fp32' THEN 'full-fp32'
        WHEN is_full THEN 'full'
        ELSE concat(
            CASE WHEN is_quantized THEN 'qlora' ELSE 'lora' END,
            CASE WHEN is_quantized AND kbit_upcast = 1 AND NOT shards_weights THEN '-upcast' END,
            CASE
                WHEN shards_weights THEN '-16bit-adapters'
                WHEN autocast = 1 OR training_precision = 'fp16' THEN '-autocast'
                WHEN adapter_bytes < 4 AND kbit_upcast = 0 THEN '-16bit-adapters'
            END
        )
    END;
COMMENT ON FUNCTION work_recipe IS
    'The recipe of recipe_work for a run''s settings: which weights are trained, in which number format, and whether autocast chooses the formats of the products.';

CREATE OR REPLACE MACRO attention_kernel(flash_attention, architecture) AS
    CASE
        WHEN flash_attention = 0 THEN 'eager'
        WHEN architecture IN ('Kepler', 'Maxwell', 'Pascal', 'Volta', 'Turing') THEN 'efficient'
        ELSE 'flash'
    END;
COMMENT ON FUNCTION attention_kernel IS
    'The attention kernel that torch uses: eager if flash_attention is 0; otherwise flash attention from compute capability 8.0 on, and the memory-efficient kernel on older cards.';

CREATE OR REPLACE MACRO token_list(w) AS [
    w.layer_token_hidden, w.layer_token_query, w.layer_token_key_value, w.layer_token_intermediate,
    w.layer_token_adapted_in, w.layer_token_adapted_out, w.layer_token_adapter_rank, w.layer_token_scores,
    w.layer_token_grouped_query, w.layer_token_unadapted_down, w.token_hidden, w.token_layer_weights,
    w.token_unadapted_down_weights, w.token_head_weights, w.token_adapter_weights, w.layer_token_attention
]::DOUBLE[];
COMMENT ON FUNCTION token_list IS
    'The features of recipe_work that grow with the number of tokens, as a list of either their coefficients or a run''s amounts per token. token_vocab is not in the list, because logits are timed separately.';

CREATE OR REPLACE MACRO fixed_list(w) AS [
    w.layer_weights, w.unadapted_down_weights, w.head_weights, w.tied_head_weights, w.adapter_weights,
    w.layers, w.layer_adapters, w.grouped_layers, w.unadapted_down_layers, w.once
]::DOUBLE[];
COMMENT ON FUNCTION fixed_list IS
    'The features of recipe_work that do not depend on the number of tokens, as a list of either their coefficients or a run''s amounts.';

CREATE OR REPLACE MACRO work_coefficients() AS TABLE
WITH _work_lists AS (
    SELECT
        recipe, attention, part, quantity, token_vocab,
        token_list(w) AS per_token, fixed_list(w) AS per_micro_step
    FROM main.recipe_work AS w
)

SELECT
    recipe, attention, part,
    any_value(per_token) FILTER (quantity = 'moved_bytes') AS moved_per_token,
    coalesce(any_value(token_vocab) FILTER (quantity = 'moved_bytes'), 0e0) AS moved_per_logit,
    any_value(per_micro_step) FILTER (quantity = 'moved_bytes') AS moved,
    any_value(per_micro_step) FILTER (quantity = 'dequantized_bytes') AS dequantized,
    any_value(per_token) FILTER (quantity = 'flops_16bit') AS flops_16bit,
    any_value(per_token) FILTER (quantity = 'flops_fp32') AS flops_fp32,
    any_value(per_token) FILTER (quantity = 'attention_flops_16bit') AS attention_16bit,
    any_value(per_token) FILTER (quantity = 'attention_flops_fp32') AS attention_fp32,
    any_value(per_micro_step) FILTER (quantity = 'kernels') AS kernels,
    any_value(per_micro_step) FILTER (quantity = 'python_operations') AS python,
    any_value(per_micro_step) FILTER (quantity = 'autograd_operations') AS autograd
FROM _work_lists
GROUP BY ALL;
COMMENT ON MACRO TABLE work_coefficients IS
    'The coefficients of recipe_work as lists in the order of token_list and fixed_list, one row per recipe, attention kernel and part.';

CREATE OR REPLACE MACRO work_features(settings) AS TABLE
SELECT
    *,
    len(linear_targets)::DOUBLE AS adapters,
    CASE WHEN NOT is_full AND contains(lora_targets, 'down_proj') THEN 0e0 ELSE 1e0 END AS unadapted_down,
    CASE WHEN key_value_width < query_width THEN 1e0 ELSE 0e0 END AS is_grouped,
    -- An MLP that is not gated has half as many tensors.
    active_intermediate * mlp_tensors / 4 AS mlp_width,
    CASE checkpointing
        WHEN 'full' THEN 1e0
        WHEN 'sac' THEN CASE WHEN kernels = 'engine' THEN k.recompute_engine ELSE k.recompute_selective END
        ELSE 0e0
    END AS recompute_passes,
    {
        'layer_token_hidden': layers * hidden,
        'layer_token_query': layers * query_width,
        'layer_token_key_value': layers * key_value_width,
        'layer_token_intermediate': layers * mlp_width,
        'layer_token_adapted_in': layers * adapted_in,
        'layer_token_adapted_out': layers * adapted_out,
        'layer_token_adapter_rank': layers * adapters * lora_rank,
        'layer_token_scores': layers * heads * seq_len,
        'layer_token_grouped_query': layers * query_width * is_grouped,
        'layer_token_unadapted_down': layers * hidden * unadapted_down,
        'token_hidden': hidden,
        'token_vocab': vocab,
        'layer_weights': params_linear,
        'unadapted_down_weights': layers * hidden * mlp_width * unadapted_down,
        'head_weights': vocab * hidden,
        'tied_head_weights': vocab * hidden * tied_embeddings,
        'adapter_weights': adapter_params,
        'token_layer_weights': linear_active,
        'token_unadapted_down_weights': layers * hidden * mlp_width * unadapted_down,
        'token_head_weights': vocab * hidden,
        'token_adapter_weights': adapter_params * experts_active / experts,
        'layer_token_attention': layers * attended_length * query_width,
        'layers': layers,
        'layer_adapters': layers * adapters,
        'grouped_layers': layers * is_grouped,
        'unadapted_down_layers': layers * unadapted_down,
        'once': 1
    } AS features
FROM query_table(settings);
COMMENT ON MACRO TABLE work_features IS
    'The settings of runs, plus the features for which recipe_work gives coefficients, under the names used there; features that grow with the number of tokens are amounts per token.';

CREATE OR REPLACE MACRO work_of(step, recompute, passes, features) AS
    coalesce(list_dot_product(step, features), 0e0)
    + passes * coalesce(list_dot_product(recompute, features), 0e0);
COMMENT ON FUNCTION work_of IS
    'The work of a step and of its recompute passes, as sums of coefficients times features; 0 if there are no coefficients.';

CREATE OR REPLACE MACRO with_work(settings) AS TABLE
WITH _work_features AS (
    SELECT
        *,
        CASE WHEN kernels = 'eager' THEN work_recipe(
            is_full, is_quantized, kbit_upcast, autocast, training_precision, adapter_bytes, shards_weights
        ) END AS traced_work,
        attention_kernel(flash_attention, architecture) AS attention,
        token_list(features) AS per_token, fixed_list(features) AS per_micro_step
    FROM work_features(settings)
),

_work_coefficients AS (
    SELECT * FROM work_coefficients()
)

SELECT
    f.*,
    s.recipe IS NOT NULL AS is_counted,
    work_of(s.moved_per_token, r.moved_per_token, recompute_passes, per_token) AS moved_bytes_per_token,
    vocab * s.moved_per_logit AS logit_bytes_per_token,
    work_of(s.moved, r.moved, recompute_passes, per_micro_step) AS moved_weight_bytes,
    work_of(s.dequantized, r.dequantized, recompute_passes, per_micro_step) AS dequantized_traffic_bytes,
    work_of(s.flops_16bit, r.flops_16bit, recompute_passes, per_token) AS flops_16bit_per_token,
    work_of(s.flops_fp32, r.flops_fp32, recompute_passes, per_token) AS flops_fp32_per_token,
    work_of(s.attention_16bit, r.attention_16bit, recompute_passes, per_token) AS attention_16bit_per_token,
    work_of(s.attention_fp32, r.attention_fp32, recompute_passes, per_token) AS attention_fp32_per_token,
    work_of(s.kernels, r.kernels, recompute_passes, per_micro_step) AS kernel_launches,
    work_of(s.python, r.python, recompute_passes, per_micro_step) AS python_operations,
    work_of(s.autograd, r.autograd, recompute_passes, per_micro_step) AS autograd_operations
FROM _work_features AS f
LEFT JOIN _work_coefficients AS s
    ON s.recipe = f.traced_work AND s.attention = f.attention AND s.part = 'step'
LEFT JOIN _work_coefficients AS r
    ON r.recipe = f.traced_work AND r.attention = f.attention AND r.part = 'recompute';
COMMENT ON MACRO TABLE with_work IS
    'The settings of runs, plus the work in a micro-step (the parts per token and the parts per micro-step): bytes, FLOPs (with attention counted as if it were not causal), kernels and host operations. is_counted: true if the work was counted on traces of the recipe; if false, all amounts of work are 0.';
